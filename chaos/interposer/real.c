/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions behind the hooks. libc's dlsym comes by dlvsym, since the name is overridden here;
 * the next preload's, which may override it too, by asking that for the name behind us.
 * Compiled without tail calls: RTLD_NEXT goes by who calls, and that must be this library.
 */
#define _GNU_SOURCE
#include "local.h"

#include <dlfcn.h>
#include <string.h>

#ifdef __x86_64__
#define OLD "GLIBC_2.2.5"
#else
#define OLD "GLIBC_2.17"
#endif
void *bound_dlvsym(void *handle, const char *name, const char *version);
__asm__(".symver bound_dlvsym, dlvsym@" OLD);

typedef void *(*look)(void *, const char *);
typedef void *(*opener)(const char *, int);
typedef int (*teller)(const void *, Dl_info *);

EXPORT void *dlsym(void *restrict handle, const char *restrict name);
static look libc_dlsym, following;
static opener open_library;
static teller tell;

static void *to_pointer(function from)
{
	void *to;

	memcpy(&to, &from, sizeof(to));
	return to;
}

static function to_function(void *from)
{
	function to;

	memcpy(&to, &from, sizeof(to));
	return to;
}

void real_start(void)
{
	void *found = bound_dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");

	if (!found)
		found = bound_dlvsym(RTLD_NEXT, "dlsym", OLD);
	libc_dlsym = (look)to_function(found);
	found = libc_dlsym(RTLD_NEXT, "dlsym");
	following = (look)to_function(found);
	if (!following || following == (look)dlsym)
		following = libc_dlsym;
	open_library = (opener)to_function(libc_dlsym(RTLD_NEXT, "dlopen"));
	tell = (teller)to_function(libc_dlsym(RTLD_NEXT, "dladdr"));
}

void *real_dlsym(void *handle, const char *name)
{
	void *found = libc_dlsym(handle, name);

	return found;
}

void *find(void *handle, const char *name)
{
	void *found = following(handle, name);

	return found;
}

void *next_dlsym(void)
{
	return to_pointer((function)following);
}

int same_object(const void *one, const void *other)
{
	Dl_info a, b;

	return tell && tell(one, &a) && tell(other, &b) && a.dli_fbase == b.dli_fbase;
}

/* A library that is there already, under the name that its users give; none is ever loaded. */
static void *loaded(int nccl)
{
	return open_library ? open_library(nccl ? "libnccl.so.2" : "libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD) : 0;
}

/*
 * Behind us in the linker's order, or, as with torch's NCCL, which comes with what Python loads for
 * itself, in a library outside that order.
 */
static void *behind(const char *name)
{
	void *found = libc_dlsym(RTLD_NEXT, name), *library;

	if (!found && (library = loaded(name[0] == 'n')))
		found = following(library, name);
	return found;
}

function resolve(int symbol)
{
	function real = __atomic_load_n(&reals[0][symbol], __ATOMIC_ACQUIRE);

	if (real)
		return real;
	start();
	real = to_function(behind(names[symbol]));
	if (real && real != hooks[0][symbol])
		__atomic_store_n(&reals[0][symbol], real, __ATOMIC_RELEASE);
	else
		real = 0;
	return real;
}

void *driver(const char *name)
{
	void *library = loaded(0), *found = library ? libc_dlsym(library, name) : 0;

	return found ? found : libc_dlsym(RTLD_NEXT, name);
}

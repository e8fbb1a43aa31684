/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody else's preload before cuMemAlloc_v2: counts, refuses the call that OTHER_REFUSE numbers, and
 * says at the end what it saw. With DLSYM it stands before dlsym too; NAIVE looks the real one up by
 * dlsym on a handle, as if nobody else could stand there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long calls;
typedef int (*allocate)(unsigned long long *, size_t);

#ifdef DLSYM
static void *theirs(void *handle, const char *name)
{
	static void *(*real)(void *, const char *);

	if (!real) {
		void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");

		if (!found)
			found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
		memcpy(&real, &found, sizeof(real));
	}
	return real(handle, name);
}
#elif defined(NAIVE)
#define theirs(handle, name) dlsym(dlopen("libcuda.so.1", RTLD_NOW), name)
#else
#define theirs dlsym
#endif

int cuMemAlloc_v2(unsigned long long *at, size_t size)
{
	static allocate real;
	const char *refuse = getenv("OTHER_REFUSE");

	if (!real) {
		void *found = theirs(RTLD_NEXT, "cuMemAlloc_v2");

		memcpy(&real, &found, sizeof(real));
	}
	if (++calls == (refuse ? strtoul(refuse, 0, 10) : 0))
		return 77;
	return real(at, size);
}

#ifdef DLSYM
void *dlsym(void *handle, const char *name)
{
	allocate own = cuMemAlloc_v2;
	void *answer;

	if (strcmp(name, "cuMemAlloc_v2"))
		return theirs(handle, name);
	memcpy(&answer, &own, sizeof(answer));
	return answer;
}
#endif

__attribute__((destructor)) static void report(void)
{
	if (calls)
		fprintf(stderr, "other %lu\n", calls);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups: by dlsym on a handle, as ctypes and libcudart make them, and by cuGetProcAddress, by base
 * name, version and flags. Exact names only: `cu*` would be cuDNN's and cuBLAS' as well.
 */
#define _GNU_SOURCE
#include "local.h"

#include <dlfcn.h>
#include <string.h>

enum { PER_THREAD = 2, KNOWN_UNTIL = 14000 };

const char *const names[SYMBOLS] = {
#define CALL(kind, name, base, since, bytes, parameters, arguments) #name,
#include "calls.h"
#undef CALL
	"cuGetProcAddress", "cuGetProcAddress_v2",
};
function reals[WAYS][SYMBOLS];

static const struct row {
	const char *base;
	int since, per_thread;
} rows[SYMBOLS] = {
#define CALL(kind, name, base, since, bytes, parameters, arguments) { #base, since, kind == PTSZ },
#include "calls.h"
#undef CALL
	{ "cuGetProcAddress", 11030, 0 }, { "cuGetProcAddress", 12000, 0 },
};

int symbol_of(const char *name)
{
	int symbol;

	if (strncmp(name, "cu", 2) && strncmp(name, "nccl", 4))
		return -1;
	for (symbol = 0; symbol < SYMBOLS; symbol++)
		if (!strcmp(names[symbol], name))
			return symbol;
	return -1;
}

/* The real one itself where no way is left, which takes a fifth library of one name. */
function hook_of(int symbol, function real)
{
	function none;
	int way;

	if (!real || !active)
		return real;
	self_present();
	for (way = 0; way < WAYS; way++)
		if (real == hooks[way][symbol])
			return real;
	for (way = 0; way < WAYS; way++) {
		none = 0;
		if (reals[way][symbol] == real)
			return hooks[way][symbol];
		if (way && __atomic_compare_exchange_n(&reals[way][symbol], &none, real, 0, __ATOMIC_ACQ_REL,
						       __ATOMIC_ACQUIRE))
			return hooks[way][symbol];
		if (way && none == real)
			return hooks[way][symbol];
	}
	complain("a fourth library with this function is left as it is", names[symbol]);
	return real;
}

static int newest(const char *base, int version, int per_thread)
{
	int symbol, best = -1;

	for (symbol = 0; symbol < SYMBOLS; symbol++)
		if (rows[symbol].since && rows[symbol].since <= version && rows[symbol].per_thread == per_thread &&
		    !strcmp(rows[symbol].base, base) && (best < 0 || rows[symbol].since > rows[best].since))
			best = symbol;
	return best;
}

/*
 * Replaces what the driver gave by our hook for it. From a version on that is not out yet, a name may
 * mean another signature: there the address must be that of the symbol known here.
 */
void offer(const char *base, void **out, int version, uint64_t flags)
{
	function real;
	int symbol;

	if (!active || !base || !*base || !out || !*out)
		return;
	symbol = flags & PER_THREAD ? newest(base, version, 1) : -1;
	if (symbol < 0)
		symbol = newest(base, version, 0);
	if (symbol < 0 || (version >= KNOWN_UNTIL && driver(names[symbol]) != *out))
		return;
	memcpy(&real, out, sizeof(real));
	real = hook_of(symbol, real);
	memcpy(out, &real, sizeof(real));
}

/* A preload behind us that has the name itself looks for what is behind it: it gets no hook. */
static void *look_up(void *handle, const char *name, const void *caller)
{
	int symbol = symbol_of(name);
	function hook = hooks[0][symbol];
	void *behind, *found;

	if (handle != RTLD_DEFAULT) {
		behind = real_dlsym(RTLD_NEXT, name); /* before the one that counts, which clears dlerror */
		found = find(handle, name);
		if (!found || (behind && same_object(behind, caller)))
			return found;
		memcpy(&hook, &found, sizeof(hook));
	}
	/* The order of the linker begins with us: is there a library at all? If not, dlerror shall say so. */
	if (hook == hooks[0][symbol] && !resolve(symbol))
		return real_dlsym(RTLD_NEXT, name);
	hook = hook_of(symbol, hook);
	memcpy(&found, &hook, sizeof(found));
	return found;
}

/* Who answers a dlsym; called from the assembly, which jumps to it. */
void *choose(void *handle, const char *name)
{
	void *(*ours)(void *, const char *, const void *) = look_up;
	void *answer;

	start();
	if (!active || !name || handle == RTLD_NEXT || symbol_of(name) < 0)
		return next_dlsym();
	memcpy(&answer, &ours, sizeof(answer));
	return answer;
}

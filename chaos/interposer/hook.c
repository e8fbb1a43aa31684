/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks, one set for each way. Unless a rule names the function, a hook is a load, a test and a
 * jump to the real one with the arguments where they lie.
 */
#include "local.h"

#include <errno.h>

#define BIT(name) (1ull << S_##name)
#define ALWAYS_CUDA 0
#define ALWAYS_PTSZ 0
#define ALWAYS_NCCL 0
#define ALWAYS_RANK 1
#define LEARN_CUDA
#define LEARN_PTSZ
#define LEARN_NCCL
#define LEARN_RANK self_rank(rank);

enum { NOT_FOUND = 500, SYSTEM_ERROR = 2 };
#define ABSENT_CUDA NOT_FOUND
#define ABSENT_PTSZ NOT_FOUND
#define ABSENT_NCCL SYSTEM_ERROR
#define ABSENT_RANK SYSTEM_ERROR

/* The real one of a way; only way 0 can be without: nobody asked for its function by name yet. */
#define REAL(way, name) (reals[way][S_##name] ? reals[way][S_##name] : way ? 0 : resolve(S_##name))

#define HOOK(way, linkage, hook, kind, name, bytes, parameters, arguments) \
static COLD int hook##_judged parameters \
{ \
	int before = errno, code = 0, stop; \
	int (*real) parameters = (int (*) parameters)REAL(way, name); \
\
	LEARN_##kind \
	stop = page->armed & BIT(name) ? judge(S_##name, bytes, &code) : 0; \
	errno = before; \
	if (stop) \
		return code; \
	return real ? real arguments : ABSENT_##kind; \
} \
linkage int hook parameters \
{ \
	int (*real) parameters = (int (*) parameters)reals[way][S_##name]; \
\
	if (LIKELY(!ALWAYS_##kind && !(page->armed & BIT(name)) && real)) \
		return real arguments; \
	return hook##_judged arguments; \
}

#define GETTERS(way, linkage, hook, second) \
linkage int hook(const char *name, void **out, int version, uint64_t flags) \
{ \
	int (*real)(const char *, void **, int, uint64_t) = \
		(int (*)(const char *, void **, int, uint64_t))REAL(way, cuGetProcAddress); \
	int code = real ? real(name, out, version, flags) : NOT_FOUND; \
\
	if (!code) \
		offer(name, out, version, flags); \
	return code; \
} \
linkage int second(const char *name, void **out, int version, uint64_t flags, int *status) \
{ \
	int (*real)(const char *, void **, int, uint64_t, int *) = \
		(int (*)(const char *, void **, int, uint64_t, int *))REAL(way, cuGetProcAddress_v2); \
	int code = real ? real(name, out, version, flags, status) : NOT_FOUND; \
\
	if (!code) \
		offer(name, out, version, flags); \
	return code; \
}

#define CALL(kind, name, base, since, bytes, parameters, arguments) \
	HOOK(0, EXPORT, name, kind, name, bytes, parameters, arguments)
#include "calls.h"
#undef CALL
GETTERS(0, EXPORT, cuGetProcAddress, cuGetProcAddress_v2)

#define WAY(way) GETTERS(way, static, cuGetProcAddress_##way, cuGetProcAddress_v2_##way)
#define CALL(kind, name, base, since, bytes, parameters, arguments) \
	HOOK(1, static, name##_1, kind, name, bytes, parameters, arguments)
#include "calls.h"
#undef CALL
WAY(1)
#define CALL(kind, name, base, since, bytes, parameters, arguments) \
	HOOK(2, static, name##_2, kind, name, bytes, parameters, arguments)
#include "calls.h"
#undef CALL
WAY(2)
#define CALL(kind, name, base, since, bytes, parameters, arguments) \
	HOOK(3, static, name##_3, kind, name, bytes, parameters, arguments)
#include "calls.h"
#undef CALL
WAY(3)

const function hooks[WAYS][SYMBOLS] = {
	{
#define CALL(kind, name, base, since, bytes, parameters, arguments) (function)name,
#include "calls.h"
#undef CALL
		(function)cuGetProcAddress, (function)cuGetProcAddress_v2,
	}, {
#define CALL(kind, name, base, since, bytes, parameters, arguments) (function)name##_1,
#include "calls.h"
#undef CALL
		(function)cuGetProcAddress_1, (function)cuGetProcAddress_v2_1,
	}, {
#define CALL(kind, name, base, since, bytes, parameters, arguments) (function)name##_2,
#include "calls.h"
#undef CALL
		(function)cuGetProcAddress_2, (function)cuGetProcAddress_v2_2,
	}, {
#define CALL(kind, name, base, since, bytes, parameters, arguments) (function)name##_3,
#include "calls.h"
#undef CALL
		(function)cuGetProcAddress_3, (function)cuGetProcAddress_v2_3,
	},
};

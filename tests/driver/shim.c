/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload that stands before cuMemAlloc_v2: counts, and refuses the call that SHIM_REFUSE numbers.
 * At the end it says what it saw.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long calls, bytes;

int cuMemAlloc_v2(unsigned long long *at, size_t size)
{
	const char *refuse = getenv("SHIM_REFUSE");
	void *symbol = dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	int (*next)(unsigned long long *, size_t);

	calls++;
	bytes += size;
	if (refuse && calls == strtoul(refuse, 0, 10))
		return 2;
	memcpy(&next, &symbol, sizeof(next));
	return next(at, size);
}

__attribute__((destructor)) static void report(void)
{
	fprintf(stderr, "calls %lu bytes %lu\n", calls, bytes);
}

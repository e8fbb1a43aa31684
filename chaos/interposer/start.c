/* SPDX-License-Identifier: Apache-2.0 */
/* Begins, once: at the first dlsym of a process or when the library is loaded, whichever is first. */
#define _GNU_SOURCE
#include "local.h"

#include <sched.h>
#include <stdlib.h>

static struct page nothing;
struct page *page = &nothing;
int active;

static void begin(void)
{
	const char *path;
	struct page *found;

	real_start();
	path = secure_getenv("MODELPROBE_CHAOS_PAGE");
	if (!path || !*path || self_start())
		return;
	found = page_open(path);
	if (!found)
		return;
	page = found;
	active = 1;
}

__attribute__((constructor)) void start(void)
{
	static int state;
	int fresh = 0;

	if (LIKELY(__atomic_load_n(&state, __ATOMIC_ACQUIRE) == 2))
		return;
	if (__atomic_compare_exchange_n(&state, &fresh, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		begin();
		__atomic_store_n(&state, 2, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != 2)
		sched_yield();
}

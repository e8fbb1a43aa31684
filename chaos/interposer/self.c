/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process in the page's table. Its place is found once, at the first look-up or hit; the memory
 * that says so is wiped in the child of a fork, which so comes to a place of its own.
 */
#define _GNU_SOURCE
#include "local.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE = 10000 };

static struct self *mine;
static struct process nowhere;	/* counts of those for whom the table had no room */
static int given = -1;		/* RANK of the environment, or -1 */

int self_start(void)
{
	const char *text = getenv("RANK");
	char *end;
	long rank = text ? strtol(text, &end, 10) : -1;

	if (text && *text && !*end && rank >= 0 && rank < 1 << 20)
		given = (int)rank;
	mine = mmap(0, sizeof(*mine), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mine == MAP_FAILED || madvise(mine, sizeof(*mine), MADV_WIPEONFORK)) {
		complain("needs Linux 4.14; faults stay off", "MADV_WIPEONFORK");
		return -1;
	}
	return 0;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int take(struct process *entry, int from, int pid)
{
	if (!__atomic_compare_exchange_n(&entry->pid, &from, pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return 0;
	entry->rank = mine->rank - 1;
	entry->stamp = now();
	entry->entered = entry->left = entry->hits = 0;
	entry->sticky = 0;
	entry->result = -1;
	return 1;
}

/* Our own number can be there already: we before an exec, or a dead one that had it. Both are over. */
static struct process *place(int pid)
{
	struct process *entry;
	int round, taken;

	for (round = 0; round < 3; round++)
		for (entry = page->process; entry < page->process + PROCESSES; entry++) {
			taken = __atomic_load_n(&entry->pid, __ATOMIC_RELAXED);
			if (round == 0 ? taken == pid : round == 1 ? !taken :
			    taken < 0 || (taken && kill(taken, 0) && errno == ESRCH))
				if (take(entry, taken, pid))
					return entry;
		}
	__atomic_fetch_add(&page->overflow, 1, __ATOMIC_RELAXED);
	return &nowhere;
}

/* Ranks are kept plus one: wiped memory means that none is known. */
struct self *self(void)
{
	int fresh = 0, patience = PATIENCE;

	if (LIKELY(__atomic_load_n(&mine->state, __ATOMIC_ACQUIRE) == 2))
		return mine;
	if (__atomic_compare_exchange_n(&mine->state, &fresh, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		mine->pid = getpid();
		mine->rank = given + 1;
		mine->entry = place(mine->pid);
		__atomic_store_n(&mine->state, 2, __ATOMIC_RELEASE);
	}
	while (__atomic_load_n(&mine->state, __ATOMIC_ACQUIRE) != 2 && patience--)
		sched_yield(); /* not for ever: a signal can have come in the middle of it */
	return mine;
}

struct process *entry_of(struct self *me)
{
	return __atomic_load_n(&me->state, __ATOMIC_ACQUIRE) == 2 ? me->entry : &nowhere;
}

void self_present(void)
{
	if (active)
		self();
}

/* The first communicator of a process is that of its world; RANK, which launchers set, goes before. */
void self_rank(int rank)
{
	struct self *me;
	int none = 0;

	if (!active)
		return;
	me = self();
	if (rank >= 0 && rank < 1 << 20)
		__atomic_compare_exchange_n(&me->rank, &none, rank + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	entry_of(me)->rank = me->rank - 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a call whose function some rule names. Nothing of the page is trusted further than
 * its bounds: whoever runs the target can write to it. No lock, no allocation, no file.
 */
#define _GNU_SOURCE
#include "local.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLICE = 20000000 };	/* nanoseconds that a disarmed sleeper may sleep on */

static uint64_t clock_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/*
 * The holder's thread id is in the lock word as long as the holder lives: the kernel takes it out, no
 * clock is needed. The lease is for one that lives and does nothing.
 */
static int armed(int symbol, uint64_t generation)
{
	uint32_t lock = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);

	return (page->armed >> symbol & 1) && (lock & OWNER) && !(lock & OWNER_DIED) &&
	       __atomic_load_n(&page->generation, __ATOMIC_SEQ_CST) == generation &&
	       page->lease - clock_of(CLOCK_MONOTONIC_COARSE) - 1 < LEASE_MOST; /* wraps when it is over */
}

/* splitmix64 of a counter: the same seed, rule and call number give the same draw anywhere. */
static uint32_t drawn(uint64_t seed, uint64_t rule, uint64_t call)
{
	uint64_t x = seed + call * 0x9e3779b97f4a7c15ull + rule * 0xd1b54a32d192ed03ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)((x ^ x >> 31) >> 32);
}

/* Counts the hit unless the rule has had all of its own. */
static int grant(struct rule *rule)
{
	uint64_t times = rule->times, hits = __atomic_load_n(&rule->hits, __ATOMIC_RELAXED), none = 0, at;

	do
		if (times && hits >= times)
			return 0;
	while (!__atomic_compare_exchange_n(&rule->hits, &hits, hits + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	at = clock_of(CLOCK_MONOTONIC);
	__atomic_compare_exchange_n(&rule->first, &none, at, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	__atomic_store_n(&rule->last, at, __ATOMIC_RELAXED);
	return 1;
}

static void delay(int symbol, uint64_t generation, uint64_t length)
{
	uint64_t now = clock_of(CLOCK_MONOTONIC), until = now + length, left;
	struct timespec slice = { 0, 0 };

	for (; now < until && armed(symbol, generation); now = clock_of(CLOCK_MONOTONIC)) {
		left = until - now;
		slice.tv_nsec = (long)(left < SLICE ? left : SLICE);
		syscall(SYS_nanosleep, &slice, 0);
	}
}

static int matches(const struct rule *rule, const struct self *me, int symbol, uint64_t bytes)
{
	return (rule->symbols >> symbol & 1) && (!rule->pid || rule->pid == me->pid) &&
	       (rule->rank < 0 || rule->rank == me->rank - 1) && (!rule->over || bytes > rule->over);
}

static int hits(struct rule *rule, uint64_t number, struct self *me, uint64_t generation)
{
	uint64_t call = __atomic_add_fetch(&rule->calls, 1, __ATOMIC_RELAXED), done;

	if (call < rule->nth || (!(rule->threshold >> 32) && drawn(rule->seed, number, call) >= rule->threshold))
		return 0;
	if (rule->action == ACT_RESET || rule->action == ACT_TRAP) {
		done = me->done_in;
		if (done == generation || !__atomic_compare_exchange_n(&me->done_in, &done, generation, 0,
								       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return 0;
	}
	return grant(rule);
}

static int apply(const struct rule *rule, struct self *me, int symbol, uint64_t generation, int *code)
{
	struct process *entry = entry_of(me);

	*code = rule->code;
	switch (rule->action) {
	case ACT_STICKY:
		me->sticky = entry->sticky = *code;
		__atomic_store_n(&me->sticky_in, generation, __ATOMIC_RELEASE);
		return *code > 0;
	case ACT_ERROR:
		return *code > 0; /* success without what the caller asked for would be a lie */
	case ACT_DELAY:
		delay(symbol, generation, rule->delay);
		return 0;
	case ACT_RESET:
		entry->result = act_reset();
		return 0;
	case ACT_TRAP:
		entry->result = act_trap();
		return 0;
	}
	return 0;
}

/* The first rule that hits decides, and those after it do not see the call. */
static int decide(struct self *me, int symbol, uint64_t bytes, uint64_t generation, int *code)
{
	struct process *entry = entry_of(me);
	uint32_t number, count = page->rules < RULES ? page->rules : RULES;
	struct rule *rule;

	if (__atomic_load_n(&me->sticky_in, __ATOMIC_ACQUIRE) == generation && me->sticky > 0) {
		if (names[symbol][0] == 'c' && symbol != S_cuCtxGetCurrent) {
			__atomic_fetch_add(&entry->hits, 1, __ATOMIC_RELAXED);
			*code = me->sticky;
			return 1;
		}
	}
	for (number = 0; number < count; number++) {
		rule = &page->rule[number];
		if (matches(rule, me, symbol, bytes) && hits(rule, number, me, generation)) {
			__atomic_fetch_add(&entry->hits, 1, __ATOMIC_RELAXED);
			return apply(rule, me, symbol, generation, code);
		}
	}
	return 0;
}

/* Counted before the mask is read again: an injector that sees nobody in here can change the rules. */
int judge(int symbol, uint64_t bytes, int *code)
{
	struct self *me = self();
	struct process *entry = entry_of(me);
	uint64_t generation;
	int stop = 0;

	__atomic_fetch_add(&entry->entered, 1, __ATOMIC_SEQ_CST);
	generation = __atomic_load_n(&page->generation, __ATOMIC_SEQ_CST);
	if (armed(symbol, generation))
		stop = decide(me, symbol, bytes, generation, code);
	__atomic_fetch_add(&entry->left, 1, __ATOMIC_SEQ_CST);
	return stop;
}

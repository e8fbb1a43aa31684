/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/* What one switch of a thread adds to its process. */
#ifndef SCHED_SWITCH_H
#define SCHED_SWITCH_H

#include "sched_state.h"

/* Counts one duration in nanoseconds: bucket i holds what is at most 2^(10+i). */
static __always_inline void observe(struct histogram *into, __u64 value)
{
	__u64 rest = value ? (value - 1) >> FIRST_SHIFT : 0;
	__u32 bucket = 0;

	__sync_fetch_and_add(&into->sum, value);
	if (rest >> 16) { bucket += 16; rest >>= 16; }
	if (rest >> 8) { bucket += 8; rest >>= 8; }
	if (rest >> 4) { bucket += 4; rest >>= 4; }
	if (rest >> 2) { bucket += 2; rest >>= 2; }
	if (rest >> 1) { bucket += 1; rest >>= 1; }
	bucket += rest != 0;
	if (bucket >= BUCKETS)
		bucket = BUCKETS - 1;
	OPAQUE(bucket);
	__sync_fetch_and_add(&into->counts[bucket & BUCKET_MASK], 1);
}

/* How it leaves its CPU: include/linux/sched.h, TASK_*. What was woken again meanwhile (WAKING)
 * slept; what a signal kept from sleeping, or yielded, stays on the run queue. */
static __always_inline __u32 kind_of(const struct reading *now, int voluntary)
{
	if (!voluntary || !now->state)
		return PREEMPTED;
	if (now->state & (TASK_STOPPED | TASK_TRACED))
		return STOPPED;
	if ((now->state & TASK_UNINTERRUPTIBLE) && !(now->state & TASK_NOLOAD))
		return BLOCKED;
	return SLEEP;
}

static __always_inline void enter(struct process *process, struct thread *then,
				  const struct reading *now, __u64 at)
{
	__u64 wait = now->run_delay - then->run_delay;
	__u64 off = at - then->at - (now->ran - then->ran) - wait;

	observe(&process->waits, wait);
	if (then->kind == PREEMPTED)
		observe(&process->preempted, wait); /* all of it on the run queue */
	else if ((__s64)off < 0)
		off = 0;
	if (then->kind == SLEEP)
		observe(&process->sleep, off);
	else if (then->kind == BLOCKED)
		observe(&process->blocked, off);
	else if (then->kind == STOPPED)
		observe(&process->stopped, off);
}

/* Whether an entry is of the same thread at an earlier switch: tids are used again, and none of its
 * figures goes back. */
static __always_inline int continues(const struct thread *then, const struct reading *now)
{
	return now->times != 1 && now->run_delay >= then->run_delay && now->ran >= then->ran &&
	       now->voluntary >= then->voluntary && now->involuntary >= then->involuntary;
}

/* Whether it is of this very switch: threads begun while their process is being attached may have
 * two events. */
static __always_inline int is_twin(const struct thread *then, const struct reading *now)
{
	return now->voluntary == then->voluntary && now->involuntary == then->involuntary &&
	       now->ran == then->ran && now->run_delay == then->run_delay;
}

/* A thread is seen for the first time: what it did before is its own. One that runs for the first
 * time of its life has done nothing before. */
static __always_inline int begin(struct process *process, const struct reading *now)
{
	int voluntary = now->times == 1 ? now->voluntary != 0 : now->state != 0;

	if (now->times == 1)
		observe(&process->waits, now->run_delay);
	if (voluntary)
		__sync_fetch_and_add(&process->voluntary, 1);
	else
		__sync_fetch_and_add(&process->involuntary, 1);
	return voluntary;
}

/* Adds what happened since the thread's last switch. */
static __always_inline void go_on(struct process *process, struct thread *then,
				  const struct reading *now, __u64 at)
{
	__u64 voluntary = now->voluntary - then->voluntary;
	__u64 involuntary = now->involuntary - then->involuntary;

	if (voluntary)
		__sync_fetch_and_add(&process->voluntary, voluntary);
	if (involuntary)
		__sync_fetch_and_add(&process->involuntary, involuntary);
	if (voluntary + involuntary == 1)
		enter(process, then, now, at);
	else if (voluntary + involuntary)
		__sync_fetch_and_add(&process->missed, voluntary + involuntary - 1);
}

#endif

/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * One CPU at a time reads packets of a connection: its two directions, and on lo the two sights of
 * one packet, come on different CPUs at once. bpf_spin_lock is refused in a socket filter, so this
 * is a lock of our own that is waited for only so long; softirqs are off while it is held.
 */
#ifndef WIRE_LOCK_H
#define WIRE_LOCK_H

#include "wire_walk.h"

#define STRIDE_BYTES 64

static __always_inline int same_key(struct key *a, struct key *b)
{
	__u32 *x = (__u32 *)a, *y = (__u32 *)b, differs = 0;

#pragma unroll
	for (int i = 0; i < (int)(sizeof(*a) / sizeof(*x)); i++)
		differs |= x[i] ^ y[i];
	return !differs;
}

#ifdef BCC_SEC

#define SPINS 1000 /* a few microseconds: the verifier walks through each */

/* BCC's target has no compare-and-exchange, and its add tells no sum. Who adds 1 and then reads 1 is
 * alone: of those that add at once, each but the last to take back reads more. */
static __always_inline int try_lock(struct conn *conn)
{
	if (RELOADED(conn->lock))
		return 0;
	__sync_fetch_and_add(&conn->lock, 1);
	if (RELOADED(conn->lock) == 1)
		return 1;
	__sync_fetch_and_add(&conn->lock, -1);
	return 0;
}

static __always_inline void spin(struct run *run)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i < SPINS; i++) {
		FORGET();
		if (RELOADED(run->conn->gone))
			break;
		if (try_lock(run->conn)) {
			run->work->held = 1;
			break;
		}
	}
}

static __always_inline void unlock(struct conn *conn)
{
	__sync_fetch_and_add(&conn->lock, -1);
}

#else

#define SPINS (1 << 17) /* about a millisecond, as long as the longest packet takes to read */

static __always_inline int try_lock(struct conn *conn)
{
	return !RELOADED(conn->lock) && !__sync_val_compare_and_swap(&conn->lock, 0, 1);
}

static long spin_step(__u32 i, void *context)
{
	struct run *run = context;

	if (RELOADED(run->conn->gone))
		return 1;
	if (!try_lock(run->conn))
		return 0;
	run->work->held = 1;
	return 1;
}

static __always_inline void spin(struct run *run)
{
	if (!spin_step(0, run)) /* nearly always free */
		bpf_loop(SPINS, spin_step, run, 0);
}

static __always_inline void unlock(struct conn *conn)
{
	__sync_lock_test_and_set(&conn->lock, 0);
}

#endif

/* Takes the connection for this packet; 0 when another CPU did not give it back in time: then the
 * packet counts as bytes missed. A connection that is over meanwhile is none: run->conn is 0. */
static __always_inline int take(struct run *run)
{
	struct conn *conn = run->conn;
	struct work *work = run->work;

	work->held = 0;
	spin(run);
	if (!work->held && !RELOADED(conn->gone)) {
		count(CONTENDED, 1);
		return 0;
	}
	if (work->held && (conn->gone || !same_key(&conn->key, &work->key))) {
		unlock(conn);
		work->held = 0;
	}
	if (!work->held)
		run->conn = 0;
	return 1;
}

/* As much of the block as was written, in strides. */
static __always_inline void wipe_block(struct work *work)
{
	__u32 dirty = work->dirty;

#pragma unroll
	for (int i = 0; i < BLOCK / STRIDE_BYTES; i++) {
		if (dirty <= i * STRIDE_BYTES)
			break;
		__builtin_memset(work->block + i * STRIDE_BYTES, 0, STRIDE_BYTES);
	}
	work->dirty = 0;
}

/* The end of a packet, of which nothing is left behind. Memory of a connection that we gave up may be
 * another's: hands off. */
static __always_inline void leave(struct run *run)
{
	struct work *work = run->work;

	wipe_block(work);
	if (!work->gone)
		unlock(run->conn);
}

/* Whether all of the segment was seen before. Asked without the lock: next only grows. */
static __always_inline int is_copy(struct conn *conn, struct work *work)
{
	__u32 span = work->end - work->offset + (work->tcp_flags & FIN);
	/* Both are read: a choice of address is arithmetic that needs CAP_PERFMON here. */
	__u32 asked = RELOADED(conn->flows[REQUEST].next);
	__u32 answered = RELOADED(conn->flows[RESPONSE].next);
	__s32 ahead = work->seq + span - (work->direction == REQUEST ? asked : answered);

	return !(work->tcp_flags & (SYN | RST)) && ahead <= 0 && ahead > -WINDOW;
}

#endif

/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * What walking a packet needs: which flow, how far, the next block, and what a stop means.
 */
#ifndef WIRE_WALK_H
#define WIRE_WALK_H

#include "wire_head.h"
#include "wire_record.h"

static __always_inline struct flow *flow_of(struct run *run)
{
	/* Read anew each time: see gap_bucket. */
	return &run->conn->flows[*(volatile __u8 *)&run->work->direction & 1];
}

static __always_inline void advance(struct run *run, __u64 by)
{
	run->work->offset += by;
	if (run->work->direction == RESPONSE)
		run->conn->rec.response_bytes += by;
	else if (run->conn->captured)
		run->conn->rec.request_bytes += by;
}

/* After `by` bytes of body. */
static __always_inline void body_passes(struct run *run, struct flow *flow, __u64 by)
{
	advance(run, by);
	if (flow->left == UNTIL_CLOSE)
		return;
	flow->left -= by;
	if (flow->left)
		return;
	if (flow->framing & CHUNKED)
		chunk_line(flow, AFTER_CHUNK);
	else
		run->work->verdict = message_ends(run, flow);
}

/* Fills block from the packet with up to `most` bytes; returns how many. */
static __always_inline __u64 load(struct run *run, __u64 most)
{
	struct work *work = run->work;
	__u64 size = (__u64)work->end - work->offset;

	if (size > most)
		size = most;
	OPAQUE(size);
	if (size == 0 || size > BLOCK ||
	    LOAD(run, work->offset, work->block, size) < 0) {
		work->end = work->offset;
		return 0;
	}
	work->base = work->offset;
	work->loaded = size;
	if (work->dirty < size)
		work->dirty = size;
	return size;
}

/* What looked like a request was none: it is forgotten, and the next line is waited for. */
static __always_inline void doubt(struct run *run)
{
	struct conn *conn = run->conn;

	flow_of(run)->phase = ASTRAY;
	if (!conn->captured && conn->pending)
		conn->pending--;
	else
		wipe(conn, run->work);
	run->work->offset = run->work->end;
	run->work->verdict = GO_ON;
}

/* What a run stopped for. The verdict stays where the connection is gone. */
static __always_inline void judge(struct run *run)
{
	struct conn *conn = run->conn;
	struct work *work = run->work;
	__u8 verdict = work->verdict;

	if (verdict == GO_ON)
		return;
	if (verdict == WAITS) {
		line_up(conn, work->now);
		work->verdict = GO_ON;
		return;
	}
	if (verdict == DOUBT ||
	    (verdict == GARBAGE && conn->unsure && work->direction == REQUEST)) {
		doubt(run);
		return;
	}
	if (verdict == ENDED || verdict == REPLACED || conn->open == NAMED)
		finish(conn, work,
		       verdict == ENDED || verdict == UPGRADED || conn->done ? COMPLETE : LOST,
		       work->now);
	if (verdict == ENDED) {
		work->verdict = GO_ON;
		return;
	}
	finish_all(conn, work, LOST, work->now);
	if (verdict == REPLACED) {
		work->verdict = GO_ON;
		return;
	}
	if (verdict == IS_TLS)
		count(BLIND_TLS, 1);
	else if (verdict == HTTP2)
		count(BLIND_HTTP2, 1);
	else if (verdict == GARBAGE)
		count(NOT_HTTP, 1);
	forget(conn, work, IGNORED);
}

static __always_inline int at_rest(struct run *run)
{
	struct work *work = run->work;

	/* A response nobody asked for, such as a 408 before a close. */
	if (work->direction == RESPONSE && run->conn->open != NAMED)
		work->offset = work->end;
	return work->offset >= work->end || work->verdict != GO_ON;
}

static __always_inline __u64 body_within(struct run *run, struct flow *flow)
{
	__u64 size = (__u64)run->work->end - run->work->offset;

	return flow->left < size ? flow->left : size;
}

#endif

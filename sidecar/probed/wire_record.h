/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The life of a record: token times are settled once a packet, since a packet has one time; at
 * its end a record goes to the ring and what was captured is wiped.
 */
#ifndef WIRE_RECORD_H
#define WIRE_RECORD_H

#include "wire_digest.h"

#define MIN_EXPONENT 16 /* gaps.py */
#define OCTAVES 20

/* gaps.index: the same buckets, sixteen an octave from 2^16 ns. The exponent is found without a
 * branch, so that its 64 outcomes are one state to the verifier. The bucket goes through memory
 * (volatile): read back, an offset has one kind of source on every path, which the verifier demands
 * without CAP_PERFMON. A gap is below 2^63 ns. */
static __always_inline __u64 gap_bucket(volatile struct search *search, __u64 gap)
{
	__u64 exponent = 0, rest = gap, step;

#pragma unroll
	for (int shift = 32; shift; shift >>= 1) {
		step = ((1ULL << shift) - 1 - rest) >> 63; /* 1 when it is too large for `shift` bits */
		OPAQUE(step);
		step *= shift;
		rest >>= step;
		exponent += step;
	}
	search->bucket = 0;
	if (exponent >= MIN_EXPONENT + OCTAVES)
		search->bucket = GAP_BUCKETS - 1;
	else if (exponent >= MIN_EXPONENT)
		search->bucket = 1 + (exponent - MIN_EXPONENT) * 16 + (gap >> (exponent - 4) & 15);
	return search->bucket;
}

static __always_inline void add_gap(struct wire_record *rec, struct work *work, __u64 gap)
{
	__u64 bucket = gap_bucket(&work->search, gap);

	if (bucket < GAP_BUCKETS && rec->gaps[bucket] < 0xffff)
		rec->gaps[bucket]++;
	if (gap > rec->largest_gap)
		rec->largest_gap = gap;
}

/* Enters the events and token events found in this packet. */
static __always_inline void settle(struct conn *conn, struct work *work)
{
	__u64 now = work->now, none;
	struct wire_record *rec = &conn->rec;
	__u64 tokens = conn->tokens;

	if (conn->digest.whole) {
		rec->body_key = key_of(conn);
		conn->digest.whole = 0;
	}
	if (conn->vague) {
		rec->unclassified += conn->vague;
		count(UNCLASSIFIED, conn->vague);
		conn->vague = 0;
	}
	if (conn->fresh_events) {
		if (!rec->event0)
			rec->event0 = now;
		rec->events += conn->fresh_events;
		count(EVENTS, conn->fresh_events);
		conn->fresh_events = 0;
	}
	if (!tokens)
		return;
	conn->tokens = 0;
	rec->token_events += tokens;
	if (rec->token0)
		add_gap(rec, work, now > rec->token_last ? now - rec->token_last : 0);
	else
		rec->token0 = now;
	none = rec->gaps[0] + tokens - 1; /* the others of this packet came at the same time */
	rec->gaps[0] = none < 0xffff ? none : 0xffff;
	rec->token_last = now;
}

/* What is known of every request of a connection. */
static __always_inline void identify(struct conn *conn, struct work *work)
{
	__builtin_memcpy(conn->rec.address, work->key.server, 16);
	conn->rec.port = work->key.server_port;
	conn->rec.client_port = work->key.client_port;
	conn->rec.flags = work->flags;
}

/* A request before the last one was answered. */
static __always_inline void line_up(struct conn *conn, __u64 now)
{
	__u64 place = (RELOADED(conn->first) + RELOADED(conn->pending)) & (WAITING - 1);

	count(PIPELINED, 1);
	if (conn->pending < WAITING) {
		OPAQUE(place);
		place &= WAITING - 1;
		conn->waiting[place] = now;
		conn->heads &= ~(1 << place);
	}
	if (conn->pending < 255)
		conn->pending++;
}

/* The oldest pipelined request takes its place in rec; its head was not kept. */
static __always_inline void next_in_line(struct conn *conn)
{
	__u64 place = RELOADED(conn->first) & (WAITING - 1);

	OPAQUE(place);
	place &= WAITING - 1;
	conn->head_request = conn->heads >> place & 1;
	conn->rec.start = conn->waiting[place];
	if (conn->pending > WAITING) { /* one without a place: it came after the newest that has one */
		conn->waiting[place] = conn->waiting[(place + WAITING - 1) & (WAITING - 1)];
		conn->heads &= ~(1 << place);
	}
	conn->first = place + 1;
	conn->pending--;
	conn->open = NAMED;
	conn->rec.flags |= RESYNCED;
}

/* Nothing of a request is kept once it is over. */
static __always_inline void wipe(struct conn *conn, struct work *work)
{
	__builtin_memset(&conn->rec, 0, sizeof(conn->rec));
	__builtin_memset(&conn->sse, 0, sizeof(conn->sse));
	__builtin_memset(&conn->digest, 0, sizeof(conn->digest));
	__builtin_memset(&conn->shape, 0, sizeof(conn->shape));
	conn->flows[RESPONSE].phase = 0;
	conn->flows[RESPONSE].framing = 0;
	conn->open = conn->captured = conn->head_request = conn->done = conn->error = 0;
	identify(conn, work);
	if (conn->pending)
		next_in_line(conn);
}

SUBPROGRAM void finish(struct conn *conn, struct work *work, __u8 end, __u64 at)
{
	settle(conn, work);
	conn->rec.end = conn->error ? ERROR_EVENT : end;
	conn->rec.end_at = at;
	if (OUTPUT(records, &conn->rec, sizeof(conn->rec), BPF_RB_NO_WAKEUP) < 0)
		count(LOST_RECORDS, 1);
	wipe(conn, work);
}

/* Ends what is open, pipelined requests too: no answer comes any more. */
SUBPROGRAM void finish_all(struct conn *conn, struct work *work, __u8 end, __u64 at)
{
#pragma clang loop unroll(disable)
	for (int i = 0; i <= WAITING; i++) {
		FORGET();
		if (conn->open != NAMED)
			return;
		finish(conn, work, end, at);
	}
	if (conn->open == NAMED)
		count(LOST_RECORDS, 1 + conn->pending);
	conn->open = conn->pending = 0;
}

/* Ends the tracking of a connection; the note tells late copies of its packets from new ones. After
 * the deletion not a byte of conn may be touched. */
SUBPROGRAM void forget(struct conn *conn, struct work *work, __u32 state)
{
	struct note note = {.next = conn->flows[REQUEST].next, .state = state};

	UPDATE(notes, &work->key, &note);
	*(volatile __u32 *)&conn->gone = 1;
	work->gone = 1;
	DELETE(conns, &work->key);
}

#endif

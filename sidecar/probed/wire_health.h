/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * What TCP itself suffers on a watched port: connects that fail, segments sent again, resets, closed
 * windows. One packet may be seen at several devices, on lo twice at one: only where the bytes of a
 * direction, or a SYN, are seen first is anything counted.
 */
#ifndef WIRE_HEALTH_H
#define WIRE_HEALTH_H

#include "wire_segment.h"

#define OUTGOING 4 /* skb->pkt_type, linux/if_packet.h */
#define REORDERING 3000000 /* ns: what fills a hole sooner was overtaken and not sent again */

static __always_inline __u32 sight_of(struct __sk_buff *skb)
{
	return skb->ifindex << 3 | skb->pkt_type;
}

static __always_inline void suffer(struct work *work, enum health which, __u64 by)
{
	struct tcp_counts *counts = LOOKUP(healths, &work->port);
	__u64 place;

	/* By way of memory: see gap_bucket. */
	*(volatile __u64 *)&work->search.bucket = which;
	place = RELOADED(work->search.bucket);
	OPAQUE(place);
	if (counts && place < HEALTHS)
		__sync_fetch_and_add(&counts->count[place], by);
}

/* How long the SYN waited for its answer: at the client a round trip, with what was sent again. The
 * search goes through memory as that of gap_bucket does. */
static __always_inline void shaken(struct work *work, struct note *note)
{
	struct tcp_counts *counts = LOOKUP(healths, &work->port);
	volatile struct search *search = &work->search;
	__u64 waited = work->now - note->at, bucket;

	note->at = 0;
	if (!counts)
		return;
	search->rest = waited / 1000;
	search->bucket = 0;
#pragma unroll
	for (int shift = 16; shift; shift >>= 1)
		if (search->rest >> shift) {
			search->rest >>= shift;
			search->bucket += shift;
		}
	search->bucket += search->rest;
	if (search->bucket >= HANDSHAKE_BUCKETS)
		search->bucket = HANDSHAKE_BUCKETS - 1;
	bucket = search->bucket;
	OPAQUE(bucket);
	if (bucket < HANDSHAKE_BUCKETS)
		__sync_fetch_and_add(&counts->handshakes[bucket], 1);
	__sync_fetch_and_add(&counts->count[HANDSHAKE_NS], waited);
}

/* The server's SYN. */
SUBPROGRAM void syn_answered(struct work *work)
{
	struct note *known = LOOKUP(notes, &work->key);

	if (known && known->state == OPENING && known->at && known->next == work->ack)
		shaken(work, known);
}

/* A SYN of a client that has no connection; 0 when this one is known already. */
static __always_inline int new_syn(struct work *work, struct note *known, __u32 sight)
{
	if (known && known->state == OPENING && known->next == work->seq + 1) {
		if (known->sight == sight)
			suffer(work, SYN_RETRANSMITS, 1);
		return 0;
	}
	suffer(work, CONNECTS, 1);
	return 1;
}

/* RST where we follow no connection: an answer to a SYN, or the end of one; the next are copies. */
SUBPROGRAM void bare_reset(struct work *work)
{
	struct note *known = LOOKUP(notes, &work->key);
	__u32 seq = RELOADED(work->seq), ack = RELOADED(work->ack); /* both: see is_copy */
	struct note note = {.next = work->direction == REQUEST ? seq : ack, .state = CLOSED};
	enum health which = work->direction == REQUEST ? RESETS_BY_CLIENT : RESETS_BY_SERVER;

	if (known && known->state == CLOSED)
		return;
	if (known && known->state == OPENING && known->at && work->direction == RESPONSE)
		which = CONNECT_FAILURES;
	suffer(work, which, 1);
	UPDATE(notes, &work->key, &note);
}


/* Whether the bytes of a direction are seen first at another device, or at the other side of lo. */
static __always_inline int seen_elsewhere(struct __sk_buff *skb, struct conn *conn,
                                          struct work *work)
{
	__u32 asked = RELOADED(conn->flows[REQUEST].sight); /* both: see is_copy */
	__u32 answered = RELOADED(conn->flows[RESPONSE].sight);

	return sight_of(skb) != (work->direction == REQUEST ? asked : answered);
}

/* Bytes that are behind what was expected: sent again, unless they were overtaken on the way, or ask
 * for a sign of life, which repeats the last byte (RFC 9293, 3.8.4) as a probe of a window may. */
static __always_inline void sent_again(struct run *run, struct flow *flow, int all)
{
	struct work *work = run->work;
	__u32 size = work->end - work->start, segments = SEGMENTS(run);
	__s32 behind = RELOADED(flow->next) - work->seq;

	if (!size || behind <= 0 || SIGHT(run) != flow->sight || (size == 1 && behind == 1))
		return;
	if (all && work->now - flow->hole_at < REORDERING && (__s32)(work->seq - flow->hole) >= 0 &&
	    (__s32)(flow->hole_end - work->seq - size) >= 0) {
		suffer(work, REORDERED, 1);
		return;
	}
	suffer(work, LEAVES(run) ? RETRANSMITS_SENT : RETRANSMITS_RECEIVED,
	       all && segments ? segments : 1);
}

/* New bytes: they are seen here first, and whoever gets them has room. */
static __always_inline void new_bytes(struct run *run, struct flow *flow, __s32 ahead)
{
	struct work *work = run->work;

	flow->sight = SIGHT(run);
	flow->zero_window = 0;
	if (ahead <= 0)
		return;
	if (work->now - flow->hole_at >= REORDERING)
		flow->hole = flow->next;
	flow->hole_end = work->seq;
	flow->hole_at = work->now;
}

/* The sender takes no more for now. Said again it is the same, until new bytes come for it. */
static __always_inline void window_closes(struct conn *conn, struct work *work)
{
	struct flow *asked = &conn->flows[REQUEST], *answers = &conn->flows[RESPONSE];

	if (work->window || work->tcp_flags & (SYN | RST))
		return;
	if (work->direction == REQUEST && !answers->zero_window) {
		answers->zero_window = 1;
		suffer(work, ZERO_WINDOWS_BY_CLIENT, 1);
	} else if (work->direction == RESPONSE && !asked->zero_window) {
		asked->zero_window = 1;
		suffer(work, ZERO_WINDOWS_BY_SERVER, 1);
	}
}

#endif

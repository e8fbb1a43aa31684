/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * What TCP does to a connection: its first request seen, copies, bytes missed, FIN, RST, a new SYN.
 */
#ifndef WIRE_TCP_H
#define WIRE_TCP_H

#include "wire_health.h"
#include "wire_lock.h"

/* Segments of a client that may start a request: the first bytes of a method. */
static __always_inline int method_like(const __u8 first[4])
{
	__u32 word = be32(first);

	return word == TAIL("GET ") || word == TAIL("POST") || word == TAIL("PUT ") ||
	       word == TAIL("HEAD") || word == TAIL("DELE") || word == TAIL("PATC") ||
	       word == TAIL("OPTI") || word == TAIL("CONN") || word == TAIL("TRAC");
}

/* A new connection begins whole and locked: once it is in the table other CPUs see it. */
static __always_inline void prepare(struct conn *blank, struct work *work)
{
	struct secret *secret = LOOKUP(secrets, &SOLE);

	blank->flows[REQUEST].next = work->seq;
	blank->flows[RESPONSE].next = work->ack;
	blank->isn = work->seq - 1;
	blank->touched = work->now;
	blank->fast_open = (work->tcp_flags & SYN) != 0;
	blank->lock = 1;
	__builtin_memcpy(&blank->key, &work->key, sizeof(blank->key));
	identify(blank, work);
	if (secret)
		blank->salt = secret->salt[0];
}

/* Takes up a connection at its first request, or at a later one when we came late. */
SUBPROGRAM struct conn *adopt(struct __sk_buff *skb, struct work *work)
{
	struct note *note = LOOKUP(notes, &work->key), mine = {};
	__u32 size = work->end - work->offset;
	int fresh = note && note->state == OPENING && note->next == work->seq;
	__s32 ahead = note ? work->seq - note->next : 0;
	struct conn *conn, *blank;
	__u8 first[4] = {};

	work->held = 0;
	if (note && note->state == IGNORED)
		return 0;
	if (note && note->state == CLOSED && ahead < 0 && ahead > -WINDOW)
		return 0; /* a copy of a packet of a request that is over */
	mine.next = work->seq + size;
	/* A short segment is no TLS record, and a method only on a connection seen from its SYN. */
	if (size >= 4 && bpf_skb_load_bytes(skb, work->offset, first, 4) == 0 &&
	    (first[0] == 0x16 || first[0] == 0x17) && first[1] == 3 && first[2] <= 4) {
		count(BLIND_TLS, 1);
		mine.state = IGNORED;
		UPDATE(notes, &work->key, &mine);
		return 0;
	}
	blank = LOOKUP(blanks, &SOLE);
	if ((!fresh && !method_like(first)) || !blank)
		return 0;
	prepare(blank, work);
	blank->unsure = !fresh;
	work->held = INSERT(conns, &work->key, blank) == 0; /* else another CPU came first */
	conn = LOOKUP(conns, &work->key);
	if (!conn) {
		count(TABLE_FULL, 1);
		mine.state = CLOSED; /* the copy of this packet is not counted again */
		UPDATE(notes, &work->key, &mine);
		return 0;
	}
	return conn;
}

/* Bytes that we never saw. In a body that is only skipped they do no harm. */
static __always_inline void miss(struct run *run, struct flow *flow, __u32 gap)
{
	struct conn *conn = run->conn;

	if (flow->phase == BODY && !looked_at(flow)) {
		if (flow->left == UNTIL_CLOSE && !(flow->framing & LOOSE))
			return;
		if (flow->left != UNTIL_CLOSE && flow->left > gap) {
			flow->left -= gap;
			conn->digest.torn |= run->work->direction == REQUEST;
			return;
		}
	}
	if (run->work->direction == REQUEST) {
		count(RESYNCS, 1);
		flow->phase = ASTRAY;
		if (conn->open == 1)
			wipe(conn, run->work); /* half a head */
		else if (conn->open)
			conn->rec.flags |= RESYNCED;
	} else if (conn->open == NAMED) {
		go_loose(conn, flow);
		conn->sse.line = OTHER_LINE;
		conn->sse.in_event = conn->sse.told = conn->sse.quiet = 0;
	}
}

/* Whether the receiver would throw the segment away, so far is it from what is expected. Two in a
 * row that follow each other are the stream all the same: we were away. */
SUBPROGRAM int far_off(struct run *run)
{
	struct work *work = run->work;
	struct flow *flow = flow_of(run);
	__s32 ahead = work->seq - flow->next;
	__u32 size = work->end - work->offset;

	if (ahead <= WINDOW && ahead >= -WINDOW)
		return 0;
	if (size && flow->stray == work->seq) {
		if (ahead < 0)
			flow->next = work->seq - 1; /* some bytes were missed, how many is not known */
		return 0;
	}
	if (size)
		flow->stray = work->seq + size;
	return 1;
}

/* Puts the segment in its place in the stream; 0 when it holds nothing new. */
SUBPROGRAM int in_sequence(struct run *run)
{
	struct work *work = run->work;
	struct flow *flow = flow_of(run);
	__u32 size = work->end - work->offset;
	__s32 ahead = work->seq - flow->next;

	if (ahead < 0) {
		if ((__u32)-ahead >= size)
			return 0; /* a copy, or sent again */
		sent_again(run, flow, 0);
		work->offset += -ahead;
	} else if (ahead > 0) {
		miss(run, flow, ahead);
	}
	new_bytes(run, flow, ahead);
	flow->next = work->seq + size;
	flow->stray = flow->next + WINDOW; /* none */
	run->conn->touched = work->now;
	flow->framing &= ~UNHEARD;
	if (flow->phase == ASTRAY) {
		__u8 first[4] = {};

		if (LOAD(run, work->offset, first, 4) < 0 || !method_like(first))
			return 0;
		flow->phase = MESSAGE;
		run->conn->unsure = 1;
	}
	return 1;
}

/* Without trusted framing the last chunk is known by its bytes at the end of a packet. */
SUBPROGRAM void end_loose(struct run *run)
{
	struct work *work = run->work;
	struct flow *flow = flow_of(run);
	__u8 last[6] = {};

	if (!(flow->framing & LOOSE) || work->direction == REQUEST || work->end < work->start + 5)
		return;
	if (LOAD(run, work->end - sizeof(last), last, sizeof(last)) < 0)
		return;
	if (last[1] == '0' && be32(last + 2) == TAIL("\r\n\r\n") &&
	    (last[0] == '\n' || work->end == work->start + 5))
		finish(run->conn, work, COMPLETE, work->now);
}

/* FIN or RST: who ended it. A client that only stops sending may still be answered. */
SUBPROGRAM void close_side(struct run *run)
{
	struct conn *conn = run->conn;
	struct work *work = run->work;
	struct flow *answer = &conn->flows[RESPONSE];
	int reset = work->tcp_flags & RST, server = work->direction == RESPONSE;
	int until_close = answer->phase == BODY && answer->left == UNTIL_CLOSE &&
	                  !(answer->framing & (CHUNKED | HAS_LENGTH | UNHEARD));
	__u8 end = server ? SERVER_CLOSED : CLIENT_GONE;
	__u64 at = work->now;

	if (!server && !conn->client_fin) {
		conn->client_fin = work->now;
		answer->framing |= UNHEARD; /* one that only stopped sending is still answered */
	}
	if (conn->open == NAMED && (reset || server || conn->server_fin)) {
		if (conn->done || (server && !reset && until_close)) {
			end = COMPLETE;
		} else if (conn->server_fin) {
			end = SERVER_CLOSED; /* the request came after the server's FIN */
		} else if (conn->client_fin) {
			end = CLIENT_GONE;
			at = conn->client_fin > conn->touched ? conn->client_fin : conn->touched;
		}
		finish(conn, work, end, at);
		finish_all(conn, work, server || conn->server_fin ? SERVER_CLOSED : CLIENT_GONE, at);
	}
	flow_of(run)->next = work->seq + (work->end - work->start) + 1; /* a FIN's own number */
	if (server)
		conn->server_fin = 1;
	if (reset)
		suffer(work, server ? RESETS_BY_SERVER : RESETS_BY_CLIENT, 1);
	if (reset || (conn->server_fin && conn->client_fin))
		forget(conn, work, CLOSED);
}

/* A new connection: what was there before is over. 0 for the copy of a SYN that we know. */
SUBPROGRAM int open_anew(struct run *run)
{
	struct conn *conn = run->conn;
	struct work *work = run->work;
	struct note note = {.next = work->seq + 1,
	                    .state = OPENING,
	                    .at = work->now,
	                    .sight = SIGHT(run)};

	if (conn) {
		if (conn->isn == work->seq)
			return 0;
		if (conn->open == NAMED)
			finish(conn, work, conn->done ? COMPLETE : LOST, work->now);
		finish_all(conn, work, LOST, work->now);
		forget(conn, work, CLOSED);
	}
	if (new_syn(work, LOOKUP(notes, &work->key), note.sight))
		UPDATE(notes, &work->key, &note);
	return 1;
}

/* SYN of either side; 0 when there is nothing more to do. Its data (TCP fast open) starts behind
 * it, and the server's numbers are told by its own. */
static __always_inline int shake_hands(struct run *run)
{
	struct work *work = run->work;

	if (work->direction == REQUEST) {
		if (!open_anew(run)) {
			leave(run);
			return 0;
		}
		run->conn = 0;
		work->gone = 0;
	} else {
		syn_answered(work);
	}
	work->seq++;
	if (run->conn && run->conn->fast_open) {
		run->conn->fast_open = 0;
		run->conn->flows[RESPONSE].next = work->seq;
	}
	return 1;
}

#endif

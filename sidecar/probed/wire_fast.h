/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Events that are like the last one but for their text, which is nearly all of a stream, without
 * reading them a byte at a time. The lexer is deterministic: bytes with the same hash lead it from
 * the start of an event to the same state at the text's first byte, and from the quote behind the
 * text to the same state at the end; within a string it has no other way out than that quote.
 * Whatever is not exactly so is left to wire_scan.h, untouched.
 */
#ifndef WIRE_FAST_H
#define WIRE_FAST_H

#include "wire_shape.h"

/* A digit of a chunk's size; 16 and more when it is none. */
static __always_inline __u64 hex_digit(__u8 byte)
{
	__u8 digit = byte - '0', letter = (byte | 0x20) - 'a';

	return digit < 10 ? digit : letter < 6 ? letter + 10 : 16;
}

/* Reads the line of a chunk's size at the start of block: sets work->used to its bytes and returns
 * the size; 0 when it is not two or three digits. */
static __always_inline __u64 chunk_size(struct work *work)
{
	__u8 *line = work->block;
	__u64 first = hex_digit(line[0]), second = hex_digit(line[1]), third = hex_digit(line[2]);

	if ((first | second) > 15)
		return 0;
	if (line[2] == '\r' && line[3] == '\n') {
		work->used = 4;
		return first << 4 | second;
	}
	if (third > 15 || line[3] != '\r' || line[4] != '\n')
		return 0;
	work->used = 5;
	return first << 8 | second << 4 | third;
}

/* Loads what may be an event: a chunk with its size and line end, or what is left of the packet.
 * Returns the bytes of the event, 0 when there is none; work->used are those before it. */
static __always_inline __u64 load_event(struct __sk_buff *skb, struct work *work, int chunked)
{
	__u64 there = (__u64)work->end - work->offset, size;

	if (there > BLOCK) {
		if (!chunked)
			return 0;
		there = BLOCK;
	}
	OPAQUE(there);
	if (there < 16 || there > BLOCK ||
	    bpf_skb_load_bytes(skb, work->offset, work->block, there) < 0)
		return 0;
	if (work->dirty < there)
		work->dirty = there;
	if (!chunked) {
		work->used = 0;
		return there;
	}
	size = chunk_size(work);
	return work->used + size + 2 > there ? 0 : size;
}

/* Whether `text` bytes of the event in block are all in which it differs from the last one. */
static __always_inline int has_shape(struct shape *shape, struct work *work, __u32 text,
                                     __u32 line_end)
{
	__u32 place = work->used;

	if ((__s32)text <= 0 || hash_at(work, place, shape->before_size) != shape->before)
		return 0;
	place += shape->before_size + text;
	return hash_at(work, place, shape->behind_size + line_end) == shape->behind;
}

/* What reading it would have done. */
static __always_inline void take_event(struct conn *conn, struct work *work, int chunked,
                                       __u32 size)
{
	conn->fresh_events++;
	conn->tokens++;
	conn->sse.last = conn->shape.last;
	conn->shape.hit = 1;
	conn->shape.wait = conn->shape.patience = 0;
	if (chunked)
		conn->flows[RESPONSE].left = 0;
	work->offset += size;
	conn->rec.response_bytes += size;
}

/* Takes one event that is like the last one; `alone`: only if nothing else is left of the packet. 0
 * when there is none; then nothing is changed but what is known of the last one. */
BY_ITSELF int like_the_last(struct __sk_buff *skb, struct conn *conn, int alone)
{
	struct work *work = LOOKUP(works, &SOLE);
	__u32 size, text, chunked;

	if (!work || !conn || !conn->shape.before_size || work->direction != RESPONSE ||
	    conn->open != NAMED || work->tried == work->offset || !at_event(conn))
		return 0;
	chunked = (conn->flows[RESPONSE].framing & CHUNKED) != 0;
	if (conn->flows[RESPONSE].phase != (chunked ? SIZE : BODY) || (chunked && conn->flows[RESPONSE].at))
		return 0;
	size = load_event(skb, work, chunked);
	if (!size || (alone && work->offset + work->used + size + 2 * chunked != work->end))
		return 0;
	work->tried = work->offset;
	text = size - conn->shape.before_size - conn->shape.behind_size;
	if (!has_shape(&conn->shape, work, text, 2 * chunked)) {
		conn->shape.before_size = 0;
		return 0;
	}
	if (!within_string(work, work->used + conn->shape.before_size, text))
		return 0;
	take_event(conn, work, chunked, work->used + size + 2 * chunked);
	return 1;
}

/* The segment that nearly all are: the next of an answer, one event like the last. Apart from others,
 * without what walking any packet needs. 0, with nothing changed, when it is another. */
SUBPROGRAM int usual(struct __sk_buff *skb, struct work *work, struct conn *conn)
{
	struct flow *flow = &conn->flows[RESPONSE];
	int taken;

	if (work->direction != RESPONSE || work->tcp_flags & (FIN | SYN | RST) ||
	    !conn->shape.before_size || work->seq != flow->next || !try_lock(conn))
		return 0;
	work->now = bpf_ktime_get_ns();
	taken = !conn->gone && same_key(&conn->key, &work->key) && work->seq == flow->next &&
	        like_the_last(skb, conn, 1);
	if (taken) {
		flow->next = work->seq + (work->end - work->start);
		flow->stray = flow->next + WINDOW; /* none */
		flow->sight = sight_of(skb);
		flow->zero_window = 0;
		flow->framing &= ~UNHEARD;
		conn->touched = work->now;
		settle(conn, work);
	}
	wipe_block(work);
	unlock(conn);
	return taken;
}

#endif

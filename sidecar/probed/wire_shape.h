/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The shape of an event: all of it but its text, as two keyed hashes and their lengths. Nothing else
 * is kept of it. It is learnt from an event that was read byte by byte.
 */
#ifndef WIRE_SHAPE_H
#define WIRE_SHAPE_H

#include "wire_tcp.h"

#define TEXT_BYTES 64 /* longer texts are read byte by byte */
#define MOST_PATIENCE 127 /* events that are not learnt from, at most */
#define FRAMING (IS_STREAM | IS_ENCODED | LOOSE | CHUNKED)

/* Not static: the verifier takes such a function once, by itself, and not anew at each call. */
#define BY_ITSELF __attribute__((noinline))

/* Whether a byte of a word is this one: in the lowest that is, the high bit is set. */
static __always_inline __u64 has(__u64 word, __u64 byte)
{
	__u64 rest = word ^ byte * 0x0101010101010101ULL;

	return (rest - 0x0101010101010101ULL) & ~rest & 0x8080808080808080ULL;
}

/* The same for bytes below a space. */
static __always_inline __u64 has_control(__u64 word)
{
	return (word - 0x2020202020202020ULL) & ~word & 0x8080808080808080ULL;
}

/* NH (Black et al., UMAC, 1999): two texts of one length have the same with a chance of 2^-32. */
static __always_inline __u64 nh(__u64 word, __u64 key)
{
	return (__u64)((__u32)word + (__u32)key) * ((__u32)(word >> 32) + (__u32)(key >> 32));
}

/* The hash of work->span bytes of block from work->place on: whole words, and the last eight bytes,
 * whichever words they overlap; of fewer than eight those alone. */
BY_ITSELF __u64 hash_part(void)
{
	struct secret *secret = LOOKUP(secrets, &SOLE);
	struct work *work = LOOKUP(works, &SOLE);
	__u64 place, span, sum, last;
	__u8 *bytes;

	if (!secret || !work)
		return 0;
	place = RELOADED(work->place);
	span = RELOADED(work->span);
	bytes = work->block;
	OPAQUE(place);
	bytes += place & (BLOCK - 1);
	sum = span;
#pragma unroll
	for (int i = 0; i < BLOCK / 8 - 1; i++) {
		if (span < i * 8 + 8)
			break;
		sum += nh(*(__u64 *)(bytes + i * 8), secret->first[i]);
	}
	last = RELOADED(work->last); /* of span the verifier has learnt: see gap_bucket */
	OPAQUE(last);
	bytes += last & (BLOCK - 1);
	return sum + nh(*(__u64 *)bytes << (RELOADED(work->surplus) & 63), secret->second[0]);
}

static __always_inline __u64 hash_at(struct work *work, __u32 place, __u32 span)
{
	*(volatile __u32 *)&work->place = place;
	*(volatile __u32 *)&work->span = span;
	*(volatile __u32 *)&work->last = span < 8 ? 0 : span - 8;
	*(volatile __u32 *)&work->surplus = span < 8 ? (8 - span) * 8 : 0;
	return hash_part();
}

/* Whether `span` bytes of block from `place` on stay within a JSON string, and leave it to the
 * byte behind them to end it. An escape may stand anywhere but there. */
static __always_inline int within_string(struct work *work, __u64 place, __u64 span)
{
	__u64 found = 0, last = span - 1;
	__u8 *bytes = work->block;

	if (last >= TEXT_BYTES)
		return 0;
	*(volatile __u32 *)&work->last = last; /* see hash_part */
	OPAQUE(place);
	bytes += place & (BLOCK - 1);
#pragma unroll
	for (int i = 0; i < TEXT_BYTES / 8; i++) {
		__u64 word = *(__u64 *)(bytes + i * 8), bad = has(word, '"') | has_control(word);

		if (span <= i * 8 + 8) {
			found |= bad << (i * 8 + 8 - span) * 8; /* bytes behind the text drop out */
			break;
		}
		found |= bad;
	}
	last = RELOADED(work->last);
	OPAQUE(last);
	bytes += last & (TEXT_BYTES - 1);
	return !found && *bytes != '\\';
}

/* Whether the answer is a stream that is read, and stands where an event can begin. */
static __always_inline int at_event(struct conn *conn)
{
	struct sse *sse = &conn->sse;
	struct flow *flow = &conn->flows[RESPONSE];

	if (sse->line | sse->in_event | sse->told | sse->quiet)
		return 0;
	if ((flow->framing & FRAMING) == (IS_STREAM | CHUNKED))
		return 1;
	return (flow->framing & FRAMING) == IS_STREAM && flow->left == UNTIL_CLOSE;
}

/* Before `size` bytes of body are read from block: may they be all of one event? */
static __always_inline void prepare_to_learn(struct run *run, struct flow *flow, __u64 size)
{
	struct work *work = run->work;
	struct conn *conn = run->conn;

	work->learning = 0;
	if (size > BLOCK - 8 || !at_event(conn) || conn->shape.before_size)
		return;
	if (flow->framing & CHUNKED ? flow->left != size || flow->length != size
	                            : work->offset + size != work->end)
		return;
	work->learning = size;
	work->fresh_events = conn->fresh_events;
	work->tokens = conn->tokens;
	work->vague = conn->vague;
	work->done = conn->done;
	work->error = conn->error;
}

/* Whether it was one event that brought text and nothing else. */
static __always_inline int was_plain(struct conn *conn, struct work *work)
{
	return conn->fresh_events == work->fresh_events + 1 && conn->tokens == work->tokens + 1 &&
	       conn->vague == work->vague && conn->done == work->done &&
	       conn->error == work->error && conn->sse.text_end && at_event(conn);
}

/* Where shapes are never met again, because each event has a number of its own, they are looked at
 * ever more seldom. */
static __always_inline void lose_patience(struct shape *shape)
{
	if (!shape->hit) {
		shape->wait = shape->patience;
		if (shape->patience < MOST_PATIENCE)
			shape->patience = shape->patience * 2 + 1;
	}
	shape->hit = 0;
}

/* Keeps the shape of the event in block, which has just been read, if it was one. Returns nothing;
 * the verifier wants a number of such a function. */
BY_ITSELF int learn(struct conn *conn)
{
	struct work *work = LOOKUP(works, &SOLE);
	struct shape *shape;
	__u32 chunked;
	__u64 end;

	if (!work || !conn || !was_plain(conn, work))
		return 0;
	shape = &conn->shape;
	if (shape->wait) {
		shape->wait--;
		return 0;
	}
	chunked = conn->flows[RESPONSE].framing & CHUNKED ? 2 : 0;
	end = RELOADED(work->learning);
	if (work->block[0] <= ' ' || work->block[0] > '~') /* half a line end, or an order mark */
		return 0;
	shape->before_size = conn->sse.text_at;
	shape->behind_size = end - conn->sse.text_end;
	shape->last = conn->sse.last;
	OPAQUE(end);
	end &= BLOCK - 1;
	work->block[end] = '\r'; /* as they stand behind a chunk */
	work->block[end + 1] = '\n';
	work->dirty = BLOCK;
	shape->before = hash_at(work, 0, shape->before_size);
	shape->behind = hash_at(work, conn->sse.text_end, shape->behind_size + chunked);
	lose_patience(shape);
	return 0;
}

#endif

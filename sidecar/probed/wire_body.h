/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Where a message's body ends (RFC 9112, 6.3) and the bytes of chunked framing (7.1). Bodies
 * themselves do not come here: they are skipped by arithmetic or read by wire_sse.h.
 */
#ifndef WIRE_BODY_H
#define WIRE_BODY_H

#include "wire_sse.h"

static __always_inline __u8 lower(__u8 byte)
{
	return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte;
}

/* Whether the body that follows holds events to be read. */
static __always_inline int looked_at(struct flow *flow)
{
	return (flow->framing & (IS_STREAM | IS_ENCODED)) == IS_STREAM;
}

/* The framing is not what we think: from here on events are counted by pattern only. */
static __always_inline void go_loose(struct conn *conn, struct flow *flow)
{
	count(RESYNCS, 1);
	conn->rec.flags |= RESYNCED;
	flow->framing |= LOOSE;
	flow->left = UNTIL_CLOSE;
	flow->phase = BODY;
}

static __always_inline __u8 message_ends(struct run *run, struct flow *flow)
{
	struct digest *digest = &run->conn->digest;

	flow->phase = MESSAGE;
	if (run->work->direction == RESPONSE)
		return ENDED;
	if (run->conn->captured && digest->at && !digest->torn)
		digest->whole = 1; /* settle() makes the key of it */
	return GO_ON;
}

static __always_inline void chunk_line(struct flow *flow, __u8 phase)
{
	flow->phase = phase;
	flow->length = 0;
	flow->at = 0;
}

/* Which body follows a head: RFC 9112, 6.3. */
static __always_inline __u8 body_begins(struct run *run, struct flow *flow, int bodiless)
{
	if (bodiless)
		return message_ends(run, flow);
	if (flow->framing & CONFLICT && !(flow->framing & CHUNKED)) {
		go_loose(run->conn, flow); /* a server must refuse such a request and close: 6.3 */
		return GO_ON;
	}
	if (flow->framing & CHUNKED) {
		chunk_line(flow, SIZE);
		return GO_ON;
	}
	flow->phase = BODY;
	if (!(flow->framing & HAS_LENGTH))
		flow->left = UNTIL_CLOSE;
	return flow->left ? GO_ON : message_ends(run, flow);
}

static __always_inline __u8 size_byte(struct run *run, struct flow *flow, __u8 byte)
{
	__u8 digit = lower(byte);

	if (flow->phase == SIZE && digit >= '0' && digit <= '9')
		digit -= '0';
	else if (flow->phase == SIZE && digit >= 'a' && digit <= 'f')
		digit -= 'a' - 10;
	else if (byte == '\n' && flow->at) {
		flow->left = flow->length;
		flow->phase = flow->length ? BODY : TRAILER;
		flow->at = 0;
		return GO_ON;
	} else if ((byte == '\r' || byte == ';' || byte == ' ' || byte == '\t') && flow->at) {
		flow->phase = EXTENSION;
		return GO_ON;
	} else if (flow->phase == EXTENSION) {
		return GO_ON;
	} else {
		go_loose(run->conn, flow);
		return GO_ON;
	}
	if (flow->length >> 40)
		go_loose(run->conn, flow);
	flow->length = flow->length << 4 | digit;
	flow->at = 1;
	return GO_ON;
}

static __always_inline __u8 trailer_byte(struct run *run, struct flow *flow, __u8 byte)
{
	if (byte == '\n' && !flow->at)
		return message_ends(run, flow);
	if (byte != '\r')
		flow->at = byte != '\n';
	return GO_ON;
}

static __always_inline void after_chunk(struct run *run, struct flow *flow, __u8 byte)
{
	if (byte == '\n')
		chunk_line(flow, SIZE);
	else if (byte != '\r')
		go_loose(run->conn, flow);
}

/* A byte of chunked framing. */
static __always_inline __u8 chunk_byte(struct run *run, struct flow *flow, __u8 byte)
{
	if (flow->phase == TRAILER)
		return trailer_byte(run, flow, byte);
	if (flow->phase == AFTER_CHUNK) {
		after_chunk(run, flow, byte);
		return GO_ON;
	}
	return size_byte(run, flow, byte);
}

#endif

/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * One byte of a message's head (RFC 9112, 3 and 4): request line and status line; header fields
 * are read by wire_fields.h.
 */
#ifndef WIRE_HEAD_H
#define WIRE_HEAD_H

#include "wire_fields.h"

static __always_inline __u8 message_begins(struct run *run, struct flow *flow)
{
	struct conn *conn = run->conn;

	flow->framing = 0;
	flow->length = 0;
	flow->window = 0;
	flow->at = 0;
	if (run->work->direction == RESPONSE) {
		conn->rec.byte0 = run->work->now;
		flow->phase = STATUS;
		return GO_ON;
	}
	if (conn->open && (conn->flows[RESPONSE].framing & LOOSE))
		return REPLACED; /* its end was among the bytes that were missed */
	flow->phase = METHOD;
	conn->captured = !conn->open;
	if (conn->open) {
		count(PIPELINED, 1);
		if (!conn->pending)
			conn->pending_at = run->work->now;
		if (conn->pending < 255)
			conn->pending++;
		return GO_ON;
	}
	conn->open = 1;
	conn->rec.start = run->work->now;
	/* What the client has acknowledged was the last response, even if we did not see it. */
	if ((__s32)(run->work->ack - conn->flows[RESPONSE].next) > 0)
		conn->flows[RESPONSE].next = run->work->ack;
	return GO_ON;
}

static __always_inline __u8 first_byte(struct run *run, struct flow *flow, __u8 byte)
{
	if (byte == '\r' || byte == '\n')
		return GO_ON;
	if (run->work->direction == RESPONSE && byte != 'H')
		return GARBAGE;
	if (run->work->direction == REQUEST && (byte < 'A' || byte > 'Z'))
		return byte == 0x16 ? TLS : GARBAGE;
	return message_begins(run, flow);
}

static __always_inline __u8 method_byte(struct run *run, struct flow *flow, __u8 byte)
{
	struct conn *conn = run->conn;
	__u64 at = flow->at;

	if (byte == ' ') {
		if (flow->window == TAIL("pri"))
			return HTTP2;
		if (conn->captured)
			conn->head_request = flow->window == TAIL("head");
		flow->phase = PATH;
		flow->at = 0;
		return GO_ON;
	}
	if (byte < 'A' || byte > 'Z' || at > 16)
		return GARBAGE;
	OPAQUE(at);
	if (conn->captured && at < sizeof(conn->rec.method) - 1)
		conn->rec.method[at] = byte;
	flow->window = flow->window << 8 | lower(byte);
	flow->at++;
	return GO_ON;
}

static __always_inline __u8 path_byte(struct run *run, struct flow *flow, __u8 byte)
{
	struct conn *conn = run->conn;
	__u64 at = flow->at;

	if (byte == ' ') {
		flow->phase = VERSION;
		flow->window = 0;
		return GO_ON;
	}
	if (byte == '\n')
		return GARBAGE;
	if (byte == '?' || byte == '#')
		flow->at = at = sizeof(conn->rec.path); /* what follows may hold a secret */
	OPAQUE(at);
	if (at < sizeof(conn->rec.path) - 1) {
		if (conn->captured)
			conn->rec.path[at] = printable(byte);
		flow->at++;
	}
	return GO_ON;
}

static __always_inline __u8 version_byte(struct run *run, struct flow *flow, __u8 byte)
{
	if (byte == '\r')
		return GO_ON;
	if (byte != '\n') {
		flow->window = flow->window << 8 | lower(byte);
		return GO_ON;
	}
	if (flow->window >> 8 != TAIL("http/1."))
		return GARBAGE;
	count(REQUESTS, 1);
	if (run->conn->captured)
		run->conn->open = NAMED;
	head_line(flow);
	return GO_ON;
}

static __always_inline __u8 status_byte(struct run *run, struct flow *flow, __u8 byte)
{
	struct wire_record *rec = &run->conn->rec;

	if (flow->phase == STATUS) {
		if (byte != ' ') {
			flow->window = flow->window << 8 | lower(byte);
			return ++flow->at > 8 ? GARBAGE : GO_ON;
		}
		if (flow->window >> 8 != TAIL("http/1."))
			return GARBAGE;
		flow->phase = CODE;
		return GO_ON;
	}
	if (flow->phase == CODE && byte >= '0' && byte <= '9') {
		flow->length = flow->length * 10 + (byte - '0');
		return flow->length > 999 ? GARBAGE : GO_ON;
	}
	if (flow->phase == CODE) {
		if (flow->length < 100)
			return GARBAGE;
		rec->status = flow->length;
		flow->length = 0;
		flow->phase = REASON;
	}
	if (byte == '\n')
		head_line(flow);
	return GO_ON;
}

static __always_inline __u8 head_ends(struct run *run, struct flow *flow)
{
	struct conn *conn = run->conn;
	__u16 status = conn->rec.status;

	if (run->work->direction == REQUEST)
		return body_begins(run, flow, !(flow->framing & (CHUNKED | HAS_LENGTH)));
	if (status == 101)
		return UPGRADED;
	if (status < 200) {
		conn->rec.byte0 = 0;
		flow->phase = MESSAGE;
		return GO_ON;
	}
	if (flow->framing & IS_STREAM)
		conn->rec.flags |= STREAMED;
	if (flow->framing & IS_ENCODED)
		conn->rec.flags |= ENCODED;
	return body_begins(run, flow, conn->head_request || status == 204 || status == 304);
}

static __always_inline __u8 name_byte(struct run *run, struct flow *flow, __u8 byte)
{
	if (byte == '\r')
		return GO_ON;
	if (byte == '\n') {
		if (!flow->at)
			return head_ends(run, flow);
		head_line(flow); /* a line without a colon */
	} else if (byte == ':') {
		name_ends(run, flow);
	} else {
		flow->hash = MIX(flow->hash, lower(byte));
		flow->at = 1;
	}
	return GO_ON;
}

/* A byte of a head. Says why the run over this packet stops, or GO_ON. */
static __always_inline __u8 head_byte(struct run *run, struct flow *flow, __u8 byte)
{
	if (flow->phase == MESSAGE) {
		__u8 verdict = first_byte(run, flow, byte);

		if (verdict != GO_ON || flow->phase == MESSAGE)
			return verdict;
	}
	switch (flow->phase) {
	case METHOD:
		return method_byte(run, flow, byte);
	case PATH:
		return path_byte(run, flow, byte);
	case VERSION:
		return version_byte(run, flow, byte);
	case NAME:
		return name_byte(run, flow, byte);
	case VALUE:
		value_byte(run, flow, byte);
		return GO_ON;
	default:
		return status_byte(run, flow, byte);
	}
}

#endif

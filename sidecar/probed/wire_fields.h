/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Header fields (RFC 9112, 5): names are compared by hash, and of the values only the body's
 * framing and two ids are kept.
 */
#ifndef WIRE_FIELDS_H
#define WIRE_FIELDS_H

#include "wire_body.h"

enum header {
	UNKNOWN, CONTENT_LENGTH, TRANSFER_ENCODING, CONTENT_TYPE, CONTENT_ENCODING, TRACEPARENT,
	REQUEST_ID
};

static __always_inline __u8 header_of(__u32 hash)
{
	return hash == H("content-length")      ? CONTENT_LENGTH
	       : hash == H("transfer-encoding") ? TRANSFER_ENCODING
	       : hash == H("content-type")      ? CONTENT_TYPE
	       : hash == H("content-encoding")  ? CONTENT_ENCODING
	       : hash == H("traceparent")       ? TRACEPARENT
	       : hash == H("x-request-id")      ? REQUEST_ID
	                                        : UNKNOWN;
}

static __always_inline __u8 printable(__u8 byte)
{
	return byte > ' ' && byte < 0x7f ? byte : '?';
}

static __always_inline void head_line(struct flow *flow)
{
	flow->phase = NAME;
	flow->at = 0;
	flow->hash = 0;
}

/* One length of a list, or of a header that comes again: all must be the same. */
static __always_inline void length_ends(struct flow *flow)
{
	if (flow->framing & HAS_LENGTH && flow->left != flow->length)
		flow->framing |= CONFLICT;
	flow->framing |= HAS_LENGTH;
	flow->left = flow->length;
	flow->length = 0;
}

static __always_inline void value_ends(struct flow *flow)
{
	__u8 at = flow->at;

	if (flow->header == CONTENT_ENCODING && at && flow->window != TAIL("identity"))
		flow->framing |= IS_ENCODED;
	if (flow->header == CONTENT_LENGTH && at)
		length_ends(flow);
	head_line(flow);
	flow->fold = at;
}

/* A line that begins with a space goes on with the value before (RFC 9112, 5.2). */
static __always_inline void value_goes_on(struct flow *flow)
{
	flow->at = flow->header == CONTENT_LENGTH ? 0 : flow->fold;
	flow->phase = VALUE;
}

static __always_inline void keep_id(char *id, __u64 size, __u64 at, __u8 byte)
{
	OPAQUE(at);
	if (at < size - 1)
		id[at] = printable(byte);
}

static __always_inline void value_byte(struct run *run, struct flow *flow, __u8 byte)
{
	struct conn *conn = run->conn;
	__u8 header = flow->header;
	__u64 at = RELOADED(flow->at);

	if (byte == '\n')
		return value_ends(flow);
	if (header == UNKNOWN || byte == '\r' || byte == ' ' || byte == '\t')
		return;
	flow->window = flow->window << 8 | lower(byte);
	if (header == CONTENT_LENGTH) {
		if (byte == ',')
			return length_ends(flow);
		if (byte < '0' || byte > '9')
			flow->framing |= CONFLICT;
		else if (!(flow->length >> 48))
			flow->length = flow->length * 10 + (byte - '0');
	} else if (header == TRANSFER_ENCODING) {
		if ((flow->window & ~0ULL >> 8) == TAIL("chunked"))
			flow->framing |= CHUNKED;
	} else if (header == CONTENT_TYPE) {
		/* of text/event-stream; only an answer's events are read */
		if (flow->window == TAIL("t-stream") && run->work->direction == RESPONSE)
			flow->framing |= IS_STREAM;
	} else if (header == TRACEPARENT) {
		keep_id(conn->rec.traceparent, sizeof(conn->rec.traceparent), at, byte);
	} else if (header == REQUEST_ID) {
		keep_id(conn->rec.request_id, sizeof(conn->rec.request_id), at, byte);
	}
	if (at < 255)
		flow->at++;
}

static __always_inline void name_ends(struct run *run, struct flow *flow)
{
	struct conn *conn = run->conn;
	__u8 header = header_of(flow->hash);

	/* The first of each counts. A response's id is taken only where the request had none: Envoy
	 * generates one and gives it to the upstream and, when told so, to the client. */
	if (header == TRACEPARENT && (run->work->direction == RESPONSE || !conn->captured ||
	                              conn->rec.traceparent[0]))
		header = UNKNOWN;
	if (header == REQUEST_ID && ((run->work->direction == REQUEST && !conn->captured) ||
	                             conn->rec.request_id[0]))
		header = UNKNOWN;
	if (header == CONTENT_LENGTH)
		flow->length = 0;
	flow->header = header;
	flow->phase = VALUE;
	flow->window = 0;
	flow->at = 0;
}

#endif

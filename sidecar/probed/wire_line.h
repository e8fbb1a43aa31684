/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The first line of a message (RFC 9112, 3 and 4), a byte at a time: request line, with what it
 * means for a request before it, and status line.
 */
#ifndef WIRE_LINE_H
#define WIRE_LINE_H

#include "wire_fields.h"

/* flow.hash within a target (RFC 9112, 3.2): its first byte, slashes of a URL passed, a path. */
enum target { TARGET, URL, URL_SLASH, URL_HOST, A_PATH };

/* Whether the client has acknowledged bytes of the response that we did not see, and which say
 * that it is over: unless its length tells that more of a skipped body follows. */
static __always_inline int answered_unseen(struct conn *conn, struct work *work)
{
	struct flow *answer = &conn->flows[RESPONSE];
	__s32 ahead = work->ack - answer->next;

	if (ahead <= 0 || ahead > WINDOW)
		return 0;
	return answer->phase != BODY || looked_at(answer) || answer->left == UNTIL_CLOSE ||
	       answer->left <= ahead;
}

static __always_inline __u8 request_begins(struct run *run, struct flow *flow)
{
	struct conn *conn = run->conn;
	struct flow *answer = &conn->flows[RESPONSE];

	if (conn->open && (answer->framing & LOOSE))
		return REPLACED; /* its end was among the bytes that were missed */
	if (conn->open && answered_unseen(conn, run->work)) {
		count(RESYNCS, 1);
		conn->rec.flags |= RESYNCED;
		return REPLACED;
	}
	flow->phase = METHOD;
	conn->captured = !conn->open;
	if (conn->open)
		return WAITS;
	conn->open = 1;
	conn->rec.start = run->work->now;
	/* What the client has acknowledged was the last response, even if we did not see it. */
	if ((__s32)(run->work->ack - answer->next) > 0)
		answer->next = run->work->ack;
	return GO_ON;
}

static __always_inline __u8 message_begins(struct run *run, struct flow *flow)
{
	flow->framing = 0;
	flow->length = 0;
	flow->left = 0;
	flow->window = 0;
	flow->header = UNKNOWN;
	flow->at = 0;
	if (run->work->direction == REQUEST)
		return request_begins(run, flow);
	run->conn->rec.byte0 = run->work->now;
	flow->phase = STATUS;
	return GO_ON;
}

static __always_inline __u8 first_byte(struct run *run, struct flow *flow, __u8 byte)
{
	if (byte == '\r' || byte == '\n')
		return GO_ON;
	if (run->work->direction == RESPONSE && byte != 'H')
		return GARBAGE;
	if (run->work->direction == REQUEST && (byte < 'A' || byte > 'Z'))
		return byte == 0x16 ? IS_TLS : GARBAGE;
	return message_begins(run, flow);
}

/* HEAD: of the request in rec, or of the newest that waits. */
static __always_inline void is_head(struct conn *conn)
{
	__u64 place = (conn->first + conn->pending - 1) & (WAITING - 1);

	if (conn->captured || !conn->pending)
		conn->head_request = 1;
	else if (conn->pending <= WAITING)
		conn->heads |= 1 << place;
}

static __always_inline __u8 method_byte(struct run *run, struct flow *flow, __u8 byte)
{
	struct conn *conn = run->conn;
	__u64 at = RELOADED(flow->at);

	if (byte == ' ') {
		if (flow->window == TAIL("pri"))
			return HTTP2;
		if (flow->window == TAIL("head"))
			is_head(conn);
		flow->phase = PATH;
		flow->hash = TARGET;
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

/* Of a whole URL the path is kept, never user, password and host. Says whether this byte is. */
static __always_inline int within_path(struct flow *flow, __u8 byte)
{
	if (flow->hash == A_PATH)
		return 1;
	if (flow->hash == TARGET)
		flow->hash = byte == '/' || byte == '*' ? A_PATH : URL;
	else if (byte == '/')
		flow->hash++;
	return flow->hash == A_PATH;
}

static __always_inline __u8 path_byte(struct run *run, struct flow *flow, __u8 byte)
{
	struct conn *conn = run->conn;
	__u64 at = RELOADED(flow->at);

	if (byte == ' ') {
		if (flow->hash == URL_HOST && conn->captured)
			conn->rec.path[0] = '/'; /* http://host */
		flow->phase = VERSION;
		flow->window = 0;
		flow->at = 0;
		return GO_ON;
	}
	if (byte == '\n')
		return GARBAGE;
	if (!within_path(flow, byte)) {
		if (byte == '?' || byte == '#')
			flow->at = sizeof(conn->rec.path);
		return conn->unsure ? DOUBT : GO_ON;
	}
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

/* The rest of the line is the version and nothing else, or what came before was prose. */
static __always_inline __u8 version_byte(struct run *run, struct flow *flow, __u8 byte)
{
	struct conn *conn = run->conn;

	if (byte == '\r') {
		flow->at += 16;
		return GO_ON;
	}
	if (byte != '\n') {
		flow->window = flow->window << 8 | lower(byte);
		return ++flow->at > 8 ? GARBAGE : GO_ON;
	}
	if (flow->window >> 8 != TAIL("http/1.") || (flow->at & 15) != 8)
		return GARBAGE;
	if (conn->unsure && flow->at != 24)
		return DOUBT;
	conn->unsure = 0;
	count(REQUESTS, 1);
	if (conn->captured)
		conn->open = NAMED;
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

#endif

/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * One byte of a message's head: its first line is read by wire_line.h, fields by wire_fields.h.
 */
#ifndef WIRE_HEAD_H
#define WIRE_HEAD_H

#include "wire_line.h"

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
		conn->rec.status = 0;
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
	if ((byte == ' ' || byte == '\t') && !flow->at) {
		value_goes_on(flow);
	} else if (byte == '\n') {
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

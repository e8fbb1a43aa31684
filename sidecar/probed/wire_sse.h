/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * One byte of a server-sent event stream, after de-chunking: finds events (WHATWG HTML, 9.2.6:
 * consecutive data lines are one event). Their JSON is read by wire_json.h, the first SEARCH bytes
 * of it: what an event is must show there.
 */
#ifndef WIRE_SSE_H
#define WIRE_SSE_H

#include "wire_json.h"

#define SEARCH 512

/* sse.line: below DATA_COLON it counts how much of "data:" the line has matched. */
enum line {
	DATA_COLON = 5, OTHER_LINE, FIRST, AFTER_SPACE, BRACKET, IN_JSON,
	EVENT, EVENT_COLON = EVENT + 4, EVENT_VALUE /* EVENT: the e of "event:" */
};

static __always_inline void begin_event(struct conn *conn)
{
	conn->fresh_events++;
	conn->sse.in_event = 1;
	conn->sse.depth = conn->sse.nested = 0;
	conn->sse.seen = 0;
	conn->sse.hash = 0; /* of the event before: a colon that no string precedes would take it */
	conn->sse.text_end = 0;
	conn->sse.json = BETWEEN;
}

/* The byte behind "data:" tells [DONE] from an event. Says whether it is to be lexed. */
static __always_inline int data_begins(struct conn *conn, __u8 byte)
{
	struct sse *sse = &conn->sse;

	if (sse->line == BRACKET && byte == 'D') {
		conn->done = 1;
		sse->line = OTHER_LINE;
		return 0;
	}
	if (sse->line == FIRST && byte == ' ') {
		sse->line = AFTER_SPACE;
		return 0;
	}
	if (sse->line != BRACKET && byte == '[') {
		sse->line = BRACKET;
		return 0;
	}
	begin_event(conn);
	sse->line = sse->quiet ? OTHER_LINE : IN_JSON;
	return !sse->quiet;
}

static __always_inline void line_ends(struct conn *conn, __u8 byte)
{
	struct sse *sse = &conn->sse;

	__u8 second_half = sse->line == 0 && sse->last == '\r' && byte == '\n';

	sse->last = byte;
	if (second_half)
		return;
	if (sse->line >= FIRST && sse->line <= BRACKET)
		begin_event(conn); /* one without data, or of a bracket */
	if (sse->line == EVENT_VALUE)
		type_told(conn);
	if (sse->line == 0)
		sse->in_event = sse->told = sse->quiet = 0;
	sse->line = 0;
	sse->begun = 1;
}

/* A byte of a line that begins with "e": "event:" and a type. */
static __always_inline void event_byte(struct sse *sse, __u8 line, __u8 byte)
{
	__u8 wanted = line == EVENT       ? 'v'
	              : line == EVENT + 1 ? 'e'
	              : line == EVENT + 2 ? 'n'
	              : line == EVENT + 3 ? 't'
	                                  : ':';

	if (line == EVENT_VALUE) {
		if (byte == ' ')
			return;
		sse->hash = MIX(sse->hash, byte);
		sse->tail = sse->tail << 8 | byte;
		return;
	}
	sse->line = byte == wanted ? line + 1 : OTHER_LINE;
	sse->hash = 0;
	sse->tail = 0;
}

/* A byte of "data:" at the start of a line. */
static __always_inline __u8 field_byte(struct sse *sse, __u8 line, __u8 byte)
{
	__u8 wanted = line == 0 ? 'd' : line == 2 ? 't' : line == 4 ? ':' : 'a';

	if (byte != wanted) {
		if (line == 0 && byte == 'e')
			return EVENT;
		/* the byte order mark: EF BB BF */
		return line == 0 && byte >= 0xbb && !sse->begun ? 0 : OTHER_LINE;
	}
	if (line < 4)
		return line + 1;
	if (!sse->in_event)
		return FIRST;
	return sse->quiet ? OTHER_LINE : IN_JSON;
}

/* The event goes on, but not for us: the rest is passed over up to its end. */
static __always_inline void stop_reading(struct conn *conn)
{
	struct sse *sse = &conn->sse;

	conn->vague += !sse->told;
	sse->quiet = 1;
	sse->line = OTHER_LINE;
}

static __always_inline void sse_byte(struct conn *conn, __u8 byte, __u32 at)
{
	struct sse *sse = &conn->sse;
	__u8 line = sse->line;
	int lexed = line == IN_JSON;

	if (byte <= '\r' && (byte == '\n' || byte == '\r')) {
		line_ends(conn, byte);
		return;
	}
	if (line == OTHER_LINE)
		return;
	if (line < DATA_COLON)
		sse->line = field_byte(sse, line, byte);
	else if (line >= EVENT)
		event_byte(sse, line, byte);
	else if (line != IN_JSON)
		lexed = data_begins(conn, byte);
	if (!lexed)
		return;
	if (sse->seen++ >= SEARCH) {
		stop_reading(conn);
		return;
	}
	json_byte(conn, byte, at);
	if (sse->quiet)
		sse->line = OTHER_LINE;
}

#endif

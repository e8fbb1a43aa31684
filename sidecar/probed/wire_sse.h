/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * One byte of a server-sent event stream, after de-chunking: finds events (WHATWG HTML, 9.2.6:
 * consecutive data lines are one event) and, in their JSON, generated text and errors.
 *
 * A small JSON lexer rather than a pattern: key names are compared whole, and quotes escaped
 * inside generated text cannot look like a key.
 */
#ifndef WIRE_SSE_H
#define WIRE_SSE_H

#include "wire_state.h"

/* sse.line: below DATA_COLON it counts how much of "data:" the line has matched. */
enum line { DATA_COLON = 5, OTHER_LINE, FIRST, AFTER_SPACE, BRACKET, IN_JSON };
enum json { BETWEEN, AFTER_COLON, TEXT_FIRST, ERROR_FIRST, STRING, TYPE_STRING, ESCAPE };

#define MIX(hash, byte) ((hash) * 31 + (byte))

/* clang folds this for a literal. */
static __always_inline __u32 hash_of(const char *text, int length)
{
	__u32 hash = 0;

#pragma unroll
	for (int i = 0; i < length; i++)
		hash = MIX(hash, (__u8)text[i]);
	return hash;
}
#define H(text) hash_of(text, sizeof(text) - 1)

/* The keys under which engines stream what they generate. */
static __always_inline int is_text_key(__u32 key)
{
	return key == H("content") || key == H("text") || key == H("reasoning_content") ||
	       key == H("reasoning") || key == H("arguments") || key == H("delta") ||
	       key == H("text_output") || key == H("partial_json") || key == H("thinking") ||
	       key == H("refusal");
}

/* The first byte of a key's value. Returns the lexer's next state. */
static __always_inline __u8 value_begins(struct conn *conn, __u8 byte)
{
	__u32 key = conn->sse.key;

	if (byte == ' ' || byte == '\t')
		return AFTER_COLON;
	if (byte != '"') {
		/* null and false say that there was none */
		if (key == H("error") && byte != 'n' && byte != 'f') {
			conn->error = 1;
			conn->sse.told = 1;
		}
		return BETWEEN;
	}
	conn->sse.hash = 0;
	if (is_text_key(key))
		return TEXT_FIRST;
	if (key == H("error"))
		return ERROR_FIRST;
	return key == H("object") || key == H("type") ? TYPE_STRING : STRING;
}

static __always_inline __u8 string_ends(struct conn *conn, __u8 state)
{
	if (state == TYPE_STRING && conn->sse.hash == H("error")) {
		conn->error = 1;
		conn->sse.told = 1;
	}
	return BETWEEN;
}

static __always_inline void json_byte(struct conn *conn, __u8 byte)
{
	struct sse *sse = &conn->sse;
	__u8 state = sse->json;

	if (state == STRING || state == TYPE_STRING) {
		if (byte == '"')
			sse->json = string_ends(conn, state);
		else if (byte == '\\')
			sse->json = ESCAPE;
		else
			sse->hash = MIX(sse->hash, byte);
	} else if (state == BETWEEN) {
		if (byte == '"') {
			sse->json = STRING;
			sse->hash = 0;
		} else if (byte == ':') {
			sse->json = AFTER_COLON;
			sse->key = sse->hash;
		}
	} else if (state == AFTER_COLON) {
		sse->json = value_begins(conn, byte);
	} else if (state == ESCAPE) {
		sse->hash = MIX(sse->hash, '\\');
		sse->json = STRING;
	} else { /* the first byte of a text's or an error's string: empty when it is the quote */
		if (byte != '"') {
			if (state == TEXT_FIRST)
				conn->tokens++;
			else
				conn->error = 1;
			sse->told = 1;
		}
		sse->json = BETWEEN;
	}
	if (sse->told)
		sse->line = OTHER_LINE;
}

static __always_inline void begin_event(struct conn *conn)
{
	conn->fresh_events++;
	conn->sse.in_event = 1;
	conn->sse.told = 0;
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
	sse->line = IN_JSON;
	return 1;
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
	if (sse->line == 0)
		sse->in_event = 0;
	sse->line = 0;
}

/* A byte of "data:" at the start of a line. */
static __always_inline __u8 field_byte(struct sse *sse, __u8 line, __u8 byte)
{
	__u8 wanted = line == 0 ? 'd' : line == 2 ? 't' : line == 4 ? ':' : 'a';

	if (byte != wanted)
		return OTHER_LINE;
	if (line < 4)
		return line + 1;
	if (!sse->in_event)
		return FIRST;
	return sse->told ? OTHER_LINE : IN_JSON;
}

static __always_inline void sse_byte(struct conn *conn, __u8 byte)
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
	else if (line != IN_JSON)
		lexed = data_begins(conn, byte);
	if (lexed)
		json_byte(conn, byte);
}

#endif

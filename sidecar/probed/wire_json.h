/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * One byte of an event's JSON: generated text, errors, and the type that says that text is told
 * again.
 *
 * A small lexer rather than a pattern: key names are compared whole, and quotes escaped inside
 * generated text cannot look like a key.
 */
#ifndef WIRE_JSON_H
#define WIRE_JSON_H

#include "wire_state.h"

enum json {
	BETWEEN, AFTER_COLON, TEXT_FIRST, ERROR_FIRST, ERROR_OBJECT, STRING, TYPE_STRING, ESCAPE
};

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

/* The last bytes of a window, as a literal of up to eight. */
static __always_inline __u64 tail_of(const char *text, int length)
{
	__u64 tail = 0;

#pragma unroll
	for (int i = 0; i < length; i++)
		tail = tail << 8 | (__u8)text[i];
	return tail;
}
#define TAIL(text) tail_of(text, sizeof(text) - 1)

/* The keys under which engines stream what they generate. */
static __always_inline int is_text_key(__u32 key)
{
	return key == H("content") || key == H("text") || key == H("reasoning_content") ||
	       key == H("reasoning") || key == H("arguments") || key == H("delta") ||
	       key == H("text_output") || key == H("partial_json") || key == H("thinking") ||
	       key == H("refusal");
}

static __always_inline void error_found(struct conn *conn)
{
	conn->error = 1;
	conn->sse.quiet = 1;
}

/* The type of an event, by its JSON or its "event:" line. Events such as response.output_text.done,
 * response.completed and response.incomplete bring the text of earlier ones once more. */
static __always_inline void type_told(struct conn *conn)
{
	struct sse *sse = &conn->sse;

	if (sse->hash == H("error"))
		error_found(conn);
	else if ((sse->tail & 0xffffffffff) == TAIL(".done") || sse->tail == TAIL("ompleted") ||
	         sse->tail == TAIL("complete"))
		sse->quiet = 1;
}

/* The value of "error" that is no string. null, false, 0 and what is empty say that there is none. */
static __always_inline __u8 error_begins(struct conn *conn, __u8 byte)
{
	if (byte == '{' || byte == '[')
		return ERROR_OBJECT;
	if (byte != 'n' && byte != 'f' && byte != '0')
		error_found(conn);
	return BETWEEN;
}

/* The first byte of a key's value. Returns the lexer's next state. */
static __always_inline __u8 value_begins(struct conn *conn, __u8 byte)
{
	struct sse *sse = &conn->sse;
	__u32 key = sse->key;

	if (byte == ' ' || byte == '\t')
		return AFTER_COLON;
	if (byte != '"') {
		sse->depth += byte == '{';
		return key == H("error") ? error_begins(conn, byte) : BETWEEN;
	}
	sse->hash = 0;
	if (!sse->told && is_text_key(key))
		return TEXT_FIRST;
	if (key == H("error"))
		return ERROR_FIRST;
	/* deeper, it is the type of a part: {"content":[{"type":"text"}]} */
	if (sse->depth > 1 || (key != H("object") && key != H("type")))
		return STRING;
	sse->tail = 0;
	return TYPE_STRING;
}

static __always_inline void string_byte(struct conn *conn, __u8 byte)
{
	struct sse *sse = &conn->sse;

	if (byte == '"') {
		if (sse->json == TYPE_STRING)
			type_told(conn);
		sse->json = BETWEEN;
	} else if (byte == '\\') {
		sse->json = ESCAPE;
	} else {
		sse->hash = MIX(sse->hash, byte);
		if (sse->json == TYPE_STRING)
			sse->tail = sse->tail << 8 | byte;
	}
}

/* The first byte of a text's or an error's string: empty when it is the quote. */
static __always_inline void first_of_string(struct conn *conn, __u8 byte)
{
	struct sse *sse = &conn->sse;

	if (byte == '"') {
		sse->json = BETWEEN;
		return;
	}
	if (sse->json == ERROR_FIRST) {
		error_found(conn);
	} else {
		conn->tokens++;
		sse->told = 1;
	}
	sse->json = byte == '\\' ? ESCAPE : STRING;
}

/* Outside of strings. */
static __always_inline void between_byte(struct sse *sse, __u8 byte)
{
	if (byte == '"') {
		sse->json = STRING;
		sse->hash = 0;
	} else if (byte == ':') {
		sse->json = AFTER_COLON;
		sse->key = sse->hash;
	} else if (byte == '{') {
		sse->depth++;
	} else if (byte == '}') {
		sse->depth--;
	}
}

static __always_inline void json_byte(struct conn *conn, __u8 byte)
{
	struct sse *sse = &conn->sse;
	__u8 state = sse->json;

	if (state == STRING || state == TYPE_STRING) {
		string_byte(conn, byte);
	} else if (state == BETWEEN) {
		between_byte(sse, byte);
	} else if (state == AFTER_COLON) {
		sse->json = value_begins(conn, byte);
	} else if (state == ESCAPE) {
		sse->hash = MIX(sse->hash, '\\');
		sse->json = STRING;
	} else if (state != ERROR_OBJECT) {
		first_of_string(conn, byte);
	} else if (byte != ' ' && byte != '\t') {
		if (byte != '}' && byte != ']')
			error_found(conn);
		sse->depth -= byte == '}';
		sse->json = BETWEEN;
	}
}

#endif

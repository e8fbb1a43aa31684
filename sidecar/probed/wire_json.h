/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * One byte of an event's JSON: generated text, errors, the type that says that text is told again,
 * and the answer's id.
 *
 * A small lexer rather than a pattern: key names are compared whole, and quotes escaped inside
 * generated text cannot look like a key.
 */
#ifndef WIRE_JSON_H
#define WIRE_JSON_H

#include "wire_digest.h"

enum json {
	BETWEEN, AFTER_COLON, TEXT_FIRST, ERROR_FIRST, ERROR_OBJECT, STRING, TYPE_STRING, ID_STRING,
	TEXT_STRING, ESCAPE, TEXT_ESCAPE
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

/* One branch for two words: the product is exact, and 0 where a factor is. */
static __always_inline int one_of(__u32 key, __u32 one, __u32 other)
{
	return (__u64)(key ^ one) * (key ^ other) == 0;
}

/* The keys under which engines stream what they generate. */
static __always_inline int is_text_key(__u32 key)
{
	return one_of(key, H("content"), H("text")) || one_of(key, H("delta"), H("reasoning")) ||
	       one_of(key, H("reasoning_content"), H("arguments")) ||
	       one_of(key, H("text_output"), H("partial_json")) ||
	       one_of(key, H("thinking"), H("refusal"));
}

/* The keys under which the answer lies within an event of the Responses and Messages APIs. */
static __always_inline int is_answer(__u32 key)
{
	return one_of(key, H("response"), H("message"));
}

static __always_inline void object_begins(struct sse *sse, int answer)
{
	if (++sse->depth == 2)
		sse->nested = answer;
}

static __always_inline void error_found(struct conn *conn)
{
	conn->error = 1;
	conn->sse.quiet = 1;
}

/* The type of an event, by its JSON or its "event:" line. Events such as response.output_text.done,
 * response.completed and response.incomplete bring the text of earlier ones once more;
 * response.created, .queued and .in_progress none, though they are long. */
static __always_inline void type_told(struct conn *conn)
{
	struct sse *sse = &conn->sse;

	if (sse->hash == H("error"))
		error_found(conn);
	else if ((sse->tail & 0xffffffffff) == TAIL(".done") || sse->tail == TAIL("ompleted") ||
	         sse->tail == TAIL("complete"))
		sse->quiet = 1;
	else if (sse->tail == TAIL(".created") || (sse->tail & ~0ULL >> 8) == TAIL(".queued") ||
	         (sse->tail == TAIL("progress") && sse->hash != H("progress")))
		sse->told = 1;
}

/* The answer's id is that of the outermost object, or of what the Responses and Messages APIs nest
 * in it; the first of a stream that is not empty counts. */
static __always_inline int is_answers_id(struct conn *conn)
{
	struct sse *sse = &conn->sse;

	return sse->key == H("id") && (sse->depth == 1 || (sse->depth == 2 && sse->nested)) &&
	       !conn->rec.response_key;
}

/* FNV-1a that starts from a secret, and folds so that a byte reaches all bits. */
static __always_inline void id_byte(struct sse *sse, __u8 byte)
{
	sse->tail = (sse->tail ^ byte) * 0x100000001b3ULL;
	sse->tail ^= sse->tail >> 32;
}

static __always_inline void id_ends(struct conn *conn)
{
	struct sse *sse = &conn->sse;

	if (sse->tail != conn->salt) /* else it is empty */
		conn->rec.response_key = mixed(sse->tail, conn->salt);
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
		if (byte == '{')
			object_begins(sse, sse->depth == 1 && is_answer(key));
		return key == H("error") ? error_begins(conn, byte) : BETWEEN;
	}
	sse->hash = 0;
	if (!sse->told && is_text_key(key))
		return TEXT_FIRST;
	if (key == H("error"))
		return ERROR_FIRST;
	if (is_answers_id(conn)) {
		sse->tail = conn->salt;
		return ID_STRING;
	}
	/* deeper, it is the type of a part: {"content":[{"type":"text"}]} */
	if (sse->depth > 1 || !one_of(key, H("object"), H("type")))
		return STRING;
	sse->tail = 0;
	return TYPE_STRING;
}

/* Nothing behind a text depends on what it said: wire_fast.h passes over it. */
static __always_inline void text_ends(struct sse *sse, __u32 at)
{
	sse->hash = 0;
	sse->text_end = at;
}

static __always_inline void string_byte(struct conn *conn, __u8 byte, __u32 at)
{
	struct sse *sse = &conn->sse;

	if (byte == '"') {
		if (sse->json == TYPE_STRING)
			type_told(conn);
		else if (sse->json == ID_STRING)
			id_ends(conn);
		else if (sse->json == TEXT_STRING)
			text_ends(sse, at);
		sse->json = BETWEEN;
	} else if (byte == '\\') {
		sse->json = sse->json == TEXT_STRING ? TEXT_ESCAPE : ESCAPE;
	} else {
		sse->hash = MIX(sse->hash, byte);
		if (sse->json == TYPE_STRING)
			sse->tail = sse->tail << 8 | byte;
		else if (sse->json == ID_STRING)
			id_byte(sse, byte);
	}
}

/* The first byte of a text's or an error's string: empty when it is the quote. */
static __always_inline void first_of_string(struct conn *conn, __u8 byte, __u32 at)
{
	struct sse *sse = &conn->sse;

	if (byte == '"') {
		sse->json = BETWEEN;
		return;
	}
	if (sse->json == ERROR_FIRST) {
		error_found(conn);
		sse->json = byte == '\\' ? ESCAPE : STRING;
		return;
	}
	conn->tokens++;
	sse->told = 1;
	sse->text_at = at;
	sse->json = byte == '\\' ? TEXT_ESCAPE : TEXT_STRING;
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
		object_begins(sse, 0);
	} else if (byte == '}') {
		sse->depth--;
	}
}

/* A byte at the place `at` of the block: only places of one block are compared. */
static __always_inline void json_byte(struct conn *conn, __u8 byte, __u32 at)
{
	struct sse *sse = &conn->sse;
	__u8 state = sse->json;

	if (state >= STRING && state < ESCAPE) {
		string_byte(conn, byte, at);
	} else if (state == BETWEEN) {
		between_byte(sse, byte);
	} else if (state == AFTER_COLON) {
		sse->json = value_begins(conn, byte);
	} else if (state >= ESCAPE) {
		sse->hash = MIX(sse->hash, '\\');
		sse->json = state == ESCAPE ? STRING : TEXT_STRING;
	} else if (state != ERROR_OBJECT) {
		first_of_string(conn, byte, at);
	} else if (byte != ' ' && byte != '\t') {
		if (byte != '}' && byte != ']')
			error_found(conn);
		sse->depth -= byte == '}';
		sse->json = BETWEEN;
	}
}

#endif

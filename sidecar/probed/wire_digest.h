/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A keyed hash of a request's body, by which two legs know that they carry the same, and nobody
 * else what. It is a sum over words, so it does not matter how packets and chunks cut the body, and
 * no byte has to be kept until the next one comes.
 */
#ifndef WIRE_DIGEST_H
#define WIRE_DIGEST_H

#include "wire_state.h"

#define ALL_OF (16 << 10) /* bytes hashed whole; beyond it one word of STRIDE */
#define STRIDE 8

static __always_inline __u64 mixed(__u64 value, __u64 salt)
{
	value ^= salt;
	value ^= value >> 32;
	value *= 0x9e3779b97f4a7c15ULL;
	value ^= value >> 29;
	value *= 0xbf58476d1ce4e5b9ULL;
	value ^= value >> 32;
	return value | !value; /* 0 means none */
}

static __always_inline __u64 key_of(struct conn *conn)
{
	struct digest *digest = &conn->digest;

	return mixed(digest->first ^ mixed(digest->second ^ digest->at, conn->salt), conn->salt);
}

/* Whether the body that comes is to be hashed: of a request whose head was kept, none missed. */
static __always_inline int hashed(struct run *run, struct flow *flow)
{
	return run->work->direction == REQUEST && run->conn->captured && !run->conn->digest.torn &&
	       !(flow->framing & LOOSE);
}

/* In this order: clang would compute the products first and add them later, more than a stack holds. */
#define ADD_WORD(i) \
	do { \
		__u64 word = RELOADED(work->words[i]); \
\
		first += word * RELOADED(secret->first[i]); \
		second += __builtin_bswap64(word) * RELOADED(secret->second[i]); \
		OPAQUE(first); \
		OPAQUE(second); \
	} while (0)

/* Adds what lies in work->words. In a sum of products a difference in a word's high bytes reaches
 * only the product's high bits, so the second sum takes the bytes the other way round. */
SUBPROGRAM void add_words(struct work *work, struct digest *digest, struct secret *secret)
{
	__u64 piece = digest->at / PIECE, first = 0, second = 0;

	if (digest->at < ALL_OF) {
#pragma unroll
		for (int i = 0; i < PIECE / 8; i++)
			ADD_WORD(i);
	} else {
#pragma unroll
		for (int i = 0; i < PIECE / 8; i += STRIDE)
			ADD_WORD(i);
	}
	digest->first += first * (mixed(piece, secret->salt[1]) | 1);
	digest->second += second * (mixed(piece, secret->salt[2]) | 1);
}

/* Hashes up to `most` bytes of body, to the end of a piece at most; returns how many. They lie in
 * words as they lie in the body, so that a word is the same wherever a packet begins. */
static __always_inline __u64 hash_piece(struct run *run, __u64 most)
{
	struct work *work = run->work;
	struct digest *digest = &run->conn->digest;
	struct secret *secret = LOOKUP(secrets, &SOLE);
	__u64 place = RELOADED(digest->at) & (PIECE - 1), size = PIECE - place;

	if (size > most)
		size = most;
	OPAQUE(size);
	OPAQUE(place);
	place &= PIECE - 1;
	if (!secret || size == 0 || size > PIECE ||
	    LOAD(run, work->offset, (__u8 *)work->words + place, size) < 0) {
		work->end = work->offset;
		return 0;
	}
	add_words(work, digest, secret);
	digest->at += size;
	__builtin_memset(work->words, 0, PIECE); /* a prompt is left nowhere */
	return size;
}

#endif

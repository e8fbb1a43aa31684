/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * A TLS session's life: found or begun, held by one thread, given up.
 */
#ifndef WIRE_TLS_SESSION_H
#define WIRE_TLS_SESSION_H

#include "wire_tls_join.h"

/* The cookie of a probe: which process it is in, and above that which function it is at. */
static __always_inline struct owner owner_of(void *ctx, __u64 ssl)
{
	struct owner owner = {.ssl = ssl, .process = bpf_get_attach_cookie(ctx)};

	return owner;
}

static __always_inline __u32 function_of(void *ctx)
{
	return bpf_get_attach_cookie(ctx) >> 32;
}

/* Marks the session as this thread's; 0 when another thread is in it, against OpenSSL's rules. */
static __always_inline int hold(struct session *session)
{
	if (!__sync_val_compare_and_swap(&session->busy, 0, 1))
		return 1;
	count(CONTENDED, 1);
	return 0;
}

static __always_inline void release(struct session *session)
{
	__sync_lock_test_and_set(&session->busy, 0);
}

/* Finds a session or begins one, and holds it. */
SUBPROGRAM struct session *take_session(struct owner *owner)
{
	struct session *session = LOOKUP(sessions, owner), *blank;
	__u32 zero = 0;

	if (!session) {
		blank = LOOKUP(new_sessions, &zero);
		if (!blank)
			return 0;
		INSERT(sessions, owner, blank);
		session = LOOKUP(sessions, owner);
		if (!session) {
			count(TABLE_FULL, 1);
			return 0;
		}
	}
	return hold(session) ? session : 0;
}

/* The key of the session's connection holds what identify() puts into each record. */
static __always_inline void fill_key(struct session *session, struct owner *owner)
{
	struct key *key = &session->work.key;

	__builtin_memset(key->client, 0, sizeof(key->client));
	__builtin_memcpy(key->client, owner, 12);
	__builtin_memcpy(key->server, session->server, sizeof(key->server));
	key->client_port = session->client_port;
	key->server_port = session->server_port;
}

/* Begins to look at bytes, or at an end. */
static __always_inline void ready(struct run *run, struct session *session, __u64 now, __u8 direction)
{
	struct work *work = &session->work;

	run->work = work;
	work->now = now;
	work->start = work->offset = work->end = work->loaded = 0;
	work->verdict = GO_ON;
	work->direction = direction;
	work->gone = work->tcp_flags = 0;
	work->flags = session->flags;
	run->conn = LOOKUP(conns, &work->key);
	if (run->conn)
		run->conn->lock = 1; /* the sweep leaves it alone */
}

/* After the bytes or the end; no text stays behind. */
static __always_inline void done_with(struct run *run)
{
	__builtin_memset(run->work->block, 0, sizeof(run->work->block));
	if (run->conn && !run->work->gone)
		run->conn->lock = 0;
}

static __always_inline void close_by(struct run *run, __u8 direction, __u8 how)
{
	if (run->work->gone)
		return;
	run->work->direction = direction;
	run->work->tcp_flags = how;
	close_side(run);
}

/* Over memory buffers nobody says who left first: then the request was lost track of. */
static __always_inline int end_is_known(struct session *session, struct conn *conn)
{
	struct flow *answer = &conn->flows[RESPONSE];

	return session->joined == JOINED || conn->client_fin || conn->done ||
	       (answer->phase == BODY && answer->left == UNTIL_CLOSE &&
	        !(answer->framing & (CHUNKED | HAS_LENGTH)));
}

/* This process says (FIN) or frees (RST) that it is done. */
SUBPROGRAM void leave_session(struct session *session, __u8 how)
{
	__u8 own = session->role == SERVER ? RESPONSE : REQUEST;
	struct run run = {};

	ready(&run, session, bpf_ktime_get_ns(), own);
	if (!run.conn)
		return;
	if (!end_is_known(session, run.conn))
		finish_all(run.conn, run.work, LOST, run.work->now);
	else if (session->peer_gone || peer_left(session, how == FIN))
		close_by(&run, !own, FIN);
	close_by(&run, own, how);
	done_with(&run);
}

#endif

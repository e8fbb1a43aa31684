/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * Bytes of one call as a piece of the session's stream, read by the parser of the packets' tap.
 */
#ifndef WIRE_TLS_STREAM_H
#define WIRE_TLS_STREAM_H

#include "wire_tls_session.h"
#include "wire_scan.h"

#define MAX_STEPS (1 << 22) /* half of what bpf_loop allows */
#define LARGEST (1U << 30)

/* A method, or HTTP/2's preface, which is then named. */
static __always_inline int starts_request(struct run *run)
{
	__u8 first[4] = {};

	return run->data && run->work->end >= sizeof(first) && LOAD(run, 0, first, sizeof(first)) == 0 &&
	       (method_like(first) || be32(first) == TAIL("PRI "));
}

/* Whether the connection's port is watched; learns it first. */
static __always_inline int is_ours(struct session *session, struct process *process)
{
	if (session->joined == NOT_ASKED && !join(session) && session->role == SERVER)
		session->server_port = process->port; /* memory buffers: by what it listens on */
	if (session->ignored)
		return 0;
	if (!session->server_port && !session->told) {
		session->told = 1;
		__sync_fetch_and_add(&process->unjoined, 1);
	}
	return session->server_port && LOOKUP(ports, &session->server_port);
}

/* Takes a session up at its first request, or at a later one when we came late. */
SUBPROGRAM int take_up(struct run *run, struct session *session, struct owner *owner)
{
	struct work *work = run->work;
	struct process *process = LOOKUP(processes, &owner->process);
	struct conn *blank;
	__u32 zero = 0;

	if (!process || (!session->fresh && !starts_request(run)))
		return 0;
	if (!session->role)
		session->role = work->direction == REQUEST ? SERVER : CLIENT;
	if (!is_ours(session, process))
		return 0;
	fill_key(session, owner);
	work->flags = session->flags;
	blank = LOOKUP(blanks, &zero);
	if (!blank)
		return 0;
	blank->lock = 1; /* always the same, so that preemption does no harm */
	INSERT(conns, &work->key, blank);
	run->conn = LOOKUP(conns, &work->key);
	if (!run->conn) {
		count(TABLE_FULL, 1);
		return 0;
	}
	run->conn->touched = work->now;
	run->conn->unsure = !session->fresh;
	__builtin_memcpy(&run->conn->key, &work->key, sizeof(work->key));
	identify(run->conn, work);
	session->fresh = 0;
	return 1;
}

static __always_inline void read_bytes(struct run *run)
{
	struct work *work = run->work;
	struct flow *flow = flow_of(run);
	__u32 size = work->end, steps = size < MAX_STEPS / 2 ? size * 2 : MAX_STEPS;

	run->conn->touched = work->now;
	if (flow->phase == ASTRAY) {
		if (!starts_request(run))
			return;
		flow->phase = MESSAGE;
		run->conn->unsure = 1;
	}
	if (run->data)
		bpf_loop(steps, run_step, run, 0);
	/* Of a file that was sent, a page that is away, or more than can be read. */
	if (work->verdict == GO_ON && work->offset < size) {
		flow = flow_of(run);
		if (work->direction == RESPONSE)
			run->conn->rec.response_bytes += size - work->offset;
		miss(run, flow, size - work->offset);
	}
}

static __always_inline void enter(struct run *run, struct session *session)
{
	struct work *work = run->work;

	if (work->verdict == GO_ON) {
		settle(run->conn, work);
		end_loose(run);
	} else if (work->verdict != ENDED) {
		session->ignored = 1;
	}
}

/* `size` bytes at `data` have been read or written; without data they were not seen. */
SUBPROGRAM void pass(struct session *session, struct owner *owner, struct call *call, __u64 size)
{
	struct run run = {.data = (const char *)call->buffer};
	__u8 writes = call->writes, serves = session->role == SERVER, direction;

	/* Without a role the first request tells it: who writes it is the client. */
	direction = session->role ? (writes == serves ? RESPONSE : REQUEST) : REQUEST;
	ready(&run, session, writes ? call->began : bpf_ktime_get_ns(), direction);
	run.work->end = size < LARGEST ? size : LARGEST;
	count(PACKETS, 1);
	if (!run.conn && (direction != REQUEST || !take_up(&run, session, owner))) {
		done_with(&run);
		return;
	}
	read_bytes(&run);
	enter(&run, session);
	done_with(&run);
}

#endif

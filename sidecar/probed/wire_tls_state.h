/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * What wire_tls keeps beside the connections of wire_state.h: calls that have not returned, TLS
 * sessions, processes. Unlike a socket filter this program can be preempted by another thread that
 * runs it too, so nothing that is written lies in per-CPU memory: a session brings its own.
 */
#ifndef WIRE_TLS_STATE_H
#define WIRE_TLS_STATE_H

#include "probe.h"

/* Preallocated, since kernels before 6.1 warn of tracing programs that allocate. */
#undef HASH
#define HASH SMALL_HASH
#define MAX_CONNECTIONS 4096
#define SOURCE const char *data
#define LOAD(run, offset, to, size) bpf_probe_read_user(to, size, (run)->data + (offset))
#define LIKE_THE_LAST(run) 0 /* each event is lexed */
#define SIGHT(run) 0 /* of packets: here each byte passes once */
#define SEGMENTS(run) 1
#define LEAVES(run) 0

#include "wire_tcp.h"

/* wire_tls_hooks.Function */
enum function {
	RETURN, READ, READ_EX, READ_INNER, WRITE, WRITE_EX, SENDFILE, ACCEPT_STATE, CONNECT_STATE,
	SET_FD, SHUTDOWN, FREE
};

enum role { UNKNOWN_ROLE, SERVER, CLIENT };
enum joined { NOT_ASKED, JOINED, NO_SOCKET };

/* A call, until it returns: nested ones (TLS within TLS) differ by their stack frame. */
struct frame {
	__u64 thread, stack;
};

struct call {
	__u64 ssl, buffer;
	__u64 count_at; /* where the call leaves how many bytes it moved; 0: it returns them */
	__u64 began;
	__u32 writes;
	__u32 zero_closes; /* 0 returned means that the peer sends no more, and no other failure */
};

/* `process` is the number that user space gave the process: process ids depend on who looks. */
struct owner {
	__u64 ssl;
	__u32 process, pad;
};

struct session {
	__u8 role, joined;
	__u8 fresh; /* seen from before its first byte */
	__u8 ignored; /* not HTTP/1 */
	__u8 told; /* was counted as unjoined */
	__u8 flags; /* of its records */
	__u8 peer_gone; /* when a call last failed the connection was closed by the other side */
	__u8 pad;
	__u32 busy; /* a thread is in it */
	__u32 descriptor; /* its socket's, plus 1 */
	__u16 client_port, server_port;
	__u8 server[16];
	struct work work;
};

struct process {
	__u64 calls; /* that moved bytes */
	__u64 unjoined; /* sessions to a server that is not known */
	__u16 port; /* the watched port it listens on; 0: none, or more than one */
	__u8 pad[6];
};

LRU(calls, struct frame, struct call, 4096);
SMALL_HASH(sessions, struct owner, struct session, MAX_CONNECTIONS);
SMALL_HASH(processes, __u32, struct process, 256);
SMALL_HASH(served, __u16, __u8, 256); /* ports that a followed process listens on */
PER_CPU(new_sessions, struct session); /* stays zero */

#endif

/* SPDX-License-Identifier: GPL-2.0 OR Apache-2.0 */
/*
 * The wire tap for TLS: user probes on OpenSSL that read the plaintext of HTTP/1.1 requests and
 * their server-sent events where it passes SSL_read and SSL_write. Bytes are counted when the call
 * has returned, so that a write that is tried again counts once; those written are timed at the
 * call's beginning, before they were encrypted and sent.
 */
#include "wire_tls_regs.h"
#include "wire_tls_stream.h"

static __always_inline struct frame frame_of(__u64 stack)
{
	struct frame frame = {.thread = bpf_get_current_pid_tgid(), .stack = stack};

	return frame;
}

/* Counts a call of a process; 0 when that is no longer followed. */
static __always_inline int is_followed(struct owner *owner, __u64 calls)
{
	struct process *process = LOOKUP(processes, &owner->process);

	if (process)
		__sync_fetch_and_add(&process->calls, calls);
	return process != 0;
}

static __always_inline int reads(struct registers *ctx, __u64 count_at, __u32 zero_closes)
{
	struct frame frame = frame_of(ENTRY_FRAME(ctx));
	struct call call = {.ssl = FIRST(ctx), .buffer = SECOND(ctx), .count_at = count_at,
	                    .zero_closes = zero_closes};

	UPDATE(calls, &frame, &call);
	return 0;
}

static __always_inline int writes(struct registers *ctx, __u64 buffer, __u64 count_at)
{
	struct frame frame = frame_of(ENTRY_FRAME(ctx));
	struct call call = {.ssl = FIRST(ctx), .buffer = buffer, .count_at = count_at,
	                    .began = bpf_ktime_get_ns(), .writes = 1};

	UPDATE(calls, &frame, &call);
	return 0;
}

/* The peer has said that it sends no more (close_notify). */
static __always_inline void peer_closes(struct session *session)
{
	struct run run = {};

	ready(&run, session, bpf_ktime_get_ns(), session->role == SERVER ? REQUEST : RESPONSE);
	if (!run.conn)
		return;
	close_by(&run, run.work->direction, FIN);
	done_with(&run);
}

/* How many bytes a call has moved; 0 when it failed. */
static __always_inline __u64 moved(struct registers *ctx, struct call *call)
{
	__s32 result = RETURNED(ctx);
	__u64 size = 0;

	if (call->writes && !call->buffer)
		return (__s64)RETURNED(ctx) > 0 ? RETURNED(ctx) : 0;
	if (result <= 0)
		return 0;
	if (!call->count_at)
		return result;
	bpf_probe_read_user(&size, sizeof(size), (void *)call->count_at);
	return size;
}

/* The return of any of these. */
PROBE("uretprobe")
int tls_returned(struct registers *ctx)
{
	struct frame frame = frame_of(RETURN_FRAME(ctx));
	struct call *found = LOOKUP(calls, &frame), call;
	struct session *session;
	struct owner owner;
	__u64 size;

	if (!found)
		return 0;
	call = *found;
	DELETE(calls, &frame);
	size = moved(ctx, &call);
	owner = owner_of(ctx, call.ssl);
	if (!is_followed(&owner, size != 0))
		return 0;
	session = take_session(&owner);
	if (!session)
		return 0;
	if (!size && call.zero_closes && !(__s32)RETURNED(ctx))
		peer_closes(session);
	else if (!size)
		session->peer_gone = peer_left(session, 1); /* its socket may be closed before SSL_free */
	else if (!session->ignored)
		pass(session, &owner, &call, size);
	release(session);
	return 0;
}

/* SSL_set_accept_state and SSL_set_connect_state, which SSL_accept and SSL_connect call too. */
static __always_inline void begins_as(struct owner *owner, __u8 role)
{
	struct session *session = is_followed(owner, 0) ? take_session(owner) : 0;

	if (!session)
		return;
	leave_session(session, RST); /* the object is used again */
	session->role = role;
	session->fresh = 1;
	session->joined = session->ignored = session->told = session->peer_gone = 0;
	session->server_port = session->client_port = 0;
	__builtin_memset(session->server, 0, sizeof(session->server));
	release(session);
}

static __always_inline void has_socket(struct owner *owner, __u32 descriptor)
{
	struct session *session = is_followed(owner, 0) ? take_session(owner) : 0;

	if (!session)
		return;
	session->descriptor = descriptor + 1;
	release(session);
}

/* SSL_shutdown says that this side is done, SSL_free ends the session. */
static __always_inline void is_left(struct owner *owner, __u8 how)
{
	struct session *session = LOOKUP(sessions, owner);

	if (!session || !hold(session))
		return;
	leave_session(session, how);
	release(session);
	if (how == RST)
		DELETE(sessions, owner);
}

/* The beginning of each function: one program, so that a library takes one link for all. */
PROBE("uprobe")
int tls_called(struct registers *ctx)
{
	struct owner owner = owner_of(ctx, FIRST(ctx));

	switch (function_of(ctx)) {
	case READ: /* int (SSL *, void *, int) */
		return reads(ctx, 0, 1);
	case READ_EX: /* int (SSL *, void *, size_t, size_t *): 0 is whatever is no success */
		return reads(ctx, FOURTH(ctx), 0);
	case READ_INNER: /* behind both: takes what READ_EX does and returns what READ does */
		return reads(ctx, FOURTH(ctx), 1);
	case WRITE:
		return writes(ctx, SECOND(ctx), 0);
	case WRITE_EX: /* and the function behind both */
		return writes(ctx, SECOND(ctx), FOURTH(ctx));
	case SENDFILE: /* ssize_t (SSL *, int, off_t, size_t, int): no plaintext passes the process */
		return writes(ctx, 0, 0);
	case ACCEPT_STATE:
		begins_as(&owner, SERVER);
		break;
	case CONNECT_STATE:
		begins_as(&owner, CLIENT);
		break;
	case SET_FD:
		has_socket(&owner, SECOND(ctx));
		break;
	case SHUTDOWN:
		is_left(&owner, FIN);
		break;
	case FREE:
		is_left(&owner, RST);
		break;
	}
	return 0;
}

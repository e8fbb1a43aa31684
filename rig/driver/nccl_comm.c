/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators: ranks are processes (or threads) that meet in the shared state. Nobody answers for a
 * rank: one that is stopped is waited for, one that is gone becomes a remote error after a while.
 */
#define _GNU_SOURCE
#include "nccl_local.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POLL_NS 500000ull

static const struct stream_table *table;

static void find_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *symbol;
	int (*ask)(const void **, const char *);
	const void *found = 0;

	symbol = library ? dlsym(library, "cuGetExportTable") : 0;
	if (!symbol)
		return;
	memcpy(&ask, &symbol, sizeof(ask));
	if (ask(&found, STREAM_TABLE_ID) == 0)
		table = found;
}

const struct stream_table *driver_streams(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_driver);
	return table;
}

struct communicator *shared(const struct ncclComm *comm)
{
	struct communicator *there = &state_get()->communicators[comm->slot];

	return there->id == comm->id ? there : 0;
}

uint64_t fresh_id(void)
{
	struct state *state = state_get();
	uint64_t id;

	state_lock(state);
	id = ++state->seed;
	state_unlock(state);
	return (now_ns() << 16 | (id & 0xffff)) | 1;
}

static int forsaken(const struct communicator *there) /* all who joined have left or died */
{
	uint32_t rank;

	for (rank = 0; rank < there->ranks; rank++) {
		const struct member *member = &there->members[rank];

		if (member->joined && !member->left && alive(member->pid, member->start))
			return 0;
	}
	return 1;
}

static int slot_for(struct state *state, uint64_t id, int ranks)
{
	int i;

	for (i = 0; i < COMMUNICATORS; i++)
		if (state->communicators[i].id == id)
			return (int)state->communicators[i].ranks == ranks ? i : -1;
	for (i = 0; i < COMMUNICATORS && state->communicators[i].id; i++)
		;
	if (i == COMMUNICATORS) /* looks at processes with the lock held, hence only when it must */
		for (i = 0; i < COMMUNICATORS && !forsaken(&state->communicators[i]); i++)
			;
	if (i == COMMUNICATORS)
		return -1;
	memset(&state->communicators[i], 0, sizeof(state->communicators[i]));
	state->communicators[i].ranks = (uint32_t)ranks;
	state->communicators[i].id = id;
	return i;
}

struct ncclComm *comm_new(uint64_t id, int ranks, int rank, int blocking)
{
	struct state *state = state_get();
	struct ncclComm *comm;

	if (ranks < 1 || ranks > RANKS || rank < 0 || rank >= ranks)
		return 0;
	comm = calloc(1, sizeof(*comm));
	if (!comm)
		return 0;
	comm->id = id;
	comm->rank = rank;
	comm->ranks = ranks;
	comm->blocking = blocking;
	comm->device = driver_streams() ? driver_streams()->device(0) : -1;
	state_lock(state);
	comm->slot = slot_for(state, id, ranks);
	state_unlock(state);
	if (comm->slot < 0) {
		free(comm);
		return 0;
	}
	return comm;
}

int comm_join(struct ncclComm *comm)
{
	struct state *state = state_get();
	struct communicator *there;
	uint64_t start = started(getpid());
	struct member *member;
	int code = C_INTERNAL;

	state_lock(state);
	there = shared(comm);
	member = there ? &there->members[comm->rank] : 0;
	if (member && member->joined) {
		code = C_USAGE; /* somebody else is that rank */
	} else if (member) {
		member->pid = getpid();
		member->start = start;
		__atomic_store_n(&member->joined, 1, __ATOMIC_RELEASE);
		code = C_OK;
	}
	state_unlock(state);
	return code;
}

static int missing(const struct communicator *there, int gone_only)
{
	uint32_t rank;

	for (rank = 0; rank < there->ranks; rank++) {
		const struct member *member = &there->members[rank];

		if (!__atomic_load_n(&member->joined, __ATOMIC_ACQUIRE)) {
			if (!gone_only)
				return 1;
		} else if (gone_only && !member->left && !alive(member->pid, member->start)) {
			return 1;
		}
	}
	return 0;
}

int comm_error(struct ncclComm *comm)
{
	uint64_t patience = (uint64_t)(setting_real(ANY_DEVICE, "nccl.remote_error_after", 2) * 1e9);
	struct communicator *there = shared(comm);
	int gone = !there || missing(there, 1), waiting = there && missing(there, 0);
	uint64_t since = __atomic_load_n(&comm->missed_at, __ATOMIC_ACQUIRE), now = now_ns();

	since = !gone ? 0 : since ? since : now; /* several threads may ask: each by its own copy */
	__atomic_store_n(&comm->missed_at, since, __ATOMIC_RELEASE);
	if (gone && now - since >= patience)
		return C_REMOTE;
	if (!waiting)
		__atomic_store_n(&comm->joined, 1, __ATOMIC_RELEASE);
	return __atomic_load_n(&comm->joined, __ATOMIC_ACQUIRE) ||
			       __atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE) ? C_OK : C_PROGRESS;
}

int comm_usable(struct ncclComm *comm)
{
	int code;

	if (!comm)
		return C_ARGUMENT;
	code = __atomic_load_n(&comm->joined, __ATOMIC_ACQUIRE) ? C_OK : comm_error(comm);
	return code == C_PROGRESS ? (comm->blocking ? comm_wait(comm) : C_ARGUMENT) : code;
}

int comm_wait(struct ncclComm *comm)
{
	for (;;) {
		int code = comm_error(comm);

		if (__atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE))
			return C_INTERNAL; /* by another thread, and so its handle is gone */
		if (code != C_PROGRESS)
			return code;
		settings_look();
		sleep_until(now_ns() + POLL_NS);
	}
}

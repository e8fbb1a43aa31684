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

int nccl_enter(const char *name, struct ncclComm *comm)
{
	int sticky, code;

	settings_look();
	if (!state_get())
		return C_SYSTEM;
	if (comm && comm->magic != MAGIC_COMM)
		return C_ARGUMENT;
	code = gate(name, comm ? comm->device : ANY_DEVICE, &sticky);
	return code;
}

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
	comm->magic = MAGIC_COMM;
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
	uint64_t now = now_ns();
	int gone = !there || missing(there, 1), waiting = there && missing(there, 0);

	if (!gone)
		comm->missed_at = 0;
	else if (!comm->missed_at)
		comm->missed_at = now;
	if (gone && now - comm->missed_at >= patience)
		return C_REMOTE;
	if (!waiting)
		comm->joined = 1;
	return comm->joined || comm->aborted ? C_OK : C_PROGRESS;
}

int comm_wait(struct ncclComm *comm)
{
	for (;;) {
		int code = comm_error(comm);

		if (code != C_PROGRESS)
			return code;
		settings_look();
		sleep_until(now_ns() + POLL_NS);
	}
}

void comm_drop(struct ncclComm *comm)
{
	struct state *state = state_get();
	struct communicator *there;

	state_lock(state);
	there = shared(comm);
	if (there)
		there->members[comm->rank].left = 1;
	state_unlock(state);
	comm->magic = 0;
	if (__atomic_load_n(&comm->holds, __ATOMIC_ACQUIRE) == 0)
		free(comm);
	else
		__atomic_store_n(&comm->released, 1, __ATOMIC_RELEASE); /* the last place frees it */
}

/* SPDX-License-Identifier: Apache-2.0 */
/* How communicators begin, split and end. */
#define _GNU_SOURCE
#include "nccl_local.h"

#include <stdlib.h>
#include <string.h>

static __thread int depth;
static __thread struct ncclComm *opening[RANKS];	/* of InitRank calls inside a group */
static __thread int opened;

int grouped(void)
{
	return depth;
}

API ncclResult_t ncclGetVersion(int *version)
{
	ENTER(0);
	if (!version)
		return C_ARGUMENT;
	*version = (int)setting_whole(ANY_DEVICE, "nccl.version", 22809);
	return C_OK;
}

API ncclResult_t ncclGetUniqueId(ncclUniqueId *out)
{
	uint64_t id = fresh_id();

	ENTER(0);
	if (!out)
		return C_ARGUMENT;
	memset(out, 0, sizeof(*out));
	memcpy(out->internal, &id, sizeof(id));
	return C_OK;
}

static ncclResult_t open_rank(ncclComm_t *out, int ranks, uint64_t id, int rank, int blocking)
{
	struct ncclComm *comm;
	int code;

	if (!out || !id)
		return C_ARGUMENT;
	*out = 0;
	if (!driver_streams() || driver_streams()->device(0) < 0)
		return C_CUDA; /* as the real one: the caller's thread must have a device */
	comm = comm_new(id, ranks, rank, blocking);
	if (!comm)
		return C_ARGUMENT;
	code = comm_join(comm);
	if (code) {
		free(comm);
		return (ncclResult_t)code;
	}
	comm_publish(comm);
	*out = comm;
	if (depth && opened < RANKS) {
		opening[opened++] = comm;
		return C_OK;
	}
	code = blocking ? comm_wait(comm) : C_PROGRESS;
	comm_let_go(&comm);
	return (ncclResult_t)code;
}

static void let_openings_go(void)
{
	while (opened)
		comm_let_go(&opening[--opened]);
}

static uint64_t id_of(const ncclUniqueId *unique)
{
	uint64_t id;

	memcpy(&id, unique->internal, sizeof(id));
	return id;
}

API ncclResult_t ncclCommInitRank(ncclComm_t *out, int ranks, ncclUniqueId unique, int rank)
{
	ENTER(0);
	return open_rank(out, ranks, id_of(&unique), rank, 1);
}

API ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId unique, int rank,
					ncclConfig_t *config)
{
	ENTER(0);
	return open_rank(out, ranks, id_of(&unique), rank, !config || config->blocking != 0);
}

/* All ranks are this process, on the device that is current: the list of devices is not followed. */
API ncclResult_t ncclCommInitAll(ncclComm_t *out, int count, const int *devices)
{
	uint64_t id = fresh_id();
	int i, code = C_OK;

	ENTER(0);
	(void)devices;
	if (!out || count < 1 || count > RANKS)
		return C_ARGUMENT;
	depth++;
	for (i = 0; i < count && !code; i++)
		code = (int)open_rank(&out[i], count, id, i, 1);
	depth--;
	for (i = 0; i < count && !code; i++)
		code = comm_wait(out[i]);
	if (!depth)
		let_openings_go();
	return (ncclResult_t)code;
}

API ncclResult_t ncclGroupStart(void)
{
	ENTER(0);
	depth++;
	return C_OK;
}

API ncclResult_t ncclGroupEnd(void)
{
	int i, code = C_OK;

	ENTER(0);
	if (!depth)
		return C_USAGE;
	if (--depth)
		return C_OK;
	for (i = 0; i < opened && !code; i++)
		code = opening[i]->blocking ? comm_wait(opening[i]) : C_PROGRESS;
	let_openings_go();
	return (ncclResult_t)code;
}

/* The parent's ranks meet once more; those of one colour get a new id from it, ordered by key. */
API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config)
{
	uint32_t turn, rank, place = 0, size = 0;
	struct communicator *there;
	struct member *me;
	uint64_t id;

	ENTER(comm);
	if (!comm || !out)
		return C_ARGUMENT;
	*out = 0;
	there = shared(comm);
	if (!there)
		return C_INTERNAL;
	me = &there->members[comm->rank];
	turn = me->splits + 1;
	me->color[turn & 1] = color;
	me->key[turn & 1] = key;
	__atomic_store_n(&me->splits, turn, __ATOMIC_RELEASE);
	for (rank = 0; rank < (uint32_t)comm->ranks; rank++)
		while (__atomic_load_n(&there->members[rank].splits, __ATOMIC_ACQUIRE) < turn) {
			if (comm_error(comm) == C_REMOTE ||
			    __atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE))
				return C_REMOTE;
			sleep_until(now_ns() + 500000);
		}
	for (rank = 0; rank < (uint32_t)comm->ranks; rank++) {
		const struct member *other = &there->members[rank];
		int its = other->key[turn & 1];

		if (other->color[turn & 1] != color)
			continue;
		size++;
		place += its < key || (its == key && (int)rank < comm->rank);
	}
	if (color == -1)
		return C_OK;
	id = comm->id ^ ((uint64_t)turn << 48) ^ ((uint64_t)(uint32_t)(color + 1) * 0x9e3779b97f4a7c15ull);
	return open_rank(out, (int)size, id | 1, (int)place, config ? config->blocking != 0 : comm->blocking);
}

API ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	ENTER(comm);
	return comm ? C_OK : C_ARGUMENT;
}

API ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	ENTER(comm);
	if (comm)
		comm_drop(comm);
	return C_OK;
}

API ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	ENTER(comm);
	if (!comm)
		return C_OK;
	__atomic_store_n(&comm->aborted, 1, __ATOMIC_RELEASE); /* what waits on a stream is over */
	comm_drop(comm);
	return C_OK;
}

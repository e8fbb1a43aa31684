/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives: a rank arrives when it puts one on a stream; it is over everywhere when the last rank
 * has arrived, its streams have come to it, and the transfer's time has passed. No data is moved.
 */
#define _GNU_SOURCE
#include "nccl_local.h"

#include <stdlib.h>

struct place {	/* on a stream */
	struct ncclComm *comm;
	uint64_t sequence;
	uint32_t *mine, *theirs;	/* send and receive: counters of this side and of the peer */
	uint32_t nth;
	uint64_t at, cost;
};

static size_t width(int type)
{
	static const size_t WIDTHS[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return type >= 0 && type < 12 ? WIDTHS[type] : 1;
}

static uint64_t cost_of(const struct ncclComm *comm, size_t bytes)
{
	double latency = setting_real(comm->device, "nccl.latency", 20e-6);
	double rate = setting_real(comm->device, "nccl.bandwidth", 200e9);

	return (uint64_t)((latency + (double)bytes / rate) * 1e9);
}

/* Once all have arrived nothing of a flight changes but `finish`, and each would write the same there. */
static uint64_t finish_of(const struct communicator *there, struct flight *flight)
{
	uint64_t start = flight->ready, finish = __atomic_load_n(&flight->finish, __ATOMIC_ACQUIRE);
	const struct flight *before = &there->flights[(flight->sequence + FLIGHTS - 1) % FLIGHTS];

	if (finish)
		return finish;
	if (flight->sequence && before->sequence == flight->sequence - 1) {
		uint64_t then = before->finish ? before->finish : before->ready + before->cost;

		start = then + flight->after > start ? then + flight->after : start;
	}
	__atomic_store_n(&flight->finish, start + flight->cost, __ATOMIC_RELEASE);
	return start + flight->cost;
}

static int ended(struct place *place, uint64_t *finish)
{
	struct communicator *there = shared(place->comm);
	struct flight *flight;
	uint64_t sequence;

	if (!there)
		return 0;
	flight = &there->flights[place->sequence % FLIGHTS];
	sequence = __atomic_load_n(&flight->sequence, __ATOMIC_ACQUIRE);
	if (sequence > place->sequence)
		return 1; /* the slot is in use again: all ranks have gone past */
	if (sequence < place->sequence || __atomic_load_n(&flight->arrived, __ATOMIC_ACQUIRE) < there->ranks)
		return 0;
	*finish = finish_of(there, flight);
	return 1;
}

static int over(void *arg, uint64_t now, uint64_t *finish)
{
	struct place *place = arg;

	if (__atomic_load_n(&place->comm->aborted, __ATOMIC_ACQUIRE)) {
		*finish = now;
		return 1;
	}
	if (place->theirs) {
		*finish = place->at + place->cost > now ? place->at + place->cost : now;
		return __atomic_load_n(place->theirs, __ATOMIC_ACQUIRE) >= place->nth;
	}
	return ended(place, finish);
}

static void forget(void *arg)
{
	struct place *place = arg;
	struct ncclComm *comm = place->comm;

	free(place);
	if (__atomic_sub_fetch(&comm->holds, 1, __ATOMIC_ACQ_REL) == 0 &&
	    __atomic_load_n(&comm->released, __ATOMIC_ACQUIRE))
		free(comm);
}

static ncclResult_t put(struct ncclComm *comm, struct place *place, void *stream)
{
	int code;

	__atomic_add_fetch(&comm->holds, 1, __ATOMIC_ACQ_REL);
	code = driver_streams()->wait(stream, over, forget, place);
	if (code)
		forget(place);
	return code ? C_CUDA : C_OK;
}

static int usable(struct ncclComm *comm)
{
	int code;

	if (!comm)
		return C_ARGUMENT;
	code = comm->joined ? C_OK : comm_error(comm);
	return code == C_PROGRESS ? (comm->blocking ? comm_wait(comm) : C_ARGUMENT) : code;
}

/* More in flight than there are slots: the caller waits, as it does for a full launch queue. */
static int room(struct ncclComm *comm)
{
	const struct communicator *there;

	while ((there = shared(comm)) && !__atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE)) {
		uint64_t next = there->members[comm->rank].arrived;
		const struct flight *flight = &there->flights[next % FLIGHTS];

		if (next < FLIGHTS || __atomic_load_n(&flight->sequence, __ATOMIC_ACQUIRE) >= next ||
		    __atomic_load_n(&flight->arrived, __ATOMIC_ACQUIRE) >= there->ranks)
			break;
		sleep_until(now_ns() + 500000);
	}
	return there != 0;
}

static ncclResult_t collective(struct ncclComm *comm, size_t bytes, void *stream)
{
	struct state *state = state_get();
	struct communicator *there;
	struct place *place;
	struct flight *flight;
	uint64_t at, after, cost;
	int code = usable(comm);

	if (code)
		return (ncclResult_t)code;
	if (!room(comm))
		return C_INTERNAL;
	if (driver_streams()->place(stream, &at, &after))
		return C_CUDA;
	place = calloc(1, sizeof(*place));
	if (!place)
		return C_SYSTEM;
	place->comm = comm;
	cost = cost_of(comm, bytes);
	state_lock(state);
	there = shared(comm);
	if (there) {
		place->sequence = there->members[comm->rank].arrived++;
		flight = &there->flights[place->sequence % FLIGHTS];
		if (flight->sequence != place->sequence || !flight->arrived)
			*flight = (struct flight){ .sequence = place->sequence };
		flight->ready = at > flight->ready ? at : flight->ready;
		flight->after = after > flight->after ? after : flight->after;
		flight->cost = cost > flight->cost ? cost : flight->cost;
		__atomic_add_fetch(&flight->arrived, 1, __ATOMIC_RELEASE);
	}
	state_unlock(state);
	if (!there) {
		free(place);
		return C_INTERNAL;
	}
	return put(comm, place, stream);
}

static ncclResult_t pair(struct ncclComm *comm, int peer, size_t bytes, void *stream, int sending)
{
	struct communicator *there;
	struct place *place;
	uint64_t at, after;
	int code = usable(comm);

	if (code)
		return (ncclResult_t)code;
	if (peer < 0 || peer >= comm->ranks)
		return C_ARGUMENT;
	there = shared(comm);
	place = calloc(1, sizeof(*place));
	if (!there || !place || driver_streams()->place(stream, &at, &after)) {
		free(place);
		return there ? C_CUDA : C_INTERNAL;
	}
	place->comm = comm;
	place->mine = sending ? &there->sent[comm->rank][peer] : &there->received[peer][comm->rank];
	place->theirs = sending ? &there->received[comm->rank][peer] : &there->sent[peer][comm->rank];
	place->nth = __atomic_add_fetch(place->mine, 1, __ATOMIC_ACQ_REL);
	place->at = at;
	place->cost = cost_of(comm, bytes);
	return put(comm, place, stream);
}

API ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
			       ncclComm_t comm, cudaStream_t stream)
{
	ENTER(comm);
	(void)op;
	return count && (!from || !to) ? C_ARGUMENT : collective(comm, 2 * count * width((int)type), stream);
}

API ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
			       cudaStream_t stream)
{
	ENTER(comm);
	if (!comm || (count && (!from || !to)))
		return C_ARGUMENT;
	return collective(comm, count * width((int)type) * (size_t)comm->ranks, stream);
}

API ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
				   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	ENTER(comm);
	(void)op;
	if (!comm || (count && (!from || !to)))
		return C_ARGUMENT;
	return collective(comm, count * width((int)type) * (size_t)comm->ranks, stream);
}

API ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
			       ncclComm_t comm, cudaStream_t stream)
{
	ENTER(comm);
	(void)from;
	if (!comm || root < 0 || root >= comm->ranks || (count && !to))
		return C_ARGUMENT;
	return collective(comm, count * width((int)type), stream);
}

API ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
			    int root, ncclComm_t comm, cudaStream_t stream)
{
	ENTER(comm);
	(void)to;
	(void)op;
	if (!comm || root < 0 || root >= comm->ranks || (count && !from))
		return C_ARGUMENT;
	return collective(comm, count * width((int)type), stream);
}

API ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
			  cudaStream_t stream)
{
	ENTER(comm);
	return count && !from ? C_ARGUMENT : pair(comm, peer, count * width((int)type), stream, 1);
}

API ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
			  cudaStream_t stream)
{
	ENTER(comm);
	return count && !to ? C_ARGUMENT : pair(comm, peer, count * width((int)type), stream, 0);
}

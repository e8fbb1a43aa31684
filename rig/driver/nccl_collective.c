/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives: a rank arrives when it puts one on a stream; it is over everywhere when the last rank
 * has arrived, its streams have come to it, and the transfer's time has passed. No data is moved.
 */
#define _GNU_SOURCE
#include "nccl_local.h"

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
	int code = comm_usable(comm);

	if (code)
		return (ncclResult_t)code;
	if (!room(comm))
		return C_INTERNAL;
	if (driver_streams()->place(stream, &at, &after))
		return C_CUDA;
	place = place_new(comm);
	if (!place)
		return C_SYSTEM;
	cost = transfer_cost(comm, bytes);
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
		if (__atomic_add_fetch(&flight->arrived, 1, __ATOMIC_RELEASE) == there->ranks)
			flight_settle(there, flight);
	}
	state_unlock(state);
	if (!there) {
		place_free(place);
		return C_INTERNAL;
	}
	return place_put(place, spin_what(COLLECTIVE, comm->slot, comm->rank, 0, place->sequence), stream);
}

API ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
			       ncclComm_t comm, cudaStream_t stream)
{
	ENTER(comm);
	(void)op;
	return count && (!from || !to) ? C_ARGUMENT : collective(comm, 2 * count * type_width((int)type), stream);
}

API ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
			       cudaStream_t stream)
{
	ENTER(comm);
	if (!comm || (count && (!from || !to)))
		return C_ARGUMENT;
	return collective(comm, count * type_width((int)type) * (size_t)comm->ranks, stream);
}

API ncclResult_t ncclReduceScatter(const void *from, void *to, size_t count, ncclDataType_t type,
				   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	ENTER(comm);
	(void)op;
	if (!comm || (count && (!from || !to)))
		return C_ARGUMENT;
	return collective(comm, count * type_width((int)type) * (size_t)comm->ranks, stream);
}

API ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
			       ncclComm_t comm, cudaStream_t stream)
{
	ENTER(comm);
	(void)from;
	if (!comm || root < 0 || root >= comm->ranks || (count && !to))
		return C_ARGUMENT;
	return collective(comm, count * type_width((int)type), stream);
}

API ncclResult_t ncclReduce(const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op,
			    int root, ncclComm_t comm, cudaStream_t stream)
{
	ENTER(comm);
	(void)to;
	(void)op;
	if (!comm || root < 0 || root >= comm->ranks || (count && !from))
		return C_ARGUMENT;
	return collective(comm, count * type_width((int)type), stream);
}

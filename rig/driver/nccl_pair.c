/* SPDX-License-Identifier: Apache-2.0 */
/* Send and receive: over on both sides when both have put theirs on a stream. */
#include "nccl_local.h"

static ncclResult_t pair(struct ncclComm *comm, int peer, size_t bytes, void *stream, int sending)
{
	struct communicator *there;
	struct tally *mine;
	struct place *place;
	uint64_t at, after, what;
	int code = comm_usable(comm);

	if (code)
		return (ncclResult_t)code;
	if (peer < 0 || peer >= comm->ranks)
		return C_ARGUMENT;
	there = shared(comm);
	if (!there || driver_streams()->place(stream, &at, &after))
		return there ? C_CUDA : C_INTERNAL;
	place = place_new(comm);
	if (!place)
		return C_SYSTEM;
	mine = sending ? &there->sent[comm->rank][peer] : &there->received[peer][comm->rank];
	place->theirs = sending ? &there->received[comm->rank][peer] : &there->sent[peer][comm->rank];
	__atomic_store_n(&mine->at, now_ns(), __ATOMIC_RELAXED);
	place->nth = __atomic_add_fetch(&mine->count, 1, __ATOMIC_ACQ_REL);
	place->at = at;
	place->cost = transfer_cost(comm, bytes);
	what = spin_what(sending ? SEND : RECEIVE, comm->slot, comm->rank, peer, place->nth);
	return place_put(place, what, stream);
}

API ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
			  cudaStream_t stream)
{
	ENTER(comm);
	return count && !from ? C_ARGUMENT : pair(comm, peer, count * type_width((int)type), stream, 1);
}

API ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
			  cudaStream_t stream)
{
	ENTER(comm);
	return count && !to ? C_ARGUMENT : pair(comm, peer, count * type_width((int)type), stream, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Places of collectives on streams: when one is over, and what it costs. */
#include "nccl_local.h"

#include <stdlib.h>

size_t type_width(int type)
{
	static const size_t WIDTHS[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return type >= 0 && type < 12 ? WIDTHS[type] : 1;
}

uint64_t transfer_cost(const struct ncclComm *comm, size_t bytes)
{
	double latency = setting_real(comm->device, "nccl.latency", 20e-6);
	double rate = setting_real(comm->device, "nccl.bandwidth", 200e9);

	return (uint64_t)((latency + (double)bytes / rate) * 1e9);
}

/* Once all have arrived nothing of a flight changes but `finish`, and each would write the same there. */
void flight_settle(const struct communicator *there, struct flight *flight)
{
	uint64_t start = flight->ready;
	const struct flight *before = &there->flights[(flight->sequence + FLIGHTS - 1) % FLIGHTS];

	if (__atomic_load_n(&flight->finish, __ATOMIC_ACQUIRE))
		return;
	if (flight->sequence && before->sequence == flight->sequence - 1) {
		uint64_t then = before->finish ? before->finish : before->ready + before->cost;

		start = then + flight->after > start ? then + flight->after : start;
	}
	__atomic_store_n(&flight->finish, start + flight->cost, __ATOMIC_RELEASE);
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
	flight_settle(there, flight);
	*finish = __atomic_load_n(&flight->finish, __ATOMIC_ACQUIRE);
	return 1;
}

static int over(void *arg, uint64_t now, uint64_t *finish)
{
	struct place *place = arg;
	uint64_t came;

	if (__atomic_load_n(&place->comm->aborted, __ATOMIC_ACQUIRE)) {
		*finish = now;
		return 1;
	}
	if (place->theirs) {
		if (__atomic_load_n(&place->theirs->count, __ATOMIC_ACQUIRE) < place->nth)
			return 0;
		came = __atomic_load_n(&place->theirs->at, __ATOMIC_RELAXED);
		*finish = (came > place->at ? came : place->at) + place->cost;
		return 1;
	}
	return ended(place, finish);
}

struct place *place_new(struct ncclComm *comm)
{
	struct place *place = calloc(1, sizeof(*place));

	if (place)
		place->comm = comm_hold(comm);
	if (!place || place->comm)
		return place;
	free(place); /* aborted meanwhile */
	return 0;
}

void place_free(struct place *place)
{
	comm_let_go(&place->comm);
	free(place);
}

static void forget(void *arg)
{
	place_free(arg);
}

ncclResult_t place_put(struct place *place, uint64_t what, void *stream)
{
	int code = driver_streams()->wait(stream, what, over, forget, place);

	if (code)
		place_free(place);
	return code ? C_CUDA : C_OK;
}

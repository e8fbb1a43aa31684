/* SPDX-License-Identifier: Apache-2.0 */
/* The door of every call, and which communicators there are: none goes while somebody is at it. */
#include "nccl_local.h"

#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ncclComm *comms;

int nccl_enter(const char *name, int given, struct ncclComm *held)
{
	int sticky;

	settings_look();
	if (!state_get())
		return C_SYSTEM;
	if (given && !held)
		return C_ARGUMENT;
	return gate(name, held ? held->device : ANY_DEVICE, &sticky);
}

void comm_publish(struct ncclComm *comm)
{
	pthread_mutex_lock(&lock);
	comm->holds = 1;
	comm->next = comms;
	comms = comm;
	pthread_mutex_unlock(&lock);
}

struct ncclComm *comm_hold(struct ncclComm *comm)
{
	struct ncclComm *at;

	if (!comm)
		return 0;
	pthread_mutex_lock(&lock);
	for (at = comms; at && at != comm; at = at->next)
		;
	if (at && at->released)
		at = 0;
	if (at)
		at->holds++;
	pthread_mutex_unlock(&lock);
	return at;
}

void comm_let_go(struct ncclComm **held)
{
	struct ncclComm **at, *comm = *held;

	if (!comm)
		return;
	pthread_mutex_lock(&lock);
	if (--comm->holds == 0 && comm->released) {
		for (at = &comms; *at != comm; at = &(*at)->next)
			;
		*at = comm->next;
		free(comm);
	}
	pthread_mutex_unlock(&lock);
}

/* The caller holds it, and so it is freed after this call at the earliest. */
void comm_drop(struct ncclComm *comm)
{
	struct state *state = state_get();
	struct communicator *there;

	state_lock(state);
	there = shared(comm);
	if (there && __atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE))
		__atomic_store_n(&there->members[comm->rank].aborted_at, now_ns(), __ATOMIC_RELEASE);
	if (there)
		there->members[comm->rank].left = 1;
	state_unlock(state);
	pthread_mutex_lock(&lock);
	comm->released = 1;
	pthread_mutex_unlock(&lock);
}

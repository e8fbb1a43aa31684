/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator as one rank holds it; what ranks share is in the state, see state.h. */
#ifndef NCCL_LOCAL_H
#define NCCL_LOCAL_H

#include "nccl_abi.h"
#include "settings.h"
#include "state.h"
#include "streams.h"

enum { C_OK = 0, C_CUDA = 1, C_SYSTEM = 2, C_INTERNAL = 3, C_ARGUMENT = 4, C_USAGE = 5, C_REMOTE = 6,
       C_PROGRESS = 7 };

struct ncclComm {
	int slot, rank, ranks, device;
	int blocking, joined, aborted;
	uint64_t id;
	uint64_t missed_at;	/* when a rank was first seen to be gone */
	unsigned holds;		/* calls that run with it, and places on streams that point here */
	int released;		/* destroyed or aborted: the last hold frees it */
	struct ncclComm *next;
};

struct place {	/* of a collective on a stream */
	struct ncclComm *comm;
	uint64_t sequence;
	struct tally *theirs;	/* send and receive: the peer's */
	uint32_t nth;
	uint64_t at, cost;
};

/* Another thread may abort the communicator meanwhile: the call holds it until it returns. */
#define HELD(name, comm) struct ncclComm *name __attribute__((cleanup(comm_let_go))) = comm_hold(comm)
#define ENTER(comm) \
	HELD(held, comm); \
	do { ncclResult_t entered = (ncclResult_t)nccl_enter(__func__, (comm) != 0, held); \
	     if (entered) return entered; } while (0)

int nccl_enter(const char *name, int given, struct ncclComm *held);
struct ncclComm *comm_hold(struct ncclComm *comm);	/* 0 for one that is gone, or was none */
void comm_let_go(struct ncclComm **held);
void comm_publish(struct ncclComm *comm);		/* with one hold, its maker's */
struct communicator *shared(const struct ncclComm *comm);
const struct stream_table *driver_streams(void);	/* 0 without a driver */
int comm_join(struct ncclComm *comm);	/* this rank is there; locked by itself */
int comm_wait(struct ncclComm *comm);	/* until all are, or one is gone, or it was aborted */
struct ncclComm *comm_new(uint64_t id, int ranks, int rank, int blocking);
int comm_error(struct ncclComm *comm);	/* 6 once a rank has been gone for long enough, else 0 or 7 */
int comm_usable(struct ncclComm *comm);	/* 0, or why no collective can be put on a stream */
void comm_drop(struct ncclComm *comm);
struct place *place_new(struct ncclComm *comm);		/* holds it */
ncclResult_t place_put(struct place *place, uint64_t what, void *stream); /* its owner from then on */
void place_free(struct place *place);
void flight_settle(const struct communicator *there, struct flight *flight); /* all have arrived */
size_t type_width(int type);
uint64_t transfer_cost(const struct ncclComm *comm, size_t bytes);
uint64_t fresh_id(void);
int grouped(void);
#endif

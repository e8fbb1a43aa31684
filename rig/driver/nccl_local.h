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
	uint32_t magic;
	int slot, rank, ranks, device;
	int blocking, joined, aborted;
	uint64_t id;
	uint64_t missed_at;	/* when a rank was first seen to be gone */
	unsigned holds;		/* places on streams that still point here */
	int released;
};

enum { MAGIC_COMM = 0x636f6d31 };

#define ENTER(comm) \
	do { ncclResult_t entered = (ncclResult_t)nccl_enter(__func__, comm); \
	     if (entered) return entered; } while (0)

int nccl_enter(const char *name, struct ncclComm *comm); /* comm may be 0 */
struct communicator *shared(const struct ncclComm *comm);
const struct stream_table *driver_streams(void);	/* 0 without a driver */
int comm_join(struct ncclComm *comm);	/* this rank is there; locked by itself */
int comm_wait(struct ncclComm *comm);	/* until all are, or one is gone, or it was aborted */
struct ncclComm *comm_new(uint64_t id, int ranks, int rank, int blocking);
int comm_error(struct ncclComm *comm);	/* 6 once a rank has been gone for long enough, else 0 or 7 */
void comm_drop(struct ncclComm *comm);
uint64_t fresh_id(void);
int grouped(void);
#endif

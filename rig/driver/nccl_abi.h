/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's types as far as its calling convention needs them; see cuda_abi.h for the other mode. */
#ifndef NCCL_ABI_H
#define NCCL_ABI_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifdef MODELPROBE_AGAINST_HEADERS
#include <nccl.h>
#else
typedef int ncclResult_t;
typedef struct ncclComm *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;	/* by value: 128 bytes on the stack */
typedef int ncclDataType_t, ncclRedOp_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking;		/* what follows grows with each release and is not read */
} ncclConfig_t;
#endif

_Static_assert(sizeof(ncclUniqueId) == 128 && offsetof(ncclConfig_t, blocking) == 16, "layout");
#endif

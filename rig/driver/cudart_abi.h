/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's types as far as its calling convention needs them; see cuda_abi.h for the other mode. */
#ifndef CUDART_ABI_H
#define CUDART_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef MODELPROBE_AGAINST_HEADERS
#include <cuda_runtime_api.h>
#else
typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUkern_st *cudaKernel_t;
typedef struct { unsigned x, y, z; } dim3;	/* 12 bytes: two registers each, by value */
typedef struct {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	void *attrs;
	unsigned numAttrs;
} cudaLaunchConfig_t;
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
		      cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaDeviceAttr { cudaDevAttrMaxThreadsPerBlock = 1 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal };
#endif

_Static_assert(sizeof(dim3) == 12 && sizeof(cudaLaunchConfig_t) == 56, "layout");
#endif

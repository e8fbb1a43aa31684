/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver API's types as far as its calling convention needs them. With MODELPROBE_AGAINST_HEADERS
 * the toolkit's own header stands in for this one, so that a compiler compares every signature.
 */
#ifndef CUDA_ABI_H
#define CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef MODELPROBE_AGAINST_HEADERS
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#else
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUlib_st *CUlibrary;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct { char bytes[16]; } CUuuid;
typedef void (*CUhostFn)(void *);
typedef struct CUlaunchAttribute_st CUlaunchAttribute;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef struct CUmemPoolProps_st CUmemPoolProps;
typedef int CUdevice_attribute, CUfunction_attribute, CUfunc_cache, CUlimit, CUjit_option, CUlibraryOption,
	CUmemAllocationGranularity_flags, CUmemPool_attribute, CUpointer_attribute, CUstreamCaptureMode,
	CUstreamCaptureStatus, CUdriverProcAddressQueryResult;
typedef struct CUlaunchConfig_st {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
} CUlaunchConfig;
typedef struct {
	CUfunction func;
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	void **kernelParams, **extra;
} CUDA_KERNEL_NODE_PARAMS_v1;
typedef struct {
	CUfunction func;
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	void **kernelParams, **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;
typedef struct { int type, id; } CUmemLocation;
typedef struct { CUmemLocation location; int flags; } CUmemAccessDesc;
typedef struct {
	int type, requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct { unsigned char compressionType, gpuDirectRDMACapable; unsigned short usage;
		 unsigned char reserved[4]; } allocFlags;
} CUmemAllocationProp;
#endif

_Static_assert(sizeof(CUlaunchConfig) == 56 && offsetof(CUlaunchConfig, hStream) == 32, "layout");
_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "layout");
_Static_assert(sizeof(CUmemAllocationProp) == 32, "layout");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "layout");
#endif

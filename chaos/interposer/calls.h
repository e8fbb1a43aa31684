/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every hooked function, included again and again with another meaning of CALL: library, symbol, the
 * name cuGetProcAddress knows it by and from which version, bytes that it allocates, and signature.
 * A line's place is its bit in a rule; `symbols.py` has the same names in the same order.
 * PTSZ lines are the forms for the per-thread default stream, RANK ones tell the rank of a process. Sources: cuda.h (13.0), nccl.h (2.28).
 */
#define LAUNCH (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
		unsigned shared, void *stream, void **parameters, void **extra)
#define LAUNCHED (function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
#define TOGETHER (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, \
		  unsigned shared, void *stream, void **parameters)
#define TOGETHERED (function, gx, gy, gz, bx, by, bz, shared, stream, parameters)
#define EXTENDED (const void *config, void *function, void **parameters, void **extra)
#define REDUCED (const void *send, void *receive, size_t count, int type, int op, void *comm, void *stream)

CALL(CUDA, cuMemAlloc_v2, cuMemAlloc, 3020, size, (void *at, size_t size), (at, size))
CALL(CUDA, cuMemAllocPitch_v2, cuMemAllocPitch, 3020, width * height,
     (void *at, void *pitch, size_t width, size_t height, unsigned element), (at, pitch, width, height, element))
CALL(CUDA, cuMemAllocManaged, cuMemAllocManaged, 6000, size, (void *at, size_t size, unsigned flags),
     (at, size, flags))
CALL(CUDA, cuMemAllocAsync, cuMemAllocAsync, 11020, size, (void *at, size_t size, void *stream),
     (at, size, stream))
CALL(PTSZ, cuMemAllocAsync_ptsz, cuMemAllocAsync, 11020, size, (void *at, size_t size, void *stream),
     (at, size, stream))
CALL(CUDA, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, size,
     (void *at, size_t size, void *pool, void *stream), (at, size, pool, stream))
CALL(PTSZ, cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync, 11020, size,
     (void *at, size_t size, void *pool, void *stream), (at, size, pool, stream))
CALL(CUDA, cuMemCreate, cuMemCreate, 10020, size,
     (void *handle, size_t size, const void *properties, unsigned long long flags), (handle, size, properties, flags))
CALL(CUDA, cuLaunchKernel, cuLaunchKernel, 4000, NO_SIZE, LAUNCH, LAUNCHED)
CALL(PTSZ, cuLaunchKernel_ptsz, cuLaunchKernel, 7000, NO_SIZE, LAUNCH, LAUNCHED)
CALL(CUDA, cuLaunchKernelEx, cuLaunchKernelEx, 11060, NO_SIZE, EXTENDED, (config, function, parameters, extra))
CALL(PTSZ, cuLaunchKernelEx_ptsz, cuLaunchKernelEx, 11060, NO_SIZE, EXTENDED, (config, function, parameters, extra))
CALL(CUDA, cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, NO_SIZE, TOGETHER, TOGETHERED)
CALL(PTSZ, cuLaunchCooperativeKernel_ptsz, cuLaunchCooperativeKernel, 9000, NO_SIZE, TOGETHER, TOGETHERED)
CALL(CUDA, cuGraphLaunch, cuGraphLaunch, 10000, NO_SIZE, (void *graph, void *stream), (graph, stream))
CALL(PTSZ, cuGraphLaunch_ptsz, cuGraphLaunch, 10000, NO_SIZE, (void *graph, void *stream), (graph, stream))
CALL(CUDA, cuStreamSynchronize, cuStreamSynchronize, 2000, NO_SIZE, (void *stream), (stream))
CALL(PTSZ, cuStreamSynchronize_ptsz, cuStreamSynchronize, 7000, NO_SIZE, (void *stream), (stream))
CALL(CUDA, cuEventSynchronize, cuEventSynchronize, 2000, NO_SIZE, (void *event), (event))
CALL(CUDA, cuEventQuery, cuEventQuery, 2000, NO_SIZE, (void *event), (event))
CALL(CUDA, cuCtxSynchronize, cuCtxSynchronize, 2000, NO_SIZE, (void), ())
CALL(CUDA, cuCtxSynchronize_v2, cuCtxSynchronize, 13000, NO_SIZE, (void *context), (context))
CALL(CUDA, cuCtxGetCurrent, cuCtxGetCurrent, 4000, NO_SIZE, (void *context), (context))
CALL(NCCL, ncclCommInitAll, 0, 0, NO_SIZE, (void *comms, int count, const int *devices), (comms, count, devices))
CALL(RANK, ncclCommInitRank, 0, 0, NO_SIZE, (void *comm, int ranks, struct unique_id id, int rank),
     (comm, ranks, id, rank))
CALL(RANK, ncclCommInitRankConfig, 0, 0, NO_SIZE,
     (void *comm, int ranks, struct unique_id id, int rank, void *config), (comm, ranks, id, rank, config))
CALL(NCCL, ncclCommSplit, 0, 0, NO_SIZE, (void *comm, int color, int key, void *made, void *config),
     (comm, color, key, made, config))
CALL(NCCL, ncclAllReduce, 0, 0, NO_SIZE, REDUCED, (send, receive, count, type, op, comm, stream))
CALL(NCCL, ncclAllGather, 0, 0, NO_SIZE,
     (const void *send, void *receive, size_t count, int type, void *comm, void *stream),
     (send, receive, count, type, comm, stream))
CALL(NCCL, ncclReduceScatter, 0, 0, NO_SIZE, REDUCED, (send, receive, count, type, op, comm, stream))
CALL(NCCL, ncclBroadcast, 0, 0, NO_SIZE,
     (const void *send, void *receive, size_t count, int type, int root, void *comm, void *stream),
     (send, receive, count, type, root, comm, stream))
CALL(NCCL, ncclReduce, 0, 0, NO_SIZE,
     (const void *send, void *receive, size_t count, int type, int op, int root, void *comm, void *stream),
     (send, receive, count, type, op, root, comm, stream))
CALL(NCCL, ncclSend, 0, 0, NO_SIZE,
     (const void *data, size_t count, int type, int peer, void *comm, void *stream),
     (data, count, type, peer, comm, stream))
CALL(NCCL, ncclRecv, 0, 0, NO_SIZE, (void *data, size_t count, int type, int peer, void *comm, void *stream),
     (data, count, type, peer, comm, stream))
CALL(NCCL, ncclCommGetAsyncError, 0, 0, NO_SIZE, (void *comm, void *error), (comm, error))
CALL(NCCL, ncclCommAbort, 0, 0, NO_SIZE, (void *comm), (comm))

#undef LAUNCH
#undef LAUNCHED
#undef TOGETHER
#undef TOGETHERED
#undef EXTENDED
#undef REDUCED

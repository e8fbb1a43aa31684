/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: the kernel's time goes on the stream; a trap shows when the stream has come to it. */
#include "cuda_local.h"

#include <string.h>

static CUresult launch(CUcontext context, CUfunction function, CUstream stream, unsigned blocks,
		       unsigned threads)
{
	uint64_t cost;
	int trap;

	if (!function || !stream)
		return E_HANDLE;
	if (!blocks || !threads || threads > 1024)
		return E_VALUE;
	cost = function_cost(function, context->device, &trap);
	pthread_mutex_lock(&cuda_lock);
	if (stream->capture) {
		stream->capture->kernels++;
		stream->capture->cost += cost;
		stream->capture->trap = trap ? trap : stream->capture->trap;
		pthread_mutex_unlock(&cuda_lock);
		return OK;
	}
	stream_work(stream, cost);
	if (trap)
		trap_at(trap, stream->tail);
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

#define ON_STREAM(suffix, per_thread) \
API CUresult cuLaunchKernel##suffix(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, \
				    unsigned by, unsigned bz, unsigned shared, CUstream stream, \
				    void **params, void **extra) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	(void)shared; \
	(void)params; \
	(void)extra; \
	return launch(context, function, stream_of(stream, per_thread, context), gx && gy && gz, \
		      bx * by * bz); \
} \
API CUresult cuLaunchKernelEx##suffix(const CUlaunchConfig *config, CUfunction function, void **params, \
				      void **extra) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	(void)params; \
	(void)extra; \
	if (!config) \
		return E_VALUE; \
	return launch(context, function, stream_of(config->hStream, per_thread, context), \
		      config->gridDimX && config->gridDimY && config->gridDimZ, \
		      config->blockDimX * config->blockDimY * config->blockDimZ); \
} \
API CUresult cuLaunchCooperativeKernel##suffix(CUfunction function, unsigned gx, unsigned gy, unsigned gz, \
					       unsigned bx, unsigned by, unsigned bz, unsigned shared, \
					       CUstream stream, void **params) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	(void)shared; \
	(void)params; \
	return launch(context, function, stream_of(stream, per_thread, context), gx && gy && gz, \
		      bx * by * bz); \
}
ON_STREAM(, 0)
ON_STREAM(_ptsz, 1)

/*
 * Resident blocks a multiprocessor: registers are given by warp in units of 256 and by quarter of the
 * multiprocessor, shared memory with the reserve of 1 KiB a block from 8.0 on, in units of 128 bytes.
 */
static CUresult occupancy(CUcontext context, int *blocks, CUfunction function, int size, size_t dynamic)
{
	int device = context->device, warps = (size + 31) / 32, registers, fixed, warp, best, limit;

	if (!blocks || !function || size < 1 || size > 1024)
		return function ? E_VALUE : E_HANDLE;
	function_attribute(function, device, 4, &registers);
	function_attribute(function, device, 1, &fixed);
	best = device_attribute(device, 39) / 32 / warps;
	limit = device_attribute(device, 106);
	best = limit < best ? limit : best;
	warp = (registers * 32 + 255) / 256 * 256;
	limit = warp > 0 ? 16384 / warp * 4 / warps : best;
	best = limit < best ? limit : best;
	limit = (int)(((size_t)fixed + dynamic + (size_t)device_attribute(device, 111) + 127) / 128 * 128);
	if (limit && device_attribute(device, 81) / limit < best)
		best = device_attribute(device, 81) / limit;
	*blocks = best;
	return OK;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int size,
							 size_t dynamic)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	return occupancy(context, blocks, function, size, dynamic);
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int size,
								  size_t dynamic, unsigned flags)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	return flags > 1 ? E_VALUE : occupancy(context, blocks, function, size, dynamic);
}

API CUresult cuProfilerStart(void)
{
	ENTER(CONTEXT, 0);
	return OK;
}

API CUresult cuProfilerStop(void)
{
	ENTER(CONTEXT, 0);
	return OK;
}

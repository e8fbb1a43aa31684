/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies take their bytes' time on the stream. Device allocations of up to 64 KiB hold contents, at
 * once and not when the stream comes to it; larger ones hold none and read as they were.
 */
#include "cuda_local.h"

#include <stdlib.h>
#include <string.h>

#define HELD 65536

static unsigned char *contents(struct allocation *allocation)
{
	if (!allocation->bytes && allocation->size <= HELD)
		allocation->bytes = calloc(1, allocation->size);
	return allocation->bytes;
}

/* 1 with *bytes set when device memory is meant, -1 when it is out of bounds, 0 for host memory. */
static int locate(CUdeviceptr at, size_t size, unsigned char **bytes)
{
	struct allocation *found = allocation_at(at);

	*bytes = (unsigned char *)(uintptr_t)at;
	if (!found)
		return 0;
	if (size > found->size - (at - found->at))
		return -1;
	if (found->kind == DEVICE_MEMORY) {
		*bytes = contents(found);
		if (*bytes)
			*bytes += at - found->at;
	} else if (found->kind == RESERVED) {
		*bytes = 0;
	}
	return 1;
}

static CUresult copy(CUstream stream, CUdeviceptr to, CUdeviceptr from, size_t size, int device_to,
		     int device_from, int wait)
{
	unsigned char *target, *source;
	int a, b;
	double rate;

	if (!stream)
		return E_HANDLE;
	if (!size)
		return OK;
	pthread_mutex_lock(&cuda_lock);
	a = locate(to, size, &target);
	b = locate(from, size, &source);
	if (a < 0 || b < 0 || (device_to && !a) || (device_from && !b)) {
		pthread_mutex_unlock(&cuda_lock);
		return E_VALUE;
	}
	if (target && source && size <= HELD)
		memmove(target, source, size);
	rate = setting_real(stream->context->device, device_to && device_from ? "copy.bandwidth.device" :
								"copy.bandwidth",
			    device_to && device_from ? 2e12 : 25e9);
	stream_work(stream, (uint64_t)((double)size / rate * 1e9));
	pthread_mutex_unlock(&cuda_lock);
	return wait ? (CUresult)stream_finish(stream) : OK;
}

static CUresult fill(CUstream stream, CUdeviceptr at, unsigned value, size_t count, size_t width)
{
	unsigned char *target;
	size_t i;
	int found;

	if (!stream)
		return E_HANDLE;
	pthread_mutex_lock(&cuda_lock);
	found = locate(at, count * width, &target);
	if (found > 0 && target && count * width <= HELD)
		for (i = 0; i < count; i++)
			memcpy(target + i * width, &value, width);
	if (found > 0)
		stream_work(stream, count * width / 2000);
	pthread_mutex_unlock(&cuda_lock);
	return found > 0 ? OK : E_VALUE;
}

#define ASYNC(name, params, to, from, size, device_to, device_from) \
API CUresult name params \
{ CUcontext context; ENTER(CONTEXT, &context); \
  return copy(stream_of(stream, 0, context), to, from, size, device_to, device_from, 0); }
#define ASYNC_PTSZ(name, params, to, from, size, device_to, device_from) \
API CUresult name##_ptsz params \
{ CUcontext context; ENTER(CONTEXT, &context); \
  return copy(stream_of(stream, 1, context), to, from, size, device_to, device_from, 0); }
#define SYNC(name, params, to, from, size, device_to, device_from) \
API CUresult name params \
{ CUcontext context; ENTER(CONTEXT, &context); \
  return copy(&context->legacy, to, from, size, device_to, device_from, 1); } \
API CUresult name##_ptds params \
{ CUcontext context; ENTER(CONTEXT, &context); \
  return copy(&context->per_thread, to, from, size, device_to, device_from, 1); }
#define BOTH(...) ASYNC(__VA_ARGS__) ASYNC_PTSZ(__VA_ARGS__)
#define HOST(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

SYNC(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size), to, HOST(from), size, 1, 0)
SYNC(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t size), HOST(to), from, size, 0, 1)
SYNC(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t size), to, from, size, 1, 1)
SYNC(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t size), to, from, size, 0, 0)
BOTH(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t size, CUstream stream), to, HOST(from),
     size, 1, 0)
BOTH(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t size, CUstream stream), HOST(to), from, size,
     0, 1)
BOTH(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), to, from, size,
     1, 1)
BOTH(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), to, from, size, 0, 0)

#define PEER(suffix, per_thread) \
API CUresult cuMemcpyPeerAsync##suffix(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, \
				       CUcontext from_context, size_t size, CUstream stream) \
{ CUcontext context; ENTER(CONTEXT, &context); \
  if (!to_context || !from_context) return E_CONTEXT; \
  return copy(stream_of(stream, per_thread, context), to, from, size, 1, 1, 0); }
PEER(, 0)
PEER(_ptsz, 1)

#define FILL(name, type, width) \
API CUresult name##_v2(CUdeviceptr at, type value, size_t count) \
{ CUcontext context; ENTER(CONTEXT, &context); return fill(&context->legacy, at, value, count, width); } \
API CUresult name##_v2_ptds(CUdeviceptr at, type value, size_t count) \
{ CUcontext context; ENTER(CONTEXT, &context); return fill(&context->per_thread, at, value, count, width); } \
API CUresult name##Async(CUdeviceptr at, type value, size_t count, CUstream stream) \
{ CUcontext context; ENTER(CONTEXT, &context); \
  return fill(stream_of(stream, 0, context), at, value, count, width); } \
API CUresult name##Async_ptsz(CUdeviceptr at, type value, size_t count, CUstream stream) \
{ CUcontext context; ENTER(CONTEXT, &context); \
  return fill(stream_of(stream, 1, context), at, value, count, width); }
FILL(cuMemsetD8, unsigned char, 1)
FILL(cuMemsetD32, unsigned, 4)

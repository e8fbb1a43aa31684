/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: each call charges the device, then notes what the charge was for. */
#include "cuda_local.h"

static CUresult allocate(CUcontext context, CUdeviceptr *at, size_t size, enum kind kind)
{
	uint64_t unit = setting_whole(context->device, "allocation_granularity", 512);
	size_t charged = unit ? (size + unit - 1) / unit * unit : size;
	struct allocation *made;

	if (!at || !size)
		return E_VALUE;
	if (charged < size || charge(context->device, charged))
		return E_MEMORY;
	pthread_mutex_lock(&cuda_lock);
	made = allocation_add((struct allocation){ .size = size, .charged = charged, .kind = kind,
						   .context = context, .device = context->device });
	if (made)
		*at = made->at;
	pthread_mutex_unlock(&cuda_lock);
	if (!made)
		discharge(context->device, charged);
	return made ? OK : E_MEMORY;
}

static CUresult release(CUdeviceptr at)
{
	struct allocation *found;
	CUresult code = E_VALUE;

	if (!at)
		return OK;
	pthread_mutex_lock(&cuda_lock);
	found = allocation_at(at);
	if (found && found->at == at && found->kind == DEVICE_MEMORY) {
		discharge(found->device, found->charged);
		allocation_remove(found);
		code = OK;
	}
	pthread_mutex_unlock(&cuda_lock);
	return code;
}

API CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t size)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	return allocate(context, at, size, DEVICE_MEMORY);
}

API CUresult cuMemAllocPitch_v2(CUdeviceptr *at, size_t *pitch, size_t width, size_t height, unsigned element)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	if (!pitch || (element != 4 && element != 8 && element != 16))
		return E_VALUE;
	*pitch = (width + 511) / 512 * 512;
	return allocate(context, at, *pitch * height, DEVICE_MEMORY);
}

API CUresult cuMemAllocManaged(CUdeviceptr *at, size_t size, unsigned flags)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	if (flags != 1 && flags != 2)
		return E_VALUE;
	return allocate(context, at, size, DEVICE_MEMORY);
}

API CUresult cuMemFree_v2(CUdeviceptr at)
{
	ENTER(CONTEXT, 0);
	return release(at);
}

/* The pool gives memory back at once: what a real one keeps for reuse is not modelled. */
#define POOLED(suffix) \
API CUresult cuMemAllocAsync##suffix(CUdeviceptr *at, size_t size, CUstream stream) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	if (!stream_of(stream, 0, context)) \
		return E_HANDLE; \
	return allocate(context, at, size, DEVICE_MEMORY); \
} \
API CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr *at, size_t size, CUmemoryPool pool, CUstream stream) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	if (!pool || !stream_of(stream, 0, context)) \
		return pool ? E_HANDLE : E_VALUE; \
	return allocate(context, at, size, DEVICE_MEMORY); \
} \
API CUresult cuMemFreeAsync##suffix(CUdeviceptr at, CUstream stream) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	if (!stream_of(stream, 0, context)) \
		return E_HANDLE; \
	return at ? release(at) : E_VALUE; \
}
POOLED()
POOLED(_ptsz)

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct state *state = state_get();
	CUcontext context;
	uint64_t used_bytes, limit;

	ENTER(CONTEXT, &context);
	limit = usable(context->device);
	state_sweep(state, 0);
	used_bytes = device_bytes(state, context->device, instance_of(context->device));
	*free_bytes = limit > used_bytes ? limit - used_bytes : 0;
	*total = capacity(context->device);
	return OK;
}

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr at)
{
	struct allocation *found;

	ENTER(CONTEXT, 0);
	pthread_mutex_lock(&cuda_lock);
	found = allocation_at(at);
	if (found && base)
		*base = found->at;
	if (found && size)
		*size = found->size;
	pthread_mutex_unlock(&cuda_lock);
	return found ? OK : E_NOTFOUND;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts. One that was destroyed or reset is kept as a husk: who still has it current gets 709, as
 * the driver answers, and not a fault. Destroying it lets go of all it held.
 */
#include "cuda_local.h"

#include <stdlib.h>

static CUcontext contexts;

static void found_stream(CUstream stream, CUcontext context)
{
	stream->magic = MAGIC_STREAM;
	stream->context = context;
}

int open_context(CUcontext context, int device)
{
	struct share *share = share_of(device);
	uint64_t overhead = setting_whole(device, "context_memory", 0);

	if (!share)
		return E_MEMORY;
	if (charge(device, overhead))
		return E_MEMORY;
	context->magic = MAGIC_CONTEXT;
	context->device = device;
	context->alive = 1;
	found_stream(&context->legacy, context);
	found_stream(&context->per_thread, context);
	__atomic_fetch_add(&share->contexts, 1, __ATOMIC_RELAXED);
	/* Held like any allocation, so that it goes with the context whatever the file says by then. */
	if (overhead)
		allocation_add((struct allocation){ .size = 0, .charged = overhead, .kind = PHYSICAL,
						    .context = context, .device = device });
	return OK;
}

void close_context(CUcontext context) /* cuda_lock held */
{
	struct share *share = share_of(context->device);
	CUstream stream, next;

	context->alive = 0;
	stream_drop(&context->legacy);
	stream_drop(&context->per_thread);
	for (stream = context->streams; stream; stream = next) {
		next = stream->next;
		stream_drop(stream);
		stream->magic = 0; /* the block stays: a stale handle is told apart, not followed */
	}
	context->streams = 0;
	forget_allocations(context);
	if (share)
		__atomic_fetch_sub(&share->contexts, 1, __ATOMIC_RELAXED);
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice device)
{
	int index = device_of(device), code;
	CUcontext context;

	if (sticky_error())
		return (CUresult)sticky_error();
	if (index < 0 || !out)
		return index < 0 ? E_DEVICE : E_VALUE;
	context = calloc(1, sizeof(*context));
	if (!context)
		return E_MEMORY;
	pthread_mutex_lock(&cuda_lock);
	code = open_context(context, index);
	context->flags = flags;
	context->next = contexts;
	if (!code)
		contexts = context;
	pthread_mutex_unlock(&cuda_lock);
	if (code) {
		free(context);
		return (CUresult)code;
	}
	*out = context;
	return (CUresult)push_context(context);
}

API CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
	ENTER(INITIALISED, 0);
	return create(context, flags, device);
}

API CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int count, unsigned flags,
			    CUdevice device)
{
	ENTER(INITIALISED, 0);
	if (count && !params)
		return E_VALUE;
	return create(context, flags, device);
}

API CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
	ENTER(INITIALISED, 0);
	(void)params;
	return create(context, flags, device);
}

API CUresult cuCtxDestroy_v2(CUcontext context)
{
	ENTER(INITIALISED, 0);
	if (!context || context->magic != MAGIC_CONTEXT || context->primary)
		return E_CONTEXT;
	if (!context->alive)
		return E_DESTROYED;
	pthread_mutex_lock(&cuda_lock);
	close_context(context);
	pthread_mutex_unlock(&cuda_lock);
	if (current() == context)
		pop_context();
	return OK;
}

API CUresult cuCtxGetDevice(CUdevice *device)
{
	CUcontext context;
	int i;

	ENTER(CONTEXT, &context);
	for (i = 0; i < device_count(); i++)
		if (device_of(i) == context->device)
			*device = i;
	return OK;
}

API CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
	ENTER(INITIALISED, 0);
	if (context && !context->alive)
		return E_DESTROYED;
	*version = 3020;
	return OK;
}

API CUresult cuCtxGetFlags(unsigned *flags)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	*flags = context->flags;
	return OK;
}

static CUresult finish(CUcontext context)
{
	CUstream stream, next;
	int code = stream_finish(&context->legacy);

	if (!code)
		code = stream_finish(&context->per_thread);
	/* Blocks of streams are never given back, so the list can be walked without the lock. */
	for (stream = context->streams; stream && !code; stream = next) {
		next = stream->next;
		code = stream_finish(stream);
	}
	return (CUresult)code;
}

API CUresult cuCtxSynchronize(void)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	return finish(context);
}

API CUresult cuCtxSynchronize_v2(CUcontext context)
{
	ENTER(CONTEXT, 0);
	if (!context || context->magic != MAGIC_CONTEXT)
		return E_CONTEXT;
	return context->alive ? finish(context) : E_DESTROYED;
}

API CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	ENTER(CONTEXT, 0);
	*value = (int)limit == 2 ? 8388608 : 1024;
	return OK;
}

API CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	ENTER(CONTEXT, 0);
	(void)limit;
	(void)value;
	return OK;
}

API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER(CONTEXT, 0);
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return OK;
}

API CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	ENTER(CONTEXT, 0);
	return peer && peer->magic == MAGIC_CONTEXT && !flags ? OK : E_VALUE;
}

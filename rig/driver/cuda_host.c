/* SPDX-License-Identifier: Apache-2.0 */
/* Page-locked host memory, pools and pointer queries. Host memory is the process's own: no device charge. */
#include "cuda_local.h"

#include <stdlib.h>
#include <string.h>

#define POOL ((CUmemoryPool)0x706f6f6cull)	/* one for all: see cuMemAllocAsync */

static CUresult host(CUcontext context, void **out, size_t size)
{
	struct allocation *made;
	void *bytes;

	if (!out || !size)
		return E_VALUE;
	if (posix_memalign(&bytes, 4096, size))
		return E_MEMORY;
	pthread_mutex_lock(&cuda_lock);
	made = allocation_add((struct allocation){ .at = (CUdeviceptr)(uintptr_t)bytes, .size = size,
						   .kind = HOST_MEMORY, .context = context });
	pthread_mutex_unlock(&cuda_lock);
	*out = bytes;
	return made ? OK : E_MEMORY;
}

static CUresult drop(void *at, enum kind kind)
{
	struct allocation *found;
	CUresult code = E_VALUE;

	pthread_mutex_lock(&cuda_lock);
	found = allocation_at((CUdeviceptr)(uintptr_t)at);
	if (found && found->kind == kind) {
		allocation_remove(found);
		if (kind == HOST_MEMORY)
			free(at);
		code = OK;
	}
	pthread_mutex_unlock(&cuda_lock);
	return code;
}

API CUresult cuMemAllocHost_v2(void **out, size_t size)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	return host(context, out, size);
}

API CUresult cuMemHostAlloc(void **out, size_t size, unsigned flags)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	(void)flags;
	return host(context, out, size);
}

API CUresult cuMemFreeHost(void *at)
{
	ENTER(CONTEXT, 0);
	return drop(at, HOST_MEMORY);
}

API CUresult cuMemHostRegister_v2(void *at, size_t size, unsigned flags)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	if (!at || !size || flags > 15)
		return E_VALUE;
	pthread_mutex_lock(&cuda_lock);
	allocation_add((struct allocation){ .at = (CUdeviceptr)(uintptr_t)at, .size = size,
					    .kind = REGISTERED, .context = context });
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

API CUresult cuMemHostUnregister(void *at)
{
	ENTER(CONTEXT, 0);
	return drop(at, REGISTERED);
}

API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *at, unsigned flags)
{
	ENTER(CONTEXT, 0);
	if (!out || flags)
		return E_VALUE;
	*out = (CUdeviceptr)(uintptr_t)at;
	return OK;
}

API CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr at)
{
	struct allocation *found;
	CUresult code = E_VALUE;

	ENTER(INITIALISED, 0);
	pthread_mutex_lock(&cuda_lock);
	found = allocation_at(at);
	if (found && data) {
		code = OK;
		if ((int)which == 1)
			*(CUcontext *)data = found->context;
		else if ((int)which == 2)
			*(unsigned *)data = found->kind == HOST_MEMORY || found->kind == REGISTERED ? 1 : 2;
		else if ((int)which == 3)
			*(CUdeviceptr *)data = at;
		else if ((int)which == 9)
			*(int *)data = found->device;
		else
			code = E_UNSUPPORTED;
	}
	pthread_mutex_unlock(&cuda_lock);
	return code;
}

API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	ENTER(INITIALISED, 0);
	if (device_of(device) < 0)
		return E_DEVICE;
	*pool = POOL;
	return OK;
}

API CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	ENTER(INITIALISED, 0);
	if (device_of(device) < 0)
		return E_DEVICE;
	*pool = POOL;
	return OK;
}

API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	ENTER(INITIALISED, 0);
	return device_of(device) >= 0 && pool ? OK : E_VALUE;
}

API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	ENTER(INITIALISED, 0);
	if (!pool || !properties)
		return E_VALUE;
	*pool = POOL;
	return OK;
}

API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	ENTER(INITIALISED, 0);
	return pool ? OK : E_VALUE;
}

API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
	ENTER(INITIALISED, 0);
	(void)bytes;
	return pool ? OK : E_VALUE;
}

API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
	ENTER(INITIALISED, 0);
	(void)which;
	return pool && value ? OK : E_VALUE;
}

API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
	ENTER(INITIALISED, 0);
	if (!pool || !value)
		return E_VALUE;
	if ((int)which <= 3)
		*(int *)value = 1; /* the reuse switches; figures beyond are 64 bits wide */
	else
		*(cuuint64_t *)value = 0;
	return OK;
}

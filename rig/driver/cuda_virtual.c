/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: a physical allocation is what is charged; addresses cost nothing. */
#include "cuda_local.h"

#include <string.h>

#define UNIT 2097152ull

API CUresult cuMemGetAllocationGranularity(size_t *size, const CUmemAllocationProp *properties,
					   CUmemAllocationGranularity_flags option)
{
	ENTER(INITIALISED, 0);
	(void)option;
	if (!size || !properties)
		return E_VALUE;
	*size = UNIT;
	return OK;
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
			 const CUmemAllocationProp *properties, unsigned long long flags)
{
	struct allocation *made;
	int device;

	ENTER(INITIALISED, 0);
	if (sticky_error())
		return (CUresult)sticky_error();
	if (!handle || !properties || flags || !size || size % UNIT)
		return E_VALUE;
	device = device_of(properties->location.id);
	if (device < 0)
		return E_DEVICE;
	if (charge(device, size))
		return E_MEMORY;
	pthread_mutex_lock(&cuda_lock);
	made = allocation_add((struct allocation){ .size = 1, .charged = size, .kind = PHYSICAL,
						   .device = device });
	if (made)
		*handle = made->at;
	pthread_mutex_unlock(&cuda_lock);
	return made ? OK : E_MEMORY;
}

/* A mapping keeps the memory alive in the real driver; here release gives it back at once. */
API CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct allocation *found;

	ENTER(INITIALISED, 0);
	pthread_mutex_lock(&cuda_lock);
	found = allocation_at(handle);
	if (found && found->kind == PHYSICAL) {
		discharge(found->device, found->charged);
		allocation_remove(found);
	} else {
		found = 0;
	}
	pthread_mutex_unlock(&cuda_lock);
	return found ? OK : E_VALUE;
}

API CUresult cuMemAddressReserve(CUdeviceptr *at, size_t size, size_t alignment, CUdeviceptr wish,
				 unsigned long long flags)
{
	struct allocation *made;

	ENTER(INITIALISED, 0);
	(void)alignment;
	(void)wish;
	if (!at || flags || !size || size % UNIT)
		return E_VALUE;
	pthread_mutex_lock(&cuda_lock);
	made = allocation_add((struct allocation){ .size = size, .kind = RESERVED });
	if (made)
		*at = made->at;
	pthread_mutex_unlock(&cuda_lock);
	return made ? OK : E_MEMORY;
}

API CUresult cuMemAddressFree(CUdeviceptr at, size_t size)
{
	struct allocation *found;

	ENTER(INITIALISED, 0);
	pthread_mutex_lock(&cuda_lock);
	found = allocation_at(at);
	if (found && found->kind == RESERVED && found->size == size)
		allocation_remove(found);
	else
		found = 0;
	pthread_mutex_unlock(&cuda_lock);
	return found ? OK : E_VALUE;
}

static CUresult reserved(CUdeviceptr at, size_t size)
{
	struct allocation *found;
	CUresult code = E_VALUE;

	pthread_mutex_lock(&cuda_lock);
	found = allocation_at(at);
	if (found && found->kind == RESERVED && size <= found->size - (at - found->at))
		code = OK;
	pthread_mutex_unlock(&cuda_lock);
	return code;
}

API CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		      unsigned long long flags)
{
	ENTER(INITIALISED, 0);
	return offset || flags || !handle ? E_VALUE : reserved(at, size);
}

API CUresult cuMemUnmap(CUdeviceptr at, size_t size)
{
	ENTER(INITIALISED, 0);
	return reserved(at, size);
}

API CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const CUmemAccessDesc *access, size_t count)
{
	ENTER(INITIALISED, 0);
	return access && count ? reserved(at, size) : E_VALUE;
}

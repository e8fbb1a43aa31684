/* SPDX-License-Identifier: Apache-2.0 */
/* The primary context of each device, which runtimes share: retained, released, reset. */
#include "cuda_local.h"

static struct CUctx_st primaries[DEVICES];

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	int index = device_of(device), code = OK;
	CUcontext primary;

	ENTER(INITIALISED, 0);
	if (sticky_error())
		return (CUresult)sticky_error();
	if (index < 0 || !context)
		return index < 0 ? E_DEVICE : E_VALUE;
	primary = &primaries[index];
	pthread_mutex_lock(&cuda_lock);
	if (!primary->alive)
		code = open_context(primary, index);
	if (!code) {
		primary->primary = 1;
		primary->references++;
		*context = primary;
	}
	pthread_mutex_unlock(&cuda_lock);
	return (CUresult)code;
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	int index = device_of(device);

	ENTER(INITIALISED, 0);
	if (index < 0)
		return E_DEVICE;
	if (!primaries[index].references)
		return E_CONTEXT;
	pthread_mutex_lock(&cuda_lock);
	if (!--primaries[index].references && primaries[index].alive)
		close_context(&primaries[index]);
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	int index = device_of(device);

	ENTER(INITIALISED, 0);
	if (index < 0)
		return E_DEVICE;
	pthread_mutex_lock(&cuda_lock);
	if (primaries[index].alive)
		close_context(&primaries[index]);
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	int index = device_of(device);

	ENTER(INITIALISED, 0);
	if (index < 0 || !flags || !active)
		return index < 0 ? E_DEVICE : E_VALUE;
	*flags = primaries[index].flags;
	*active = primaries[index].alive;
	return OK;
}

API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	int index = device_of(device);

	ENTER(INITIALISED, 0);
	if (index < 0)
		return E_DEVICE;
	primaries[index].flags = flags;
	return OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* GPU instances and compute instances, the other view of the same layout. */
#include "nvml_local.h"

#include <string.h>

struct nvmlGpuInstance_st { int device, id; };
struct nvmlComputeInstance_st { int device, gpu, id; };

static struct nvmlGpuInstance_st gpu_instances[DEVICES][SLOTS * 2];
static struct nvmlComputeInstance_st compute_instances[DEVICES][SLOTS * 2][SLOTS];

static nvmlGpuInstance_t gpu_instance(int device, int id)
{
	struct nvmlGpuInstance_st *handle = &gpu_instances[device][id & (SLOTS * 2 - 1)];

	*handle = (struct nvmlGpuInstance_st){ device, id };
	return handle;
}

static int find(int device, int gpu, int compute, struct instance *instance)
{
	int slot;

	for (slot = 0; slot < SLOTS && mig_instance(device, slot, instance); slot++)
		if (instance->gpu == gpu && (compute < 0 || instance->compute == compute))
			return 1;
	return 0;
}

API nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned profile, nvmlGpuInstance_t *out,
					   unsigned *count)
{
	struct instance instance;
	struct target at;
	int slot;

	ENTER(device, &at);
	if (!out || !count)
		return N_ARGUMENT;
	if (!mig_enabled(at.device))
		return N_UNSUPPORTED;
	for (*count = 0, slot = 0; slot < SLOTS && mig_instance(at.device, slot, &instance); slot++)
		if (instance.profile == profile && instance.compute == 0)
			out[(*count)++] = gpu_instance(at.device, instance.gpu);
	return 0;
}

API nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id, nvmlGpuInstance_t *out)
{
	struct instance instance;
	struct target at;

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	if (!find(at.device, (int)id, -1, &instance))
		return mig_enabled(at.device) ? N_NOTFOUND : N_UNSUPPORTED;
	*out = gpu_instance(at.device, (int)id);
	return 0;
}

API nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *out)
{
	struct instance instance;

	ENTER_SYSTEM();
	if (!handle || !out)
		return N_ARGUMENT;
	if (!find(handle->device, handle->id, -1, &instance))
		return N_NOTFOUND;
	memset(out, 0, sizeof(*out));
	out->device = device_handle(handle->device);
	out->id = (unsigned)instance.gpu;
	out->profileId = instance.profile;
	out->placement.size = instance.slices;
	return 0;
}

API nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned profile,
						    nvmlComputeInstance_t *out, unsigned *count)
{
	struct instance instance;
	int slot;

	ENTER_SYSTEM();
	(void)profile;
	if (!handle || !out || !count)
		return N_ARGUMENT;
	for (*count = 0, slot = 0; slot < SLOTS && mig_instance(handle->device, slot, &instance); slot++) {
		struct nvmlComputeInstance_st *made;

		if (instance.gpu != handle->id)
			continue;
		made = &compute_instances[handle->device][instance.gpu & (SLOTS * 2 - 1)]
					 [instance.compute & (SLOTS - 1)];
		*made = (struct nvmlComputeInstance_st){ handle->device, instance.gpu, instance.compute };
		out[(*count)++] = made;
	}
	return 0;
}

API nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *out)
{
	struct instance instance;

	ENTER_SYSTEM();
	if (!handle || !out)
		return N_ARGUMENT;
	if (!find(handle->device, handle->gpu, handle->id, &instance))
		return N_NOTFOUND;
	memset(out, 0, sizeof(*out));
	out->device = device_handle(handle->device);
	out->gpuInstance = gpu_instance(handle->device, handle->gpu);
	out->id = (unsigned)handle->id;
	return 0;
}

/* One profile for each kind of instance in the file. */
API nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned profile,
						     nvmlGpuInstanceProfileInfo_t *out)
{
	struct instance instance;
	struct target at;
	int slot;

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	for (slot = 0; slot < SLOTS && mig_instance(at.device, slot, &instance); slot++) {
		if (instance.profile != profile)
			continue;
		memset(out, 0, sizeof(*out));
		out->id = profile;
		out->sliceCount = instance.slices;
		out->instanceCount = 7 / (instance.slices ? instance.slices : 1);
		out->multiprocessorCount = instance.multiprocessors;
		out->memorySizeMB = instance.memory >> 20;
		return 0;
	}
	return N_UNSUPPORTED;
}

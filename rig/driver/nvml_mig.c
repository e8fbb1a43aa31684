/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MIG: the layout is what the file says now, so a new file is a reconfiguration. A handle of an
 * instance that is gone answers `mig.stale`, NOT_FOUND unless set.
 */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static struct nvmlDevice_st handles[DEVICES][SLOTS][8]; /* the last index: so many layouts are told apart */

int mig_enabled(int device)
{
	return setting_whole(device, "mig", 0) != 0;
}

static uint64_t part(const char *text, const char *name, uint64_t fallback)
{
	const char *at = strstr(text, name);
	char word[48];

	if (!at || sscanf(at + strlen(name), "%47s", word) != 1)
		return fallback;
	return number_parse(word).whole;
}

int mig_instance(int device, int slot, struct instance *instance)
{
	char text[192], *uuid;
	int nth;

	if (!mig_enabled(device) || !setting_nth(device, "mig.instance", slot, text, sizeof(text)))
		return 0;
	memset(instance, 0, sizeof(*instance));
	instance->gpu = atoi(text);
	instance->compute = (int)part(text, "ci ", 0);
	instance->profile = (unsigned)part(text, "profile ", 0);
	instance->slices = (unsigned)part(text, "slices ", 1);
	instance->multiprocessors = (unsigned)part(text, "sm ", 16);
	instance->memory = part(text, "memory ", 10737418240ull);
	nth = (int)(instance->memory >> 30);
	snprintf(instance->name, sizeof(instance->name), "%ug.%dgb", instance->slices, nth);
	snprintf(instance->uuid, sizeof(instance->uuid), "MIG-%08x-0000-5000-8000-%012x", device,
		 instance->gpu);
	if ((uuid = strstr(text, "uuid ")))
		sscanf(uuid + 5, "%63s", instance->uuid);
	return 1;
}

nvmlDevice_t mig_handle(int device, int slot)
{
	struct instance instance;
	struct nvmlDevice_st *handle;

	if (slot < 0 || slot >= SLOTS || !mig_instance(device, slot, &instance))
		return 0;
	handle = &handles[device][slot][(instance.gpu + instance.compute) & 7];
	*handle = (struct nvmlDevice_st){ device, slot, instance.gpu, instance.compute };
	return handle;
}

int mig_by_uuid(const char *uuid, nvmlDevice_t *out)
{
	struct instance instance;
	int device, slot;

	for (device = 0; device < device_total(); device++)
		for (slot = 0; slot < SLOTS && mig_instance(device, slot, &instance); slot++)
			if (!strcasecmp(instance.uuid, uuid)) {
				*out = mig_handle(device, slot);
				return 1;
			}
	return 0;
}

API nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
	struct number mode;
	struct target at;

	ENTER(device, &at);
	if (!current || !pending)
		return N_ARGUMENT;
	mode = setting(at.device, "mig", 0);
	if (mode.code)
		return (nvmlReturn_t)mode.code;
	*current = mode.whole != 0;
	*pending = (unsigned)setting_whole(at.device, "mig.pending", *current);
	return 0;
}

API nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
	struct target at;

	ENTER(device, &at);
	if (!count)
		return N_ARGUMENT;
	*count = setting(at.device, "mig", 0).code ? 0 : 7;
	return 0;
}

API nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t *out)
{
	struct target at;

	ENTER(device, &at);
	if (!out || index >= SLOTS || at.instance >= 0)
		return N_ARGUMENT;
	*out = mig_handle(at.device, (int)index);
	return *out ? 0 : N_NOTFOUND;
}

API nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is)
{
	struct target at;

	ENTER(device, &at);
	if (!is)
		return N_ARGUMENT;
	*is = at.instance >= 0;
	return 0;
}

API nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *out)
{
	struct target at;

	ENTER(mig, &at);
	if (!out || at.instance < 0)
		return N_ARGUMENT;
	*out = device_handle(at.device);
	return 0;
}

#define ID(name, field) \
API nvmlReturn_t name(nvmlDevice_t device, unsigned *id) \
{ \
	struct target at; \
\
	ENTER(device, &at); \
	if (!id || at.instance < 0) \
		return id ? N_UNSUPPORTED : N_ARGUMENT; \
	*id = (unsigned)at.field; \
	return 0; \
}
ID(nvmlDeviceGetGpuInstanceId, instance)
ID(nvmlDeviceGetComputeInstanceId, compute)

API nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
	struct instance instance;
	struct target at;

	ENTER(device, &at);
	if (!out || at.instance < 0 || !mig_instance(at.device, device->slot, &instance))
		return out ? N_UNSUPPORTED : N_ARGUMENT;
	memset(out, 0, sizeof(*out));
	out->multiprocessorCount = instance.multiprocessors;
	out->gpuInstanceSliceCount = out->computeInstanceSliceCount = instance.slices;
	out->memorySizeMB = instance.memory >> 20;
	return 0;
}

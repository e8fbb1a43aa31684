/* SPDX-License-Identifier: Apache-2.0 */
/* What a device is: name, UUID, bus address, architecture. */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct nvmlDevice_st devices[DEVICES];

nvmlDevice_t device_handle(int device)
{
	devices[device] = (struct nvmlDevice_st){ device, -1, -1, -1 };
	return &devices[device];
}

void device_uuid(int device, char *out, size_t size)
{
	if (!setting_text(device, "uuid", out, size))
		snprintf(out, size, "GPU-%08x-0000-4000-8000-00000000%04x", device, device);
}

void device_name(int device, char *out, size_t size)
{
	if (!setting_text(device, "name", out, size))
		snprintf(out, size, "Stand-in GPU");
}

void device_pci(int device, unsigned parts[3])
{
	char text[32];

	parts[0] = 0;
	parts[1] = (unsigned)device + 1;
	parts[2] = 0;
	if (setting_text(device, "pci", text, sizeof(text)))
		sscanf(text, "%x:%x:%x", &parts[0], &parts[1], &parts[2]);
}

static nvmlReturn_t put(const char *text, char *out, unsigned size)
{
	if (!out)
		return N_ARGUMENT;
	if (strlen(text) >= size)
		return N_SIZE;
	strcpy(out, text);
	return 0;
}

API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *out, unsigned size)
{
	struct instance instance;
	struct target at;
	char text[160];

	ENTER(device, &at);
	device_name(at.device, text, sizeof(text));
	if (at.instance >= 0 && mig_instance(at.device, device->slot, &instance))
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " MIG %s", instance.name);
	return put(text, out, size);
}

API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *out, unsigned size)
{
	struct instance instance;
	struct target at;
	char text[96];

	ENTER(device, &at);
	device_uuid(at.device, text, sizeof(text));
	if (at.instance >= 0 && mig_instance(at.device, device->slot, &instance))
		snprintf(text, sizeof(text), "%s", instance.uuid);
	return put(text, out, size);
}

static nvmlReturn_t written(nvmlDevice_t device, const char *name, const char *key, const char *fallback,
			    char *out, unsigned size)
{
	struct target at;
	char text[96];
	nvmlReturn_t code = (nvmlReturn_t)nvml_enter(name, device, &at);

	if (code)
		return code;
	if (!setting_text(at.device, key, text, sizeof(text))) {
		if (!fallback)
			return N_UNSUPPORTED;
		snprintf(text, sizeof(text), "%s", fallback);
	}
	return strcmp(text, "unsupported") ? put(text, out, size) : N_UNSUPPORTED;
}

API nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *out, unsigned size)
{
	return written(device, __func__, "serial", 0, out, size);
}

API nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *out, unsigned size)
{
	return written(device, __func__, "vbios", "96.00.00.00.01", out, size);
}

API nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *out)
{
	return written(device, __func__, "gsp.version", 0, out, 64);
}

API nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char *out, unsigned size)
{
	return written(device, __func__, "inforom", 0, out, size);
}

API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *out)
{
	struct target at;

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	*out = (unsigned)(at.instance < 0 ? at.device : device->slot);
	return 0;
}

API nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *out)
{
	struct target at;

	ENTER(device, &at);
	return (nvmlReturn_t)reply_uint(setting(at.device, "minor", at.device), out);
}

static nvmlReturn_t pci(struct target at, nvmlPciInfo_t *out)
{
	unsigned parts[3];

	if (!out)
		return N_ARGUMENT;
	device_pci(at.device, parts);
	memset(out, 0, sizeof(*out));
	out->domain = parts[0];
	out->bus = parts[1];
	out->device = parts[2];
	out->pciDeviceId = (unsigned)setting_whole(at.device, "pci.device_id", 0x233010de);
	snprintf(out->busIdLegacy, sizeof(out->busIdLegacy), "%04X:%02X:%02X.0", parts[0] & 0xffff,
		 parts[1] & 0xff, parts[2] & 0xff);
	snprintf(out->busId, sizeof(out->busId), "%08X:%02X:%02X.0", parts[0], parts[1], parts[2]);
	return 0;
}

#define PCI(name) \
API nvmlReturn_t name(nvmlDevice_t device, nvmlPciInfo_t *out) \
{ \
	struct target at; \
\
	ENTER(device, &at); \
	return pci(at, out); \
}
PCI(nvmlDeviceGetPciInfo)
PCI(nvmlDeviceGetPciInfo_v2)
PCI(nvmlDeviceGetPciInfo_v3)

static void capability(int device, int *major, int *minor)
{
	char text[16] = "9.0";

	setting_text(device, "compute_capability", text, sizeof(text));
	*major = atoi(text);
	*minor = strchr(text, '.') ? atoi(strchr(text, '.') + 1) : 0;
}

API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	struct target at;

	ENTER(device, &at);
	if (!major || !minor)
		return N_ARGUMENT;
	capability(at.device, major, minor);
	return 0;
}

/* NVML's numbers of generations: 5 Volta, 6 Turing, 7 Ampere, 8 Ada, 9 Hopper, 10 Blackwell. */
API nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *out)
{
	int major, minor;
	struct target at;

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	capability(at.device, &major, &minor);
	*out = major == 7 ? (minor < 5 ? 5 : 6) : major == 8 ? (minor == 9 ? 8 : 7) : major == 9 ? 9 : 10;
	return 0;
}

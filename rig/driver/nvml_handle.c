/* SPDX-License-Identifier: Apache-2.0 */
/* Handles by index, UUID, serial number and bus address. */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static nvmlReturn_t give(const char *name, int device, nvmlDevice_t *out)
{
	nvmlReturn_t code;

	if (device < 0 || !out)
		return out ? N_NOTFOUND : N_ARGUMENT;
	code = (nvmlReturn_t)nvml_enter(name, device_handle(device), 0);
	if (code == 0)
		*out = device_handle(device);
	return code;
}

static nvmlReturn_t by_index(const char *name, unsigned index, nvmlDevice_t *out)
{
	nvmlReturn_t code;

	settings_look();
	code = (nvmlReturn_t)(index < (unsigned)device_total() ? 0 : nvml_enter_system(name, 1));
	if (code)
		return code;
	return index < (unsigned)device_total() ? give(name, (int)index, out) : N_ARGUMENT;
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out)
{
	return by_index(__func__, index, out);
}

API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *out)
{
	return by_index(__func__, index, out);
}

API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out)
{
	char text[96];
	int device;

	ENTER_SYSTEM();
	if (!uuid || !out)
		return N_ARGUMENT;
	for (device = 0; device < device_total(); device++) {
		device_uuid(device, text, sizeof(text));
		if (!strcasecmp(text, uuid))
			return give(__func__, device, out);
	}
	return mig_by_uuid(uuid, out) ? 0 : N_NOTFOUND;
}

API nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *out)
{
	char text[48];
	int device;

	ENTER_SYSTEM();
	if (!serial || !out)
		return N_ARGUMENT;
	for (device = 0; device < device_total(); device++)
		if (setting_text(device, "serial", text, sizeof(text)) && !strcmp(text, serial))
			return give(__func__, device, out);
	return N_NOTFOUND;
}

static nvmlReturn_t by_pci(const char *name, const char *address, nvmlDevice_t *out)
{
	unsigned want[3] = { 0, 0, 0 }, has[3];
	int device;

	if (!address || !out)
		return N_ARGUMENT;
	if (sscanf(address, "%x:%x:%x", &want[0], &want[1], &want[2]) != 3) {
		want[0] = 0;
		if (sscanf(address, "%x:%x", &want[1], &want[2]) != 2)
			return N_ARGUMENT;
	}
	for (device = 0; device < device_total(); device++) {
		device_pci(device, has);
		if (has[0] == want[0] && has[1] == want[1] && has[2] == want[2])
			return give(name, device, out);
	}
	return N_NOTFOUND;
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *out)
{
	ENTER_SYSTEM();
	return by_pci(__func__, address, out);
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *address, nvmlDevice_t *out)
{
	ENTER_SYSTEM();
	return by_pci(__func__, address, out);
}

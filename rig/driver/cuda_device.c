/* SPDX-License-Identifier: Apache-2.0 */
/* Devices as CUDA numbers them: names, identity and the attributes that occupancy is computed from. */
#include "cuda_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct capability { int cc, threads, blocks, shared, opt_in; };

/* Per multiprocessor, as the CUDA programming guide's table of compute capabilities has them. */
static const struct capability CAPABILITIES[] = {
	{ 70, 2048, 32, 98304, 98304 },    { 75, 1024, 16, 65536, 65536 },
	{ 80, 2048, 32, 167936, 166912 },  { 86, 1536, 16, 102400, 101376 },
	{ 87, 1536, 16, 167936, 166912 },  { 89, 1536, 24, 102400, 101376 },
	{ 90, 2048, 32, 233472, 232448 },  { 100, 2048, 32, 233472, 232448 },
	{ 103, 2048, 32, 233472, 232448 }, { 110, 1536, 24, 233472, 232448 },
	{ 120, 1536, 24, 102400, 101376 }, { 121, 1536, 24, 102400, 101376 },
};

static int capability(int device)
{
	char text[16] = "9.0";
	const char *dot;

	setting_text(device, "compute_capability", text, sizeof(text));
	dot = strchr(text, '.');
	return atoi(text) * 10 + (dot ? atoi(dot + 1) : 0);
}

static const struct capability *figures(int device)
{
	int cc = capability(device);
	size_t i;

	for (i = sizeof(CAPABILITIES) / sizeof(*CAPABILITIES); i-- > 0;)
		if (CAPABILITIES[i].cc <= cc)
			return &CAPABILITIES[i];
	return CAPABILITIES;
}

static unsigned pci(int device, int part) /* domain, bus, device */
{
	unsigned parts[3] = { 0, (unsigned)device + 1, 0 };
	char text[32];

	if (setting_text(device, "pci", text, sizeof(text)))
		sscanf(text, "%x:%x:%x", &parts[0], &parts[1], &parts[2]);
	return parts[part];
}

int device_attribute(int device, int which)
{
	const struct capability *has = figures(device);

	switch (which) {
	case 1: case 2: case 3: return 1024;
	case 4: return 64;
	case 5: case 11: return 2147483647;
	case 6: case 7: case 9: return which == 9 ? 65536 : 65535;
	case 8: return 49152;
	case 10: return 32;
	case 12: case 82: return 65536;
	case 13: return (int)setting_whole(device, "clock.sm.max", 1980) * 1000;
	case 14: return 512;
	case 16: return (int)setting_whole(device, "multiprocessors", 132);
	case 20: return (int)setting_whole(device, "compute_mode", 0);
	case 32: return (int)setting_whole(device, "ecc.mode", 1);
	case 33: return (int)pci(device, 1);
	case 34: return (int)pci(device, 2);
	case 50: return (int)pci(device, 0);
	case 36: return (int)setting_whole(device, "clock.memory.max", 2619) * 1000;
	case 37: return (int)setting_whole(device, "memory.bus_width", 5120);
	case 38: return (int)setting_whole(device, "l2_bytes", 52428800);
	case 39: return has->threads;
	case 40: return 3;
	case 75: return capability(device) / 10;
	case 76: return capability(device) % 10;
	case 18: return (int)setting_whole(device, "unified", 0);
	case 19: case 31: case 41: case 78: case 79: case 80: case 83: case 89: case 90: case 95: case 102:
	case 103: case 115: return 1;
	case 81: return has->shared;
	case 87: return capability(device) % 10 || capability(device) >= 110 ? 64 : 2;
	case 97: return has->opt_in;
	case 106: return has->blocks;
	case 111: return capability(device) >= 80 ? 1024 : 0;
	default: return 0;
	}
}

API CUresult cuDriverGetVersion(int *version)
{
	ENTER(NOTHING, 0);
	if (!version)
		return E_VALUE;
	*version = (int)setting_whole(ANY_DEVICE, "cuda.version", 13000);
	return OK;
}

API CUresult cuDeviceGetCount(int *count)
{
	ENTER(INITIALISED, 0);
	if (!count)
		return E_VALUE;
	*count = device_count();
	return OK;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	ENTER(INITIALISED, 0);
	if (device_of(ordinal) < 0)
		return E_DEVICE;
	*device = ordinal;
	return OK;
}

API CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	char text[96] = "Stand-in GPU";
	int index = device_of(device);

	ENTER(INITIALISED, 0);
	if (index < 0 || !name || length < 1)
		return index < 0 ? E_DEVICE : E_VALUE;
	setting_text(index, "name", text, sizeof(text));
	snprintf(name, (size_t)length, "%s", text);
	return OK;
}

static void uuid_of(int device, CUuuid *uuid)
{
	char text[96], digits[40] = "";
	unsigned byte;
	int i, at = 0;

	snprintf(text, sizeof(text), "GPU-%08x-0000-4000-8000-00000000%04x", device, device);
	setting_text(device, "uuid", text, sizeof(text));
	for (i = strncmp(text, "GPU-", 4) ? 0 : 4; text[i] && at < 32; i++)
		if (text[i] != '-')
			digits[at++] = text[i];
	for (i = 0; i < 16; i++)
		uuid->bytes[i] = (char)(sscanf(digits + 2 * i, "%2x", &byte) == 1 ? byte : 0);
}

#define UUID(name) \
API CUresult name(CUuuid *uuid, CUdevice device) \
{ \
	int index = device_of(device); \
\
	ENTER(INITIALISED, 0); \
	if (index < 0 || !uuid) \
		return index < 0 ? E_DEVICE : E_VALUE; \
	uuid_of(index, uuid); \
	return OK; \
}
UUID(cuDeviceGetUuid)
UUID(cuDeviceGetUuid_v2)

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	int index = device_of(device);

	ENTER(INITIALISED, 0);
	if (index < 0 || !bytes)
		return index < 0 ? E_DEVICE : E_VALUE;
	*bytes = capacity(index);
	return OK;
}

API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
	int index = device_of(device);
	char key[48];

	ENTER(INITIALISED, 0);
	if (index < 0 || !value || (int)which < 1)
		return index < 0 ? E_DEVICE : E_VALUE;
	snprintf(key, sizeof(key), "attribute.%d", (int)which);
	*value = (int)setting_whole(index, key, (uint64_t)(int64_t)device_attribute(index, (int)which));
	return OK;
}

API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	int index = device_of(device);

	ENTER(INITIALISED, 0);
	if (index < 0)
		return E_DEVICE;
	*major = capability(index) / 10;
	*minor = capability(index) % 10;
	return OK;
}

API CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device)
{
	int index = device_of(device);

	ENTER(INITIALISED, 0);
	if (index < 0 || length < 13)
		return index < 0 ? E_DEVICE : E_VALUE;
	snprintf(text, (size_t)length, "%04X:%02X:%02X.0", pci(index, 0), pci(index, 1), pci(index, 2));
	return OK;
}

API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text)
{
	unsigned domain = 0, bus = 0, slot = 0;
	int i;

	ENTER(INITIALISED, 0);
	if (!text || sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3)
		return E_VALUE;
	for (i = 0; i < device_count(); i++)
		if (pci(device_of(i), 0) == domain && pci(device_of(i), 1) == bus) {
			*device = i;
			return OK;
		}
	return E_DEVICE;
}

API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	ENTER(INITIALISED, 0);
	if (device_of(device) < 0 || device_of(peer) < 0)
		return E_DEVICE;
	*can = device != peer;
	return OK;
}

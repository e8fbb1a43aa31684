/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory as the two calls give it: v1 counts what the driver keeps for itself as used, v2 shows it
 * apart. `memory.v1.FIELD` and `memory.v2.FIELD` replace one figure of one call.
 */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct memory { uint64_t total, reserved, used, free; };

/* Bytes of the `process` lines, which no process of ours holds. */
static uint64_t written_bytes(int device, int instance)
{
	char text[192], *at;
	uint64_t sum = 0;
	int nth;

	for (nth = 0; setting_nth(device, "process", nth, text, sizeof(text)); nth++)
		if ((at = strstr(text, "memory ")) && strncmp(at + 7, "unavailable", 11) &&
		    (instance < 0 || (strstr(text, "gi ") && atoi(strstr(text, "gi ") + 3) == instance)))
			sum += number_parse(at + 7).whole;
	return sum;
}

static struct memory look(struct target at, int slot)
{
	struct state *state = state_get();
	struct memory memory = { 0 };
	struct instance instance;

	memory.total = setting_whole(at.device, "memory.total", 85899345920ull);
	memory.reserved = setting_whole(at.device, "memory.reserved", 0);
	if (at.instance >= 0 && mig_instance(at.device, slot, &instance)) {
		memory.total = instance.memory;
		memory.reserved = 0;
	} else {
		memory.used = setting_whole(at.device, "memory.used_base", 0);
	}
	state_sweep(state, 0);
	memory.used += device_bytes(state, at.device, at.instance);
	memory.used += written_bytes(at.device, at.instance);
	/* The sum is of moments a little apart: what one frees another may already hold. */
	if (memory.used > memory.total - memory.reserved && memory.total >= memory.reserved)
		memory.used = memory.total - memory.reserved;
	memory.free = memory.total > memory.reserved + memory.used ?
			      memory.total - memory.reserved - memory.used : 0;
	return memory;
}

static int replace(int device, int version, const char *field, uint64_t value, unsigned long long *out)
{
	struct number number;
	char key[32], text[64];

	snprintf(key, sizeof(key), "memory.v%d.%s", version, field);
	*out = value;
	if (!setting_text(device, key, text, sizeof(text)))
		return 0;
	number = number_parse(text);
	if (!number.code)
		*out = number.whole;
	return number.code;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out)
{
	struct memory memory;
	struct target at;
	int code;

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	memory = look(at, device->slot);
	code = replace(at.device, 1, "total", memory.total, &out->total);
	code = code ? code : replace(at.device, 1, "free", memory.free, &out->free);
	code = code ? code : replace(at.device, 1, "used", memory.used + memory.reserved, &out->used);
	if (code)
		memset(out, 0, sizeof(*out));
	return (nvmlReturn_t)code;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *out)
{
	struct memory memory;
	struct target at;
	int code;

	ENTER(device, &at);
	if (!out)
		return N_ARGUMENT;
	if (out->version != (2u << 24 | sizeof(*out)))
		return N_VERSION;
	memory = look(at, device->slot);
	code = replace(at.device, 2, "total", memory.total, &out->total);
	code = code ? code : replace(at.device, 2, "reserved", memory.reserved, &out->reserved);
	code = code ? code : replace(at.device, 2, "free", memory.free, &out->free);
	return (nvmlReturn_t)(code ? code : replace(at.device, 2, "used", memory.used, &out->used));
}

API nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *out)
{
	struct number used;
	struct target at;

	ENTER(device, &at);
	used = setting(at.device, "bar1.used", 1048576);
	if (!out || used.code)
		return (nvmlReturn_t)(out ? used.code : N_ARGUMENT);
	out->bar1Total = setting_whole(at.device, "bar1.total", 137438953472ull);
	out->bar1Used = used.whole;
	out->bar1Free = out->bar1Total - out->bar1Used;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What a device can hold, and who may still have some: the sums are in the shared state. */
#include "cuda_local.h"

#include <stdlib.h>
#include <string.h>

/* `mig.instance = GI … memory BYTES …` */
static uint64_t instance_memory(int device, int instance)
{
	char text[192], *at;
	int nth;

	for (nth = 0; setting_nth(device, "mig.instance", nth, text, sizeof(text)); nth++)
		if (atoi(text) == instance && (at = strstr(text, "memory ")))
			return number_parse(at + 7).whole;
	return 0;
}

uint64_t capacity(int device)
{
	uint64_t total = setting_whole(device, "memory.total", 85899345920ull);
	int instance = instance_of(device);

	return instance >= 0 && instance_memory(device, instance) ?
		       instance_memory(device, instance) : total;
}

uint64_t usable(int device)
{
	uint64_t total = capacity(device), gone = 0;

	if (instance_of(device) < 0)
		gone = setting_whole(device, "memory.reserved", 0) +
		       setting_whole(device, "memory.used_base", 0);
	return total > gone ? total - gone : 0;
}

static int fits(struct state *state, struct share *share, int device, size_t bytes, uint64_t limit)
{
	uint64_t used;
	int fit;

	state_lock(state);
	used = device_bytes(state, device, instance_of(device));
	fit = bytes <= limit && used <= limit - bytes;
	if (fit)
		__atomic_fetch_add(&share->bytes, bytes, __ATOMIC_RELAXED);
	state_unlock(state);
	return fit;
}

int charge(int device, size_t bytes)
{
	struct share *share = share_of(device);
	struct state *state = state_get();
	uint64_t limit = usable(device);

	if (!share)
		return E_MEMORY;
	if (fits(state, share, device, bytes, limit))
		return OK;
	state_sweep(state, 1); /* somebody may have died since */
	return fits(state, share, device, bytes, limit) ? OK : E_MEMORY;
}

void discharge(int device, size_t bytes)
{
	struct share *share = share_of(device);

	if (share)
		__atomic_fetch_sub(&share->bytes, bytes, __ATOMIC_RELAXED);
}

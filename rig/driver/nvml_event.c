/* SPDX-License-Identifier: Apache-2.0 */
/* Event sets: a cursor in the shared ring, and which kinds of which device it wants. */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdlib.h>
#include <string.h>

#define KINDS 0xff9full
#define LOOK_NS 20000000ull	/* events wake the waiter; the file, and a device lost by it, do not */

struct nvmlEventSet_st {
	uint64_t next;
	unsigned long long wanted[DEVICES];
};

API nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *out)
{
	struct state *state = state_get();

	ENTER_SYSTEM();
	if (!out)
		return N_ARGUMENT;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return N_UNKNOWN;
	(*out)->next = __atomic_load_n(&state->posted, __ATOMIC_ACQUIRE);
	return 0;
}

API nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	ENTER_SYSTEM();
	free(set);
	return set ? 0 : N_ARGUMENT;
}

API nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *out)
{
	struct target at;

	ENTER(device, &at);
	return (nvmlReturn_t)reply_ull(setting(at.device, "event_types", (double)KINDS), out);
}

API nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long kinds, nvmlEventSet_t set)
{
	struct number has;
	struct target at;

	ENTER(device, &at);
	if (!set)
		return N_ARGUMENT;
	has = setting(at.device, "event_types", (double)KINDS);
	if (has.code || (kinds & ~has.whole))
		return (nvmlReturn_t)(has.code ? has.code : N_UNSUPPORTED);
	set->wanted[at.device] |= kinds;
	return 0;
}

static int take(struct state *state, nvmlEventSet_t set, struct event *event)
{
	uint64_t posted;

	while ((posted = __atomic_load_n(&state->posted, __ATOMIC_ACQUIRE)) > set->next) {
		if (posted - set->next >= EVENTS)
			set->next = posted - EVENTS + 1; /* older ones are overwritten */
		*event = state->events[set->next % EVENTS];
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&state->posted, __ATOMIC_ACQUIRE) - set->next >= EVENTS)
			continue; /* perhaps overwritten while it was read */
		set->next++;
		if (event->device < DEVICES && (set->wanted[event->device] & event->type))
			return 1;
	}
	return 0;
}

static int lost(nvmlEventSet_t set)
{
	int device;

	for (device = 0; device < DEVICES; device++)
		if (set->wanted[device] && setting_whole(device, "lost", 0) &&
		    !setting_whole(device, "lost.events", 0))
			return 1;
	return 0;
}

static nvmlReturn_t wait_for(const char *name, nvmlEventSet_t set, nvmlEventData_t *out, unsigned milliseconds,
			     int ids)
{
	uint64_t until = now_ns() + milliseconds * 1000000ull, now;
	struct state *state = state_get();
	struct event event;
	uint32_t heard;
	nvmlReturn_t code = (nvmlReturn_t)nvml_enter_system(name, 1);

	if (code || !set || !out)
		return code ? code : N_ARGUMENT;
	for (;;) {
		settings_look();
		heard = events_heard(state);
		if (take(state, set, &event))
			break;
		if (lost(set))
			return N_LOST;
		now = now_ns();
		if (now >= until)
			return N_TIMEOUT;
		events_wait(state, heard, until - now < LOOK_NS ? until - now : LOOK_NS);
	}
	memset(out, 0, sizeof(*out));
	out->device = device_handle((int)event.device);
	out->eventType = event.type;
	out->eventData = event.data;
	out->gpuInstanceId = ids ? event.gpu_instance : 0;
	out->computeInstanceId = ids ? event.compute_instance : 0;
	return 0;
}

API nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *out, unsigned milliseconds)
{
	return wait_for(__func__, set, out, milliseconds, 1);
}

API nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *out, unsigned milliseconds)
{
	return wait_for(__func__, set, out, milliseconds, 0);
}

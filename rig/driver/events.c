/* SPDX-License-Identifier: Apache-2.0 */
/* Events that wait for NVML's event sets: a ring in the shared state, numbered for ever. */
#define _GNU_SOURCE
#include "settings.h"
#include "state.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define XID 8ull	/* nvmlEventTypeXidCriticalError */

void event_post(struct state *state, struct event event)
{
	state->events[state->posted % EVENTS] = event;
	__atomic_fetch_add(&state->posted, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&state->bell, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &state->bell, FUTEX_WAKE, INT_MAX, 0, 0, 0);
}

uint32_t events_heard(const struct state *state)
{
	return __atomic_load_n(&state->bell, __ATOMIC_ACQUIRE);
}

void events_wait(struct state *state, uint32_t heard, uint64_t ns)
{
	struct timespec most = { (time_t)(ns / 1000000000ull), (long)(ns % 1000000000ull) };

	syscall(SYS_futex, &state->bell, FUTEX_WAIT, heard, &most, 0, 0);
}

static uint64_t word(const char *text, const char *name, uint64_t fallback)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), 0, 0) : fallback;
}

int event_parse(const char *text, struct event *event)
{
	event->type = word(text, "type ", XID);
	event->data = word(text, "data ", word(text, "xid ", 0));
	event->device = (uint32_t)word(text, "device ", 0);
	event->gpu_instance = (uint32_t)word(text, "gi ", 0xffffffff);
	event->compute_instance = (uint32_t)word(text, "ci ", 0xffffffff);
	return event->device < DEVICES && (strstr(text, "xid ") || strstr(text, "type "));
}

static int post_one(const char *rest, const char *value, void *arg)
{
	struct state *state = arg;
	uint64_t number = strtoull(rest, 0, 10);
	struct event event;

	if (number <= state->configured || !event_parse(value, &event))
		return 0;
	state->configured = number;
	event_post(state, event);
	return 1;
}

void events_configured(struct state *state)
{
	state_lock(state);
	setting_each("event.", post_one, state);
	state_unlock(state);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of the shared state: who they are, whether they still are, and what they held. */
#include "state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SWEEP_NS 20000000ull

enum { STAT = 512 };

static struct process *self; /* of another pid after a fork, and then looked for again */

/* What stands behind the name in /proc/PID/stat, which may hold spaces and brackets; 0 without it. */
static char *stat_of(int32_t pid, char text[STAT])
{
	char path[32], *at;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = read(fd, text, STAT - 1);
	close(fd);
	if (got <= 0)
		return 0;
	text[got] = 0;
	at = strrchr(text, ')');
	return at && at[1] == ' ' ? at : 0;
}

int stopped(int32_t pid)
{
	char text[STAT], *at = pid > 0 ? stat_of(pid, text) : 0;

	return at && (at[2] == 'T' || at[2] == 't');
}

uint64_t started(int32_t pid)
{
	char text[STAT], *at = stat_of(pid, text);
	uint64_t start = 0;
	int field;

	if (!at || at[2] == 'Z' || at[2] == 'X')
		return 0; /* a zombie holds nothing: the driver lets go when the last fd closes */
	for (field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at)
		start = strtoull(at + 1, 0, 10);
	return start ? start : 1;
}

int alive(int32_t pid, uint64_t start)
{
	return started(pid) == start;
}

void state_sweep(struct state *state, int now)
{
	uint64_t at = now_ns();
	int i, d;

	if (!now && at - state->swept_at < SWEEP_NS)
		return;
	state->swept_at = at;
	for (i = 0; i < PROCESSES; i++) {
		struct process *process = &state->processes[i];
		int32_t pid = __atomic_load_n(&process->pid, __ATOMIC_ACQUIRE);

		if (pid <= 0 || alive(pid, process->start) ||
		    !__atomic_compare_exchange_n(&process->pid, &pid, 0, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		for (d = 0; d < DEVICES; d++)
			__atomic_fetch_add(&state->cards[d].retired_ns, process->devices[d].launched_ns,
					   __ATOMIC_RELAXED);
	}
}

/* Under the lock an entry that is being taken is one whose taker died. */
static struct process *take(struct state *state, int32_t pid, uint64_t start)
{
	int i, d;

	for (i = 0; i < PROCESSES; i++) /* another of our libraries may have entered this process */
		if (state->processes[i].pid == pid && state->processes[i].start == start)
			return &state->processes[i];
	for (i = 0; i < PROCESSES; i++) {
		struct process *process = &state->processes[i];
		int32_t was = __atomic_load_n(&process->pid, __ATOMIC_ACQUIRE);

		if (was > 0 || (was && bypassed) ||
		    !__atomic_compare_exchange_n(&process->pid, &was, -1, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		memset(process->devices, 0, sizeof(process->devices));
		for (d = 0; d < DEVICES; d++)
			process->devices[d].instance = -1;
		process->start = start;
		__atomic_store_n(&process->pid, pid, __ATOMIC_RELEASE);
		return process;
	}
	return 0;
}

struct process *state_self(struct state *state)
{
	int32_t pid = getpid();
	uint64_t start;

	if (self && self->pid == pid)
		return self;
	start = started(pid);
	state_sweep(state, 1);
	state_lock(state);
	self = take(state, pid, start);
	state_unlock(state);
	return self;
}

uint64_t device_bytes(const struct state *state, int device, int instance)
{
	uint64_t bytes = 0;
	int i;

	for (i = 0; i < PROCESSES; i++) {
		const struct share *share = &state->processes[i].devices[device];

		if (state->processes[i].pid > 0 && (instance < 0 || share->instance == instance))
			bytes += __atomic_load_n(&share->bytes, __ATOMIC_RELAXED);
	}
	return bytes;
}

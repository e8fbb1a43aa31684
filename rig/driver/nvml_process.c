/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process lists: who holds memory in the shared state, and the file's `process` lines. What a driver
 * can get wrong is in the file too: host pids, memory not available, another struct than asked for.
 */
#define _GNU_SOURCE
#include "nvml_local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum list { COMPUTE, GRAPHICS, MPS };
enum { MOST = PROCESSES + 64 };

struct row { unsigned pid; uint64_t bytes; unsigned gpu, compute; };

static size_t written(int device, enum list list, int instance, struct row *rows)
{
	static const char *const NAMES[] = { "type compute", "type graphics", "type mps" };
	char text[192], *at;
	size_t count = 0;
	int nth, gpu;

	for (nth = 0; count < 64 && setting_nth(device, "process", nth, text, sizeof(text)); nth++) {
		if (strstr(text, "type ") ? !strstr(text, NAMES[list]) : list != COMPUTE)
			continue;
		gpu = (at = strstr(text, "gi ")) ? atoi(at + 3) : -1;
		if (instance >= 0 && gpu != instance)
			continue;
		rows[count].pid = (unsigned)strtoul(text, 0, 10);
		rows[count].gpu = (unsigned)gpu;
		rows[count].compute = (at = strstr(text, "ci ")) ? (unsigned)atoi(at + 3) : (unsigned)gpu;
		at = strstr(text, "memory ");
		rows[count++].bytes = !at || !strncmp(at + 7, "unavailable", 11) ? UINT64_MAX :
									  number_parse(at + 7).whole;
	}
	return count;
}

static size_t held(int device, enum list list, int instance, struct row *rows)
{
	unsigned offset = (unsigned)setting_whole(ANY_DEVICE, "pid_offset", 0);
	unsigned server = (unsigned)setting_whole(device, "mps.server", 0);
	char how[32] = "";
	struct state *state = state_get();
	size_t count = 0;
	int i, blind;

	setting_text(device, "process.memory", how, sizeof(how));
	blind = !strcmp(how, "unavailable");
	if (list == GRAPHICS || (list == MPS && !server))
		return 0;
	state_sweep(state, 0);
	for (i = 0; i < PROCESSES; i++) {
		const struct share *share = &state->processes[i].devices[device];
		uint64_t bytes = blind ? UINT64_MAX : share->bytes;

		if (state->processes[i].pid <= 0 || (!share->contexts && !share->bytes) ||
		    (instance >= 0 && share->instance != instance))
			continue;
		if (server && list == COMPUTE && count) { /* the daemon stands for its clients */
			rows[0].bytes += blind ? 0 : bytes;
			continue;
		}
		rows[count].pid = server && list == COMPUTE ? server :
							      (unsigned)state->processes[i].pid + offset;
		rows[count].bytes = bytes;
		rows[count].gpu = (unsigned)share->instance;
		rows[count++].compute = share->instance < 0 ? ALL_ONES : 0;
	}
	return count;
}

/* 16 bytes: pid, memory. 24: and the two MIG ids. 32: and memory under confidential computing. */
static void put(unsigned char *out, size_t stride, const struct row *row)
{
	uint64_t zero = 0;

	memset(out, 0, stride);
	memcpy(out, &row->pid, 4);
	memcpy(out + 8, &row->bytes, 8);
	if (stride >= 24) {
		memcpy(out + 16, &row->gpu, 4);
		memcpy(out + 20, &row->compute, 4);
	}
	if (stride >= 32)
		memcpy(out + 24, &zero, 8);
}

static nvmlReturn_t fill(const char *name, nvmlDevice_t device, enum list list, int version, unsigned *count,
			 void *out)
{
	struct row rows[MOST];
	struct target at;
	size_t stride, found, i;
	char key[32];
	nvmlReturn_t code = (nvmlReturn_t)nvml_enter(name, device, &at);

	if (code)
		return code;
	if (!count || (*count && !out))
		return N_ARGUMENT;
	snprintf(key, sizeof(key), "process.layout.v%d", version);
	stride = setting_whole(at.device, key, version == 1 ? 16 : 24);
	found = held(at.device, list, at.instance, rows);
	found += written(at.device, list, at.instance, rows + found);
	if (found > *count) {
		*count = (unsigned)found;
		return N_SIZE;
	}
	*count = (unsigned)found;
	for (i = 0; i < found; i++)
		put((unsigned char *)out + i * stride, stride, &rows[i]);
	return 0;
}

#define LISTS(what, list) \
API nvmlReturn_t nvmlDeviceGet##what##RunningProcesses(nvmlDevice_t device, unsigned *count, \
						       nvmlProcessInfo_v1_t *out) \
{ return fill(__func__, device, list, 1, count, out); } \
API nvmlReturn_t nvmlDeviceGet##what##RunningProcesses_v2(nvmlDevice_t device, unsigned *count, \
							  nvmlProcessInfo_v2_t *out) \
{ return fill(__func__, device, list, 2, count, out); } \
API nvmlReturn_t nvmlDeviceGet##what##RunningProcesses_v3(nvmlDevice_t device, unsigned *count, \
							  nvmlProcessInfo_t *out) \
{ return fill(__func__, device, list, 3, count, out); }
LISTS(Compute, COMPUTE)
LISTS(Graphics, GRAPHICS)
LISTS(MPSCompute, MPS)

/* One sample a process, of the last second; a caller that has seen it gets NOT_FOUND, as from NVML. */
API nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *out,
						 unsigned *count, unsigned long long seen)
{
	struct state *state = state_get();
	struct target at;
	uint64_t now = now_ns();
	unsigned found = 0, room;
	struct timespec clock;
	unsigned long long stamp;
	int i;

	ENTER(device, &at);
	if (!count)
		return N_ARGUMENT;
	clock_gettime(CLOCK_REALTIME, &clock);
	stamp = (unsigned long long)clock.tv_sec * 1000000ull + (unsigned long long)clock.tv_nsec / 1000;
	room = out ? *count : 0;
	state_sweep(state, 0);
	for (i = 0; i < PROCESSES; i++) {
		const struct share *share = &state->processes[i].devices[at.device];

		if (state->processes[i].pid <= 0 || !share->contexts)
			continue;
		if (found < room) {
			memset(&out[found], 0, sizeof(*out));
			out[found].pid = (unsigned)state->processes[i].pid +
					 (unsigned)setting_whole(ANY_DEVICE, "pid_offset", 0);
			out[found].timeStamp = stamp;
			out[found].smUtil = (unsigned)(share_busy(state, share, now) * 100 + 0.5);
		}
		found++;
	}
	*count = found;
	if (found > room)
		return N_SIZE;
	return found && stamp > seen ? 0 : N_NOTFOUND;
}

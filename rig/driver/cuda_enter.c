/* SPDX-License-Identifier: Apache-2.0 */
/* The door of every call: initialised? a sticky error? a live context? what does the file ask for? */
#define _GNU_SOURCE
#include "cuda_local.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <stdio.h>

enum { DEPTH = 16 };

pthread_mutex_t cuda_lock = PTHREAD_MUTEX_INITIALIZER;
static int initialised, in_child;
static int visible[DEVICES], instances[DEVICES], count;
static struct process *self;
static volatile int stuck, trap_code;
static volatile uint64_t trap_time;
static __thread CUcontext stack[DEPTH];
static __thread int depth;

static void forked(void)
{
	self = 0;
	in_child = 1; /* as with the real driver: a child cannot use its parent's CUDA */
	pthread_mutex_init(&cuda_lock, 0);
}

static int by_uuid(const char *item, int *instance)
{
	char uuid[96], key[48];
	int device, nth, total = (int)setting_whole(ANY_DEVICE, "devices", 1);
	size_t length = strcspn(item, ",");

	*instance = -1;
	for (device = 0; device < total && device < DEVICES; device++) {
		snprintf(uuid, sizeof(uuid), "GPU-%08x-0000-4000-8000-00000000%04x", device, device);
		setting_text(device, "uuid", uuid, sizeof(uuid));
		if (!strncasecmp(uuid, item, length))
			return device;
		for (nth = 0; setting_nth(device, "mig.instance", nth, uuid, sizeof(uuid)); nth++) {
			char *at = strstr(uuid, "uuid ");

			snprintf(key, sizeof(key), "MIG-%08x-0000-5000-8000-%012x", device, atoi(uuid));
			if (!strncasecmp(at ? at + 5 : key, item, length)) {
				*instance = atoi(uuid);
				return device;
			}
		}
	}
	return -1;
}

static void find_devices(void)
{
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	int total = (int)setting_whole(ANY_DEVICE, "devices", 1), device, instance;

	count = 0;
	for (device = 0; !list && device < total && device < DEVICES; device++) {
		instances[count] = -1;
		visible[count++] = device;
	}
	while (list && *list && count < DEVICES) {
		instance = -1;
		device = *list >= '0' && *list <= '9' ? atoi(list) : by_uuid(list, &instance);
		if (device < 0 || device >= total)
			return; /* as the real one: the list ends at the first name it does not know */
		instances[count] = instance;
		visible[count++] = device;
		list += strcspn(list, ",");
		list += *list == ',';
	}
}

API CUresult cuInit(unsigned flags)
{
	static pthread_mutex_t entry = PTHREAD_MUTEX_INITIALIZER;

	ENTER(NOTHING, 0);
	if (flags)
		return E_VALUE;
	if (in_child || !state_get())
		return in_child ? E_INIT : 999;
	pthread_mutex_lock(&entry);
	if (!initialised) {
		find_devices();
		initialised = count > 0;
		pthread_atfork(0, 0, forked);
	}
	pthread_mutex_unlock(&entry);
	if (!count)
		return E_NODEVICE;
	return OK;
}

int device_count(void)
{
	return count;
}

int device_of(CUdevice ordinal)
{
	return ordinal >= 0 && ordinal < count ? visible[ordinal] : -1;
}

int instance_of(int device)
{
	int i;

	for (i = 0; i < count; i++)
		if (visible[i] == device)
			return instances[i];
	return -1;
}

/* The entry is ours for life once we have it, so that a launch takes no lock that others hold. */
struct share *share_of(int device)
{
	struct state *state = state_get();
	struct process *process = __atomic_load_n(&self, __ATOMIC_ACQUIRE);
	int i;

	if (process)
		return &process->devices[device];
	process = state_self(state);
	for (i = 0; process && i < count; i++)
		process->devices[visible[i]].instance = instances[i];
	__atomic_store_n(&self, process, __ATOMIC_RELEASE);
	return process ? &process->devices[device] : 0;
}

void trap_at(int code, uint64_t at)
{
	if (!trap_code) {
		trap_time = at;
		trap_code = code;
	}
}

int sticky_error(void)
{
	if (!stuck && trap_code && now_ns() >= trap_time)
		stuck = trap_code;
	return stuck;
}

CUcontext current(void)
{
	return depth ? stack[depth - 1] : 0;
}

int enter(const char *name, enum need need, CUcontext *context)
{
	CUcontext here = current();
	int code, sticky;

	settings_look();
	if (need >= INITIALISED && (!initialised || in_child))
		return E_INIT;
	if (need == CONTEXT) {
		if (sticky_error())
			return stuck;
		if (!here)
			return E_CONTEXT;
		if (!here->alive)
			return E_DESTROYED;
	}
	code = gate(name, here ? here->device : ANY_DEVICE, &sticky);
	if (code && sticky)
		stuck = code;
	if (!code && need == CONTEXT && setting_whole(here->device, "lost", 0))
		code = (int)setting_whole(here->device, "lost.cuda", 999);
	if (context)
		*context = here;
	return code;
}

API CUresult cuCtxGetCurrent(CUcontext *context)
{
	ENTER(INITIALISED, 0);
	if (!context)
		return E_VALUE;
	*context = current();
	return OK;
}

API CUresult cuCtxSetCurrent(CUcontext context)
{
	ENTER(INITIALISED, 0);
	if (context && context->magic != MAGIC_CONTEXT)
		return E_CONTEXT;
	if (depth)
		depth--;
	if (context)
		stack[depth++] = context;
	return OK;
}

int push_context(CUcontext context)
{
	if (!context || context->magic != MAGIC_CONTEXT)
		return E_CONTEXT;
	if (depth == DEPTH)
		return E_VALUE;
	stack[depth++] = context;
	return OK;
}

CUcontext pop_context(void)
{
	return depth ? stack[--depth] : 0;
}

API CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	ENTER(INITIALISED, 0);
	return (CUresult)push_context(context);
}

API CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	CUcontext was;

	ENTER(INITIALISED, 0);
	was = pop_context();
	if (context && was)
		*context = was;
	return was ? OK : E_CONTEXT;
}

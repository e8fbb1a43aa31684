/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the driver as the real runtime does: dlopen, one dlsym on that handle for cuGetProcAddress_v2,
 * and every other function through it by base name and version. A preload sees none of these names.
 */
#define _GNU_SOURCE
#include "cudart_local.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

API const char modelprobe_stand_in[] = "modelprobe-stand-in 1";

struct driver driver;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int failure;

static const struct { const char *name; int version; size_t at; } WANTED[] = {
#define WANT(name, version, field) { name, version, offsetof(struct driver, field) }
	WANT("cuInit", 2000, init),
	WANT("cuDriverGetVersion", 2020, version),
	WANT("cuDeviceGetCount", 2000, count),
	WANT("cuDeviceGetAttribute", 2000, attribute),
	WANT("cuDevicePrimaryCtxRetain", 7000, retain),
	WANT("cuDevicePrimaryCtxReset", 11000, reset),
	WANT("cuCtxSetCurrent", 4000, set),
	WANT("cuCtxGetCurrent", 4000, current),
	WANT("cuCtxSynchronize", 2000, synchronize),
	WANT("cuMemAlloc", 3020, alloc),
	WANT("cuMemFree", 3020, release),
	WANT("cuMemAllocManaged", 6000, managed),
	WANT("cuMemHostAlloc", 2020, host_alloc),
	WANT("cuMemFreeHost", 2000, host_free),
	WANT("cuMemAllocAsync", 11020, alloc_async),
	WANT("cuMemFreeAsync", 11020, free_async),
	WANT("cuMemGetInfo", 3020, info),
	WANT("cuMemcpy", 4000, copy),
	WANT("cuMemcpyAsync", 4000, copy_async),
	WANT("cuMemsetD8", 3020, fill),
	WANT("cuMemsetD8Async", 3020, fill_async),
	WANT("cuModuleLoadData", 2000, load),
	WANT("cuModuleGetFunction", 2000, function),
	WANT("cuLaunchKernel", 4000, launch),
	WANT("cuStreamCreate", 2000, stream_create),
	WANT("cuStreamDestroy", 4000, stream_destroy),
	WANT("cuStreamQuery", 2000, stream_query),
	WANT("cuStreamSynchronize", 2000, stream_synchronize),
	WANT("cuStreamWaitEvent", 3020, stream_wait),
	WANT("cuEventCreate", 2000, event_create),
	WANT("cuEventDestroy", 4000, event_destroy),
	WANT("cuEventRecord", 2000, event_record),
	WANT("cuEventQuery", 2000, event_query),
	WANT("cuEventSynchronize", 2000, event_synchronize),
	WANT("cuEventElapsedTime", 2000, event_elapsed),
	WANT("cuStreamBeginCapture", 10010, capture_begin),
	WANT("cuStreamEndCapture", 10000, capture_end),
	WANT("cuGraphInstantiateWithFlags", 11040, instantiate),
	WANT("cuGraphLaunch", 10000, graph_launch),
	WANT("cuGetErrorName", 6000, error_name),
	WANT("cuGetErrorString", 6000, error_text),
};

static void look_up(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void *symbol = library ? dlsym(library, "cuGetProcAddress_v2") : 0;
	int (*ask)(const char *, void **, int, uint64_t, int *);
	size_t i;

	failure = 35; /* insufficient driver, what the runtime says without one */
	if (!symbol)
		return;
	memcpy(&ask, &symbol, sizeof(ask));
	for (i = 0; i < sizeof(WANTED) / sizeof(*WANTED); i++) {
		void *found_symbol = 0;
		int status = 0;

		if (ask(WANTED[i].name, &found_symbol, WANTED[i].version, 1, &status) || !found_symbol)
			return;
		memcpy((char *)&driver + WANTED[i].at, &found_symbol, sizeof(found_symbol));
	}
	failure = driver.init(0);
}

int found(void)
{
	pthread_once(&once, look_up);
	return failure;
}

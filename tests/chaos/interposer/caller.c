/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the driver as it is told, a line a command, and says what it was answered:
 *   run WAY NAME COUNT SIZE     so many calls of a function: CODE:COUNT of each code
 *   fork WAY NAME COUNT SIZE    the same in the child of a fork
 *   threads WAY NAME COUNT      so many threads call it until `stop`, which says what they were answered
 *   look WAY NAME | exec | pid | watch NAME WAY (calls each ms until the first answer 0: its time in ns)
 * WAY is direct (linked), handle (dlsym), default (RTLD_DEFAULT), self (dlopen of nothing), pointer,
 * thread (cuGetProcAddress_v2, the latter for the per-thread stream) or first (cuGetProcAddress).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct { char internal[128]; } unique;
typedef struct { unsigned grid[3], block[3], shared; void *stream, *attributes; unsigned count; } config;
typedef int (*any)();

int cuMemAlloc_v2(void *at, size_t size);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
		   void **);
int cuStreamSynchronize(void *stream);
int cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);
int cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);
int ncclAllReduce(const void *, void *, size_t, int, int, void *, void *);
int ncclCommInitRank(void **comm, int ranks, unique id, int rank);

static void *cuda, *nccl, *context, *kernel, *event, *graph, *pool, *comm;
static volatile int stopping;

static any of(void *library, const char *name)
{
	void *found = (dlerror(), dlsym(library, name));
	any call;

	if (found && dlerror())
		exit(7); /* found, and yet an error is told */

	memcpy(&call, &found, sizeof(call));
	return call;
}

static void begin(void)
{
	void *module = 0, *plain = 0;
	int rank = getenv("TEST_RANK") ? atoi(getenv("TEST_RANK")) : 0;
	unique id;

	cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!cuda || !nccl || of(cuda, "cuInit")(0))
		exit(3);
	of(cuda, "cuDevicePrimaryCtxRetain")(&context, 0);
	of(cuda, "cuCtxSetCurrent")(context);
	of(cuda, "cuModuleLoadData")(&module, "image");
	of(cuda, "cuModuleGetFunction")(&kernel, module, "work");
	of(cuda, "cuEventCreate")(&event, 0);
	of(cuda, "cuEventRecord")(event, (void *)0);
	of(cuda, "cuDeviceGetDefaultMemPool")(&pool, 0);
	of(cuda, "cuGraphCreate")(&plain, 0);
	of(cuda, "cuGraphInstantiateWithFlags")(&graph, plain, (uint64_t)0);
	if (!getenv("TEST_RANK"))
		return;
	of(nccl, "ncclGetUniqueId")(&id);
	((int (*)(void *, int, unique, int))of(nccl, "ncclCommInitRank"))(&comm, rank + 1, id, rank);
}

static int invoke(const char *name, any call, size_t size)
{
	uint64_t at = 0, pitch = 0;
	config how = { { 1, 1, 1 }, { 1, 1, 1 }, 0, 0, 0, 0 };
	int properties[8] = { 1, 0, 1, 0 }, error;
	unique id;

	memset(&id, 7, sizeof(id));
	if (!strncmp(name, "cuMemAllocPitch", 15))
		return call(&at, &pitch, size, (size_t)1, 4);
	if (!strncmp(name, "cuMemAllocManaged", 17))
		return call(&at, size, 1);
	if (!strncmp(name, "cuMemAllocFromPool", 18))
		return call(&at, size, pool, (void *)0);
	if (!strncmp(name, "cuMemAlloc", 10))
		return call(&at, size, (void *)0);
	if (!strncmp(name, "cuMemCreate", 11))
		return call(&at, size, properties, (uint64_t)0);
	if (!strncmp(name, "cuLaunchKernelEx", 16))
		return call(&how, kernel, (void *)0, (void *)0);
	if (!strncmp(name, "cuLaunch", 8))
		return call(kernel, 1, 1, 1, 1, 1, 1, 0, (void *)0, (void *)0, (void *)0);
	if (!strncmp(name, "cuGraphLaunch", 13))
		return call(graph, (void *)0);
	if (!strncmp(name, "cuEvent", 7))
		return call(event);
	if (!strncmp(name, "cuCtxGetCurrent", 15))
		return call(&at);
	if (!strncmp(name, "cuCtxSynchronize", 16))
		return call(context);
	if (!strncmp(name, "cu", 2))
		return call((void *)0);
	if (!strcmp(name, "ncclCommInitRank"))
		return ((int (*)(void *, int, unique, int))call)(&comm, 1, id, 0);
	if (!strcmp(name, "ncclCommInitRankConfig"))
		return ((int (*)(void *, int, unique, int, void *))call)(&comm, 1, id, 0, (void *)0);
	if (!strcmp(name, "ncclCommInitAll"))
		return call(&comm, 1, (void *)0);
	if (!strcmp(name, "ncclCommSplit"))
		return call(comm, 0, 0, &at, (void *)0);
	if (!strcmp(name, "ncclCommGetAsyncError"))
		return call(comm, &error);
	if (!strcmp(name, "ncclCommAbort"))
		return call((void *)0);
	if (!strcmp(name, "ncclReduce"))
		return call(&at, &at, (size_t)1, 0, 0, 0, comm, (void *)0);
	if (!strcmp(name, "ncclAllReduce") || !strcmp(name, "ncclReduceScatter") || !strcmp(name, "ncclBroadcast"))
		return call(&at, &at, (size_t)1, 0, 0, comm, (void *)0);
	if (!strcmp(name, "ncclAllGather"))
		return call(&at, &at, (size_t)1, 0, comm, (void *)0);
	return call(&at, (size_t)1, 0, 0, comm, (void *)0);
}

/* Calls by the name that the linker binds; there is a compiler's own call in the code for each. */
static int direct(const char *name, size_t size)
{
	uint64_t at = 0;

	if (!strcmp(name, "cuMemAlloc_v2"))
		return cuMemAlloc_v2(&at, size);
	if (!strcmp(name, "cuLaunchKernel"))
		return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	if (!strcmp(name, "cuStreamSynchronize"))
		return cuStreamSynchronize(0);
	if (!strcmp(name, "ncclAllReduce"))
		return ncclAllReduce(&at, &at, 1, 0, 0, comm, 0);
	exit(4);
}

static any pointer(const char *way, const char *name)
{
	int newer = !!strstr(name, "Synchronize_v2"), first = !strcmp(way, "first"), status;
	char base[64];
	void *found = 0;
	any call;

	snprintf(base, sizeof(base), "%s", name);
	if (strstr(base, "_v2"))
		*strstr(base, "_v2") = 0;
	if (first ? cuGetProcAddress(base, &found, 12000, 0) :
	    cuGetProcAddress_v2(base, &found, newer ? 13000 : 12000, strcmp(way, "thread") ? 0 : 2, &status))
		exit(5);
	memcpy(&call, &found, sizeof(call));
	return call;
}

static any look(const char *way, const char *name)
{
	if (!strcmp(way, "direct"))
		return 0;
	if (!strcmp(way, "handle"))
		return of(strncmp(name, "cu", 2) ? nccl : cuda, name);
	if (!strcmp(way, "default"))
		return of(RTLD_DEFAULT, name);
	if (!strcmp(way, "self"))
		return of(dlopen(0, RTLD_NOW), name);
	return pointer(way, name);
}

static void run(const char *way, const char *name, long count, size_t size)
{
	static long codes[1000];
	any call = look(way, name);
	long i;

	memset(codes, 0, sizeof(codes));
	if (!call && strcmp(way, "direct"))
		exit(6);
	for (i = 0; i < count; i++) {
		int code = call ? invoke(name, call, size) : direct(name, size);

		codes[code >= 0 && code < 999 ? code : 999]++;
	}
	for (i = 0; i < 1000; i++)
		if (codes[i])
			printf("%ld:%ld ", i, codes[i]);
	printf("\n");
	fflush(stdout);
}

struct work { char way[16], name[64]; long good, bad; pthread_t thread; };

static void *hammer(void *given)
{
	struct work *work = given;
	any call;

	of(cuda, "cuCtxSetCurrent")(context);
	call = look(work->way, work->name);
	while (!stopping)
		if (call ? invoke(work->name, call, 1) : direct(work->name, 1))
			work->bad++;
		else
			work->good++;
	return 0;
}

static void watch(const char *way, const char *name)
{
	any call = look(way, name);
	struct timespec pause = { 0, 200000 }, now;

	while (call ? invoke(name, call, 1) : direct(name, 1))
		nanosleep(&pause, 0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("%lld\n", now.tv_sec * 1000000000ll + now.tv_nsec);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static struct work works[64];
	char line[256], command[16], way[16], name[64];
	long count = 0, size, started = 0, good, bad;
	int fields;

	(void)argc;
	begin();
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		count = size = 1;
		fields = sscanf(line, "%15s %15s %63s %ld %ld", command, way, name, &count, &size);
		if (!strcmp(command, "run")) {
			run(way, name, count, (size_t)size);
		} else if (!strcmp(command, "fork")) {
			if (!fork()) {
				run(way, name, count, (size_t)size);
				_exit(0);
			}
			wait(0);
		} else if (!strcmp(command, "threads")) {
			for (stopping = started = 0; started < count; started++) {
				memset(&works[started], 0, sizeof(*works));
				memcpy(works[started].way, way, sizeof(way));
				memcpy(works[started].name, name, sizeof(name));
				pthread_create(&works[started].thread, 0, hammer, &works[started]);
			}
		} else if (!strcmp(command, "stop")) {
			for (stopping = 1, good = bad = 0; started; good += works[started].good, bad += works[started].bad)
				pthread_join(works[--started].thread, 0);
			printf("0:%ld 1:%ld\n", good, bad);
			fflush(stdout);
		} else if (!strcmp(command, "watch")) {
			watch(way, name);
		} else if (!strcmp(command, "exec")) {
			execv("/proc/self/exe", argv);
		} else if (!strcmp(command, "look") && fields == 3) {
			printf("%p\n", (void *)look(way, name));
			fflush(stdout);
		}
	}
	return 0;
}

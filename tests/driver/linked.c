/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program linked to the driver and the runtime: `direct 3 5 pointer 7 runtime 11` allocates so many
 * bytes in so many ways, says each code, and keeps all until its input ends. It frees nothing.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(unsigned long long *at, size_t size);
int cuGetProcAddress_v2(const char *name, void **out, int version, unsigned long long flags, int *status);
int cudaMalloc(void **at, size_t size);

static int pointer(unsigned long long *at, size_t size)
{
	int (*call)(unsigned long long *, size_t), status;
	void *found = 0;

	if (cuGetProcAddress_v2("cuMemAlloc", &found, 3020, 0, &status) || !found)
		return -1;
	memcpy(&call, &found, sizeof(call));
	return call(at, size);
}

int main(int argc, char **argv)
{
	unsigned long long at;
	void *context, *memory;
	const char *way = "";
	int i, code;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	for (i = 1; i < argc; i++) {
		size_t size = strtoul(argv[i], 0, 10);

		if (!size) {
			way = argv[i];
			continue;
		}
		code = !strcmp(way, "direct") ? cuMemAlloc_v2(&at, size) :
		       !strcmp(way, "pointer") ? pointer(&at, size) : cudaMalloc(&memory, size);
		printf("%d\n", code);
	}
	fflush(stdout);
	getchar();
	return 0;
}

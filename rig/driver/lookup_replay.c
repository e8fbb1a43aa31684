/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks the driver up as libcudart does: dlopen, one dlsym on the handle, then each query of a list
 * (`name version flags`). Prints one line a query, `found`, `missing` or `old`, and the sums at the end.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*lookup)(const char *, void **, int, uint64_t, int *);

static const char *verdict(int code, const void *found, int status)
{
	return code ? "error" : found ? "found" : status == 2 ? "old" : "missing";
}

int main(int argc, char **argv)
{
	static const char *const NAMES[] = { "found", "missing", "old", "error" };
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	void *symbol = library ? dlsym(library, "cuGetProcAddress_v2") : 0;
	unsigned counts[4] = { 0 }, i;
	char line[256], name[128];
	unsigned long long flags;
	int version;
	lookup ask;
	FILE *list;

	list = argc == 2 ? fopen(argv[1], "r") : 0;
	if (!symbol || !list) {
		fprintf(stderr, "usage: lookup_replay LIST, with libcuda.so.1 to be found: %s\n",
			symbol ? "no list" : "no library");
		return 2;
	}
	memcpy(&ask, &symbol, sizeof(ask));
	while (fgets(line, sizeof(line), list)) {
		int status = -1, code;
		void *found = 0;

		if (*line == '#' || sscanf(line, "%127s %d %llu", name, &version, &flags) != 3)
			continue;
		code = ask(strcmp(name, "-") ? name : "", &found, version, flags, &status);
		printf("%s %s %d %llu\n", verdict(code, found, status), name, version, flags);
		for (i = 0; i < 4; i++)
			counts[i] += !strcmp(NAMES[i], verdict(code, found, status));
	}
	fclose(list);
	printf("sum found %u missing %u old %u error %u\n", counts[0], counts[1], counts[2], counts[3]);
	return counts[3] != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the libraries it is given, each by a handle of its own, and says what ncclAllReduce answers in each. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	int (*call[8])(void), i, round;

	for (i = 1; i < argc; i++) {
		void *found = dlsym(dlopen(argv[i], RTLD_NOW | RTLD_LOCAL), "ncclAllReduce");

		memcpy(&call[i], &found, sizeof(found));
	}
	for (round = 0; round < 2; round++)
		for (i = 1; i < argc; i++)
			printf("%d ", call[i]());
	printf("\n%s\n", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") ? "found" : dlerror());
	return 0;
}

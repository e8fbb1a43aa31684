/* A preload that destroys the primary contexts of the process whose number the page's file has. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *watch(void *page)
{
	for (;; usleep(2000)) {
		FILE *file = fopen(page, "r");
		int pid = 0, (*reset)(int);
		void *driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);

		if (file && fscanf(file, "%d\n", &pid) != 1)
			pid = 0;
		if (file)
			fclose(file);
		if (pid != getpid() || !driver)
			continue;
		unlink(page);
		reset = (int (*)(int))dlsym(driver, "cuDevicePrimaryCtxReset_v2");
		for (int device = 0; device < 16; device++)
			reset(device); /* those it has no context on, or that are not there, do not mind */
	}
	return 0;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_t thread;
	char *page = getenv("MODELPROBE_CHAOS_PAGE");

	if (page && getenv("MODELPROBE_CHAOS_TARGET"))
		pthread_create(&thread, 0, watch, page);
}

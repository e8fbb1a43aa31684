/* SPDX-License-Identifier: Apache-2.0 */
/* Times calls by their own and by the hooked address as it is told, or waits for a good one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
typedef int (*allocate)(void *, unsigned long);
typedef int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                      void **, void **);
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
static double loop(void *f, int which, long calls)
{
    allocate volatile a = (allocate)f;
    launch volatile l = (launch)f;
    double began = now();
    for (long i = 0; i < calls; i++)
        which ? l(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0) : a(0, 1);
    return (now() - began) / calls;
}
int main(int argc, char **argv)
{
    void *driver = dlopen(argv[1], RTLD_NOW), *(*plain)(int) = dlsym(driver, "plain"), *hook[2];
    char line[64];
    int which, first;
    long calls;
    hook[0] = dlsym(driver, "cuMemAlloc_v2");
    hook[1] = dlsym(driver, "cuLaunchKernel");
    puts(hook[0] == plain(0) || hook[1] == plain(1) ? "unhooked" : "ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "pair %d %ld %d", &which, &calls, &first) == 3) {
            double times[2];
            times[first] = loop(first ? hook[which] : plain(which), which, calls);
            times[!first] = loop(first ? plain(which) : hook[which], which, calls);
            printf("%.6e\n", times[1] - times[0]);
        } else {
            struct timespec nap = { 0, 50000 };
            while (((allocate)hook[0])(0, 1))
                nanosleep(&nap, 0);
            printf("%.9f\n", now());
        }
        fflush(stdout);
    }
    return 0;
}

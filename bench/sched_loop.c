/* Does one of two things as often as a line on standard input says (`switch N`, `spawn N`) and
 * answers with nanoseconds of CPU a time, its children's included: switching between two threads on
 * one CPU, or starting a program that ends at once and waiting for it. On a machine that others use
 * a wall clock would measure them. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static int there[2], back[2];

static void *answer(void *unused)
{
	char byte;

	while (read(there[0], &byte, 1) == 1)
		if (write(back[1], &byte, 1) != 1)
			break;
	return unused;
}

static double now(void)
{
	struct timespec at;
	struct rusage of;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	getrusage(RUSAGE_CHILDREN, &of);
	return (at.tv_sec + of.ru_utime.tv_sec + of.ru_stime.tv_sec) * 1e9 + at.tv_nsec +
	       (of.ru_utime.tv_usec + of.ru_stime.tv_usec) * 1e3;
}

static void switches(long times)
{
	char byte = 0;

	for (long i = 0; i < times; i += 2) /* a way there and a way back */
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			exit(1);
}

static void spawn(const char *self, long times)
{
	char *const arguments[] = {(char *)self, "end", 0};

	for (long i = 0; i < times; i++) {
		pid_t pid;
		int status;

		if (posix_spawn(&pid, self, 0, 0, arguments, environ) || waitpid(pid, &status, 0) != pid)
			exit(1);
	}
}

int main(int count, char **arguments)
{
	cpu_set_t one;
	pthread_t other;
	char what[16];
	long times;

	if (count > 1 && !strcmp(arguments[1], "end"))
		return 0;
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (sched_setaffinity(0, sizeof(one), &one) || pipe(there) || pipe(back) ||
	    pthread_create(&other, 0, answer, 0))
		return 1;
	puts("ready");
	fflush(stdout);
	while (scanf("%15s %ld", what, &times) == 2) {
		double began = now();

		if (!strcmp(what, "switch"))
			switches(times);
		else
			spawn(arguments[0], times);
		printf("%.1f\n", (now() - began) / times);
		fflush(stdout);
	}
	return 0;
}

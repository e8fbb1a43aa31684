/* SPDX-License-Identifier: Apache-2.0 */
/* The shared file: made once, mapped by each process, swept of those that have gone. */
#define _GNU_SOURCE
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0x6d70726f62653031ull
#define PATIENCE_NS 20000000l

API const char modelprobe_stand_in[] = VERSION;

static struct state *mapped;
__thread int bypassed;	/* the lock that this thread would hold is a stopped one's */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void initialise(struct state *state)
{
	pthread_mutexattr_t how;

	pthread_mutexattr_init(&how);
	pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&state->lock, &how);
	pthread_mutexattr_destroy(&how);
	state->size = sizeof(*state);
	state->layout = LAYOUT;
	state->born_at = now_ns();
	__atomic_store_n(&state->magic, MAGIC, __ATOMIC_RELEASE);
}

/* Why the file cannot be used, 0 when it can. A maker killed half way leaves one without the magic. */
static const char *unfit(int fd, const struct stat *is)
{
	uint64_t head[3] = { 0 }; /* magic, size, layout, in every build */
	int whole;

	if (!S_ISREG(is->st_mode) ||
	    (is->st_uid != geteuid() && geteuid() != 0)) /* root's engines, a user's reader */
		return "is no file of this user: name another";
	if (is->st_size == 0)
		return 0;
	whole = pread(fd, head, sizeof(head), 0) == sizeof(head);
	if (whole && head[0] == MAGIC)
		return head[1] == sizeof(struct state) && head[2] == LAYOUT &&
			       is->st_size == sizeof(struct state) ? 0 :
		       "is of another build of these libraries: end the processes that use it, then remove it";
	return whole && !head[0] && is->st_size == sizeof(struct state) ? 0 :
	       "is no state of these libraries: name another file";
}

static struct state *map_open(int fd, const char **why)
{
	struct state *state;
	struct stat is;

	*why = fstat(fd, &is) == 0 ? unfit(fd, &is) : strerror(errno);
	if (*why)
		return 0;
	*why = "cannot be given its size: make room on its file system";
	if (is.st_size == 0 && ftruncate(fd, sizeof(*state)) < 0)
		return 0;
	state = mmap(0, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (state == MAP_FAILED)
		return 0;
	if (state->magic != MAGIC)
		initialise(state);
	return state;
}

static void map_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	const char *why = fd < 0 ? strerror(errno) : 0;

	if (fd >= 0) {
		while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
			;
		mapped = map_open(fd, &why);
		flock(fd, LOCK_UN); /* the mapping keeps the open file, and so the lock, beyond close */
		close(fd);
	}
	if (!mapped)
		fprintf(stderr, "modelprobe stand-in: MODELPROBE_STANDIN_STATE, %s: %s\n", path, why);
}

static void map_once(void)
{
	const char *path = getenv("MODELPROBE_STANDIN_STATE");

	if (path && *path) {
		map_file(path);
		return;
	}
	mapped = mmap(0, sizeof(*mapped), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED)
		mapped = 0;
	else
		initialise(mapped);
}

struct state *state_get(void)
{
	pthread_once(&once, map_once);
	return mapped;
}

/*
 * A rank that was stopped while it held the lock would stop the machine, as no real driver does: its
 * waiters look, and go on. What they then do at once they may do inexactly, never out of bounds.
 */
void state_lock(struct state *state)
{
	struct timespec until;
	int code;

	bypassed = 0;
	for (;;) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += PATIENCE_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		code = pthread_mutex_timedlock(&state->lock, &until);
		if (code != ETIMEDOUT)
			break;
		if (stopped(__atomic_load_n(&state->holder, __ATOMIC_RELAXED))) {
			bypassed = 1;
			return;
		}
	}
	if (code == EOWNERDEAD)
		pthread_mutex_consistent(&state->lock); /* at worst the dead one's entry is wrong */
	__atomic_store_n(&state->holder, getpid(), __ATOMIC_RELAXED);
}

void state_unlock(struct state *state)
{
	if (bypassed)
		return;
	__atomic_store_n(&state->holder, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&state->lock);
}

void sleep_until(uint64_t deadline)
{
	struct timespec at = { (time_t)(deadline / 1000000000ull), (long)(deadline % 1000000000ull) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0) == EINTR)
		;
}

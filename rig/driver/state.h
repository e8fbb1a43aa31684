/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all processes of one stand-in machine share: a mapped file. A process writes only its own
 * entry, so that reading takes no lock, and one that is killed half way leaves an entry to sweep.
 * Who changes what is shared holds a robust mutex, briefly: a process can be stopped at any moment.
 */
#ifndef STATE_H
#define STATE_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define VERSION "modelprobe-stand-in 1"
#define API __attribute__((visibility("default")))
#define APART __attribute__((noinline)) /* leaves the caller a frame, and so a push to probe */
#define DEVICES 16
#define PROCESSES 128
#define BUCKETS 256		/* of busy time, a ring: one second back, seven ahead */
#define BUCKET_NS 31250000ull
#define EVENTS 256
#define COMMUNICATORS 64
#define RANKS 32
#define FLIGHTS 256		/* collectives of one communicator that some rank still waits for */
#define SPINS 8			/* streams of one process on one device that show a collective */

/*
 * A stream with a collective at its head: a kernel that runs from `since` on, until the last one put
 * there is over. Readers look that up themselves: its process may be stopped, and the kernel is not.
 */
struct spin {
	uint64_t since;		/* 0 for a free entry; written last */
	uint64_t what;		/* see spin_what */
};

struct share { /* of one process on one device */
	uint64_t bytes;
	uint32_t contexts;
	int32_t instance;	/* the MIG GPU instance it runs in, -1 for the whole device */
	uint64_t launched_ns;	/* kernel time ever put on a stream */
	uint64_t buckets[BUCKETS]; /* epoch << 32 | busy nanoseconds */
	struct spin spins[SPINS];
};

struct process {
	int32_t pid;		/* written last; 0 for a free entry, -1 for one that is being taken */
	uint64_t start;		/* clock ticks after boot: a pid alone may be somebody else's */
	struct share devices[DEVICES];
};

struct card {
	uint64_t retired_ns;	/* kernel time of processes that have gone */
	uint64_t energy_mj, energy_at;
};

struct event {
	uint64_t type, data;
	uint32_t device, gpu_instance, compute_instance;
};

struct member {
	int32_t pid;
	uint64_t start;
	uint32_t joined, left;
	uint64_t aborted_at;	/* 0 unless it was */
	uint64_t arrived;	/* collectives put on a stream so far */
	uint32_t splits;	/* calls of ncclCommSplit so far */
	int32_t color[2], key[2]; /* of an odd and an even call: some may not have read the last one */
};

struct flight {
	uint64_t sequence;
	uint32_t arrived;	/* ranks */
	uint64_t ready, after, cost, finish; /* ns: latest start, latest start after the one before */
};

struct tally {
	uint32_t count;
	uint64_t at;		/* ns, of the last one; written before the count */
};

struct communicator {
	uint64_t id;		/* 0 for a free slot */
	uint32_t ranks;
	struct member members[RANKS];
	struct flight flights[FLIGHTS];
	struct tally sent[RANKS][RANKS], received[RANKS][RANKS]; /* [from][to] */
};

struct state {
	uint64_t magic, size, layout;	/* stay where they are: another build reads them */
	pthread_mutex_t lock;
	int32_t holder;		/* pid, 0 when nobody has it */
	uint64_t swept_at, born_at, seed;
	uint64_t posted;	/* events ever */
	uint32_t bell;		/* a futex: rings with each event */
	uint64_t configured;	/* highest N of the `event.N` lines that were posted */
	struct event events[EVENTS];
	struct card cards[DEVICES];
	struct process processes[PROCESSES];
	struct communicator communicators[COMMUNICATORS];
};

struct state *state_get(void);		/* 0 when the file cannot be used; said once on stderr */
void state_lock(struct state *state);	/* goes on without it when its holder has been stopped */
void state_unlock(struct state *state);
void state_sweep(struct state *state, int now);	/* not locked; `now` even if done a moment ago */
struct process *state_self(struct state *state);	/* not locked; 0 when the table is full */
int alive(int32_t pid, uint64_t start);
int stopped(int32_t pid);
extern __thread int bypassed;		/* this thread went on without the lock */
uint64_t started(int32_t pid);		/* 0 when there is no such process, or only its remains */
uint64_t device_bytes(const struct state *state, int device, int instance);

static inline uint64_t now_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (uint64_t)at.tv_sec * 1000000000ull + (uint64_t)at.tv_nsec;
}

void sleep_until(uint64_t deadline);	/* a signal does not cut it short */

/* busy.c */
void busy_add(struct share *share, uint64_t from, uint64_t to);
double device_busy(const struct state *state, int device, int instance, uint64_t now); /* 0..1 */
double share_busy(const struct state *state, const struct share *share, uint64_t now);
uint64_t busy_ever(const struct state *state, int device, int instance, uint64_t now);

/* spin.c */
struct span { uint64_t from, to; };
enum spin_kind { COLLECTIVE = 1, SEND, RECEIVE };
uint64_t spin_what(enum spin_kind kind, int slot, int rank, int peer, uint64_t nth);	/* never 0 */
int spin_spans(const struct state *state, const struct share *share, uint64_t now, struct span *out);

/* events.c */
void event_post(struct state *state, struct event event);	/* locked */
int event_parse(const char *text, struct event *event);		/* `xid 79 device 0`; 0 when not */
void events_configured(struct state *state);			/* posts new `event.N` lines */
uint32_t events_heard(const struct state *state);
void events_wait(struct state *state, uint32_t heard, uint64_t ns); /* for one after those heard */
#endif

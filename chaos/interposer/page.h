/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control page: a file that all processes of one target map shared, and the injector with them.
 * `page.py` mirrors it; a test compares the offsets. What a process of the target must do to see
 * that nothing is asked of it is one load of `armed`.
 */
#ifndef MODELPROBE_PAGE_H
#define MODELPROBE_PAGE_H

#include <stdint.h>

enum {
	PAGE_VERSION = 1, PAGE_SIZE = 8192, RULES = 8, PROCESSES = 64,
	OWNER = 0x3fffffff, OWNER_DIED = 0x40000000	/* FUTEX_TID_MASK, FUTEX_OWNER_DIED */
};
/* No lease is longer: a page left from before a restart of the machine, whose clock began anew, is not armed. */
#define LEASE_MOST 60000000000ull
#define PAGE_MAGIC 0x31534f414843504dull	/* "MPCHAOS1" */

enum action { ACT_NONE, ACT_ERROR, ACT_STICKY, ACT_DELAY, ACT_RESET, ACT_TRAP };

struct rule {
	uint64_t symbols;	/* bit N: the Nth line of calls.h */
	uint32_t action;
	int32_t code;		/* of ERROR and STICKY */
	uint64_t delay;		/* nanoseconds */
	uint64_t nth;		/* first hit at this matching call; 0 and 1 are the same */
	uint64_t times;		/* hits at most; 0: no limit */
	uint64_t over;		/* allocations of more bytes than this alone, unless 0 */
	uint64_t threshold;	/* probability times 2^32 */
	uint64_t seed;
	int32_t rank;		/* -1: any */
	int32_t pid;		/* 0: any; as the target itself sees it */
	uint8_t spare[56];
	uint64_t calls;		/* that matched; on a cache line of their own, as the targets write here */
	uint64_t hits;
	uint64_t first;		/* CLOCK_MONOTONIC, nanoseconds, of the first and the last hit */
	uint64_t last;
	uint8_t rest[32];
};

struct process {
	int32_t pid;		/* 0: free; as the target itself sees it */
	int32_t rank;		/* -1: not known */
	uint64_t stamp;		/* CLOCK_MONOTONIC, nanoseconds, of its entry: tells equal pids apart */
	uint64_t entered;	/* calls that came to be judged */
	uint64_t left;		/* calls that were: the difference is who is being judged now */
	uint64_t hits;		/* calls that a rule changed */
	int32_t sticky;		/* the code it is stuck with, or 0 */
	int32_t result;		/* what the driver said to the last RESET or TRAP; -1: none yet */
	uint8_t rest[16];
};

struct page {
	uint64_t magic;
	uint32_t version, size;
	uint8_t spare[48];
	uint32_t lock;		/* holder's thread id; the kernel sets OWNER_DIED when that ends */
	uint8_t mutex[60];	/* the room of a pthread_mutex_t */
	uint64_t armed;		/* symbols with any rule */
	uint64_t generation;
	uint64_t lease;		/* deadline by CLOCK_MONOTONIC_COARSE, nanoseconds */
	uint32_t rules;
	uint8_t gap[36];
	uint64_t overflow;	/* processes that found no room in the table */
	uint8_t rest[56];
	struct rule rule[RULES];
	uint8_t pad[256];
	struct process process[PROCESSES];
	uint8_t tail[2048];
};

_Static_assert(sizeof(struct rule) == 192 && sizeof(struct process) == 64, "layout");
_Static_assert(sizeof(struct page) == PAGE_SIZE, "layout");
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the library know of each other. Nothing here is exported. */
#ifndef MODELPROBE_LOCAL_H
#define MODELPROBE_LOCAL_H

#include <stddef.h>
#include <stdint.h>

#include "page.h"

#define EXPORT __attribute__((visibility("default")))
#define COLD __attribute__((noinline, cold))
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define NO_SIZE ((uint64_t)0)

#pragma GCC visibility push(hidden)	/* for declarations too, or each use goes through a table */

struct unique_id { char internal[128]; };	/* ncclUniqueId, handed over by value */

enum kind { CUDA, PTSZ, NCCL, RANK };
enum symbol {
#define CALL(kind, name, base, since, bytes, parameters, arguments) S_##name,
#include "calls.h"
#undef CALL
	HOOKED,			/* bits of a rule end here; the two below are ours for looking up only */
	S_cuGetProcAddress = HOOKED, S_cuGetProcAddress_v2, SYMBOLS
};
_Static_assert(HOOKED <= 64, "one bit each");

/*
 * Ways to reach a function of one name: 0 is the linker's, whose real one is the next in its order;
 * the others belong to what a look-up on a handle has found. Two libraries of one name in a process
 * never get each other's calls so.
 */
enum { WAYS = 4 };

typedef void (*function)(void);

extern struct page *page;		/* never null: a page of zeros while there is none */
extern int active;			/* a page was given, and is fit */
extern function reals[WAYS][SYMBOLS];
extern const function hooks[WAYS][SYMBOLS];
extern const char *const names[SYMBOLS];

void start(void);					/* start.c: once, whoever comes first */
int symbol_of(const char *name);			/* look.c: -1: none of ours */
void offer(const char *base, void **out, int version, uint64_t flags);	/* look.c */
function hook_of(int symbol, function real);		/* look.c: what to hand out for it */
function resolve(int symbol);				/* real.c: way 0's, looked for at its first call */
void *real_dlsym(void *handle, const char *name);	/* real.c: libc's own */
void *next_dlsym(void);					/* real.c: that of the next preload, or libc's */
void *find(void *handle, const char *name);		/* real.c: by that one */
void real_start(void);
void *driver(const char *name);				/* real.c: a function of libcuda, not ours */
int same_object(const void *one, const void *other);
struct page *page_open(const char *path);		/* map.c: null, and a line on stderr */
void complain(const char *what, const char *where);
int self_start(void);					/* self.c: 0, or no memory */
void self_present(void);				/* enters this process into the table */
void self_rank(int rank);
struct self *self(void);
struct process *entry_of(struct self *me);
int judge(int symbol, uint64_t bytes, int *code);	/* judge.c: 1: answer that code, and do not call */
int act_reset(void), act_trap(void);			/* act.c: what the driver said */

/* What a process keeps of itself; wiped in the child of a fork, which has a name of its own. */
struct self {
	int state;			/* 0 unknown, 1 being entered, 2 entered */
	int pid, rank, sticky;
	uint64_t sticky_in, done_in;	/* the generations of these */
	struct process *entry;
};

#pragma GCC visibility pop
#endif

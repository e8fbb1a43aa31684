/* SPDX-License-Identifier: Apache-2.0 */
/* What libcuda keeps in its own process: contexts, streams on virtual time lines, allocations, errors. */
#ifndef CUDA_LOCAL_H
#define CUDA_LOCAL_H

#include "cuda_abi.h"
#include "settings.h"
#include "state.h"
#include "streams.h"

enum { OK = 0, E_VALUE = 1, E_MEMORY = 2, E_INIT = 3, E_NODEVICE = 100, E_DEVICE = 101, E_CONTEXT = 201,
       E_HANDLE = 400, E_NOTFOUND = 500, E_NOTREADY = 600, E_DESTROYED = 709, E_UNSUPPORTED = 801,
       E_CAPTURING = 900 };
enum { MAGIC_CONTEXT = 0x63747831, MAGIC_STREAM = 0x73747231, MAGIC_EVENT = 0x65767431 };
enum need { NOTHING, INITIALISED, CONTEXT };
enum kind { DEVICE_MEMORY, HOST_MEMORY, PHYSICAL, RESERVED, REGISTERED };

struct waiting { /* work behind something that is not over yet, a collective or an event */
	int (*done)(void *arg, uint64_t now, uint64_t *finish);
	void (*release)(void *arg);
	void *arg;
	uint64_t what;			/* of a collective, see spin_what; else 0 */
	uint64_t put;			/* when it came on the stream */
	uint64_t then;			/* ns of work behind it */
	struct mark *marks;		/* events recorded behind it */
	struct waiting *next;
};

struct mark {
	CUevent event;
	uint64_t recording, offset;
	struct mark *next;
};

struct CUstream_st {
	uint32_t magic;
	unsigned flags;
	int priority, advancing;
	CUcontext context;
	CUgraph capture;
	uint64_t tail;			/* when all that is known of will be over */
	struct waiting *first, *last;
	struct spin *spin;		/* where readers see that a collective runs on it */
	CUstream next;
};

struct CUevent_st {
	uint32_t magic;
	unsigned flags;
	CUcontext context;
	CUstream stream;		/* last recorded on */
	int pending;			/* its time is not known yet */
	uint64_t recording, at;
	CUevent next;
};

struct CUctx_st {
	uint32_t magic;
	int device, primary, alive;	/* device: index on the machine */
	unsigned references, flags;
	struct CUstream_st legacy, per_thread;
	CUstream streams;
	CUcontext next;
};

struct CUfunc_st {
	char name[120];
	unsigned generation;		/* of the settings that the figures below are from */
	uint64_t cost;
	int trap, dynamic_shared;
	struct CUfunc_st *next;
};

struct CUgraph_st {
	uint64_t kernels, cost;
	int trap;
};

struct allocation {
	CUdeviceptr at;
	size_t size, charged;
	enum kind kind;
	CUcontext context;
	int device;
	unsigned char *bytes;		/* contents, for small ones that were written */
};

extern pthread_mutex_t cuda_lock;

/* Ends the call with the error that the process, its context or the configuration has for it. */
#define ENTER(need, context) \
	do { CUresult entered = (CUresult)enter(__func__, need, context); \
	     if (entered) return entered; } while (0)

int enter(const char *name, enum need need, CUcontext *context);
int sticky_error(void);			/* 0, or what every call in this process answers from now on */
void trap_at(int code, uint64_t at);
int device_of(CUdevice ordinal);	/* index on the machine, -1 when there is none */
int device_count(void);
int device_attribute(int device, int which);
int function_attribute(CUfunction function, int device, int which, int *value);
int push_context(CUcontext context);
CUcontext pop_context(void);
int open_context(CUcontext context, int device);	/* cuda_lock held */
void close_context(CUcontext context);			/* cuda_lock held */
int instance_of(int device);		/* MIG GPU instance in CUDA_VISIBLE_DEVICES, -1 */
struct share *share_of(int device);	/* this process there; 0 when the shared table is full */
CUcontext current(void);
uint64_t capacity(int device);	/* all of it, or of the MIG instance */
uint64_t usable(int device);	/* without what the driver keeps */

int charge(int device, size_t bytes);	/* OK or E_MEMORY */
void discharge(int device, size_t bytes);
void forget_allocations(CUcontext context);	/* cuda_lock held */
struct allocation *allocation_at(CUdeviceptr at);	/* interior pointers too; cuda_lock held */
struct allocation *allocation_add(struct allocation what);
void allocation_remove(struct allocation *allocation);

CUstream stream_of(CUstream stream, int per_thread, CUcontext context); /* 0 when it is none */
void stream_advance(CUstream stream, uint64_t now);	/* cuda_lock held */
void stream_work(CUstream stream, uint64_t ns);		/* cuda_lock held */
void stream_wait(CUstream stream, struct waiting *waiting);	/* cuda_lock held */
void spin_show(CUstream stream);			/* its head has changed; cuda_lock held */
void spin_credit(CUstream stream, uint64_t until);	/* its head is over; cuda_lock held */
int stream_finish(CUstream stream);			/* waits; OK or the sticky error */
void stream_drop(CUstream stream);			/* cuda_lock held */
uint64_t function_cost(CUfunction function, int device, int *trap);
extern const struct stream_table stream_table;
#endif

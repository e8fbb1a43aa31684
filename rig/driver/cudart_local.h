/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's functions as the runtime found them, and this thread's last error. */
#ifndef CUDART_LOCAL_H
#define CUDART_LOCAL_H

#include "cudart_abi.h"

#define API __attribute__((visibility("default")))
typedef unsigned long long device_pointer;

struct driver {
	int (*init)(unsigned);
	int (*version)(int *);
	int (*count)(int *);
	int (*attribute)(int *, int, int);
	int (*retain)(void **, int);
	int (*reset)(int);
	int (*set)(void *);
	int (*current)(void **);
	int (*synchronize)(void);
	int (*alloc)(device_pointer *, size_t);
	int (*release)(device_pointer);
	int (*managed)(device_pointer *, size_t, unsigned);
	int (*host_alloc)(void **, size_t, unsigned);
	int (*host_free)(void *);
	int (*alloc_async)(device_pointer *, size_t, void *);
	int (*free_async)(device_pointer, void *);
	int (*info)(size_t *, size_t *);
	int (*copy)(device_pointer, device_pointer, size_t);
	int (*copy_async)(device_pointer, device_pointer, size_t, void *);
	int (*fill)(device_pointer, unsigned char, size_t);
	int (*fill_async)(device_pointer, unsigned char, size_t, void *);
	int (*load)(void **, const void *);
	int (*function)(void **, void *, const char *);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
		      void **, void **);
	int (*stream_create)(void **, unsigned);
	int (*stream_destroy)(void *);
	int (*stream_query)(void *);
	int (*stream_synchronize)(void *);
	int (*stream_wait)(void *, void *, unsigned);
	int (*event_create)(void **, unsigned);
	int (*event_destroy)(void *);
	int (*event_record)(void *, void *);
	int (*event_query)(void *);
	int (*event_synchronize)(void *);
	int (*event_elapsed)(float *, void *, void *);
	int (*capture_begin)(void *, int);
	int (*capture_end)(void *, void **);
	int (*instantiate)(void **, void *, unsigned long long);
	int (*graph_launch)(void *, void *);
	int (*error_name)(int, const char **);
	int (*error_text)(int, const char **);
};

#define READY() do { int ready_ = ready(); if (ready_) return (cudaError_t)ready_; } while (0)

extern struct driver driver;

int ready(void);	/* 0 once this thread has a context; else the error, kept as its last one */
int found(void);	/* 0 once the driver is loaded and initialised */
cudaError_t done(int code);	/* the driver's code in the runtime's numbers, kept when it is one */
int kernel_of(const void *handle, void **function);
#endif

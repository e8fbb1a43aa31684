/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams run on virtual time: work put on one begins when the stream is free and ends its cost later;
 * nobody runs it. Behind something whose end is unknown (a collective), work is kept as a sum.
 */
#include "cuda_local.h"

#include <stdlib.h>

#define POLL_NS 100000ull

CUstream stream_of(CUstream stream, int per_thread, CUcontext context)
{
	if (!stream || (uintptr_t)stream <= 2)
		return stream == (CUstream)2 || (!stream && per_thread) ? &context->per_thread :
									  &context->legacy;
	return stream->magic == MAGIC_STREAM && stream->context->alive ? stream : 0;
}

static void free_first(CUstream stream)
{
	struct waiting *waiting = stream->first;
	struct share *share = share_of(stream->context->device);

	stream->first = waiting->next;
	if (!stream->first)
		stream->last = 0;
	if (waiting->spins && share && share->spinning)
		__atomic_fetch_sub(&share->spinning, 1, __ATOMIC_RELAXED);
	if (waiting->release)
		waiting->release(waiting->arg);
	free(waiting);
}

void stream_advance(CUstream stream, uint64_t now)
{
	struct waiting *waiting;
	uint64_t finish;

	if (stream->advancing)
		return; /* two streams that wait for each other's events: the outer call goes on */
	stream->advancing = 1;
	while ((waiting = stream->first)) {
		finish = now;
		if (!waiting->done(waiting->arg, now, &finish))
			break;
		if (finish > stream->tail)
			stream->tail = finish;
		while (waiting->marks) {
			struct mark *mark = waiting->marks;

			if (mark->event->magic == MAGIC_EVENT && mark->event->recording == mark->recording) {
				mark->event->at = stream->tail + mark->offset;
				mark->event->pending = 0;
			}
			waiting->marks = mark->next;
			free(mark);
		}
		if (waiting->then) {
			struct share *share = share_of(stream->context->device);

			if (share)
				busy_add(share, stream->tail, stream->tail + waiting->then);
			stream->tail += waiting->then;
		}
		free_first(stream);
	}
	stream->advancing = 0;
}

void stream_work(CUstream stream, uint64_t ns)
{
	uint64_t now = now_ns();
	struct share *share;

	if (stream->first)
		stream_advance(stream, now);
	if (stream->first) {
		stream->last->then += ns;
		return;
	}
	if (stream->tail < now)
		stream->tail = now;
	share = share_of(stream->context->device);
	if (ns && share)
		busy_add(share, stream->tail, stream->tail + ns);
	stream->tail += ns;
}

void stream_wait(CUstream stream, struct waiting *waiting)
{
	struct share *share = share_of(stream->context->device);

	if (stream->last)
		stream->last->next = waiting;
	else
		stream->first = waiting;
	stream->last = waiting;
	if (waiting->spins && share)
		__atomic_fetch_add(&share->spinning, 1, __ATOMIC_RELAXED);
}

void stream_drop(CUstream stream)
{
	while (stream->first) {
		while (stream->first->marks) {
			struct mark *mark = stream->first->marks;

			stream->first->marks = mark->next;
			free(mark);
		}
		free_first(stream);
	}
	stream->tail = 0;
}

int stream_finish(CUstream stream)
{
	for (;;) {
		uint64_t now = now_ns(), until;
		int code;

		pthread_mutex_lock(&cuda_lock);
		stream_advance(stream, now);
		until = stream->first ? now + POLL_NS : stream->tail;
		code = stream->first != 0;
		pthread_mutex_unlock(&cuda_lock);
		if (until > now)
			sleep_until(until);
		if (sticky_error())
			return sticky_error();
		if (!stream->context->alive)
			return E_DESTROYED;
		if (!code)
			return OK;
	}
}

static int table_wait(void *handle, int (*done)(void *, uint64_t, uint64_t *), void (*release)(void *),
		      void *arg)
{
	CUcontext context = current();
	CUstream stream = context && context->alive ? stream_of(handle, 0, context) : 0;
	struct waiting *waiting = calloc(1, sizeof(*waiting));

	if (!stream || !waiting) {
		free(waiting);
		return E_CONTEXT;
	}
	waiting->done = done;
	waiting->release = release;
	waiting->arg = arg;
	waiting->spins = 1;
	pthread_mutex_lock(&cuda_lock);
	stream_wait(stream, waiting);
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

static int table_place(void *handle, uint64_t *at, uint64_t *after)
{
	CUcontext context = current();
	CUstream stream;
	uint64_t now = now_ns();

	if (sticky_error())
		return sticky_error();
	stream = context && context->alive ? stream_of(handle, 0, context) : 0;
	if (!stream)
		return context && !context->alive ? E_DESTROYED : E_CONTEXT;
	pthread_mutex_lock(&cuda_lock);
	stream_advance(stream, now);
	*after = stream->last ? stream->last->then : 0;
	*at = !stream->last && stream->tail > now ? stream->tail : now;
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

static int table_device(void *handle)
{
	CUcontext context = current();

	(void)handle;
	return context && context->alive ? context->device : -1;
}

const struct stream_table stream_table = { sizeof(stream_table), table_wait, table_place, table_device };

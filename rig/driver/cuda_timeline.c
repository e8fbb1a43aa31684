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

	stream->first = waiting->next;
	if (!stream->first)
		stream->last = 0;
	spin_show(stream);
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
		spin_credit(stream, finish);
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
	waiting->put = now_ns();
	if (stream->last)
		stream->last->next = waiting;
	else
		stream->first = waiting;
	stream->last = waiting;
	spin_show(stream);
}

void stream_drop(CUstream stream)
{
	if (stream->first)
		spin_credit(stream, now_ns());
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

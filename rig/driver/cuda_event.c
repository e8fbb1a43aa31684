/* SPDX-License-Identifier: Apache-2.0 */
/* Events: points of a stream's virtual time, unknown while a collective before them is not over. */
#include "cuda_local.h"

#include <stdlib.h>

static CUevent spare;

static int valid(CUevent event)
{
	return event && event->magic == MAGIC_EVENT;
}

API CUresult cuEventCreate(CUevent *out, unsigned flags)
{
	CUcontext context;
	CUevent event;

	ENTER(CONTEXT, &context);
	if (!out || flags > 7)
		return E_VALUE;
	pthread_mutex_lock(&cuda_lock);
	event = spare;
	if (event)
		spare = event->next;
	else
		event = calloc(1, sizeof(*event));
	if (event) {
		event->magic = MAGIC_EVENT;
		event->flags = flags;
		event->context = context;
		event->stream = 0;
		event->pending = 0;
		event->recording++; /* marks of the block's former life do not match */
		event->at = 0;
		*out = event;
	}
	pthread_mutex_unlock(&cuda_lock);
	return event ? OK : E_MEMORY;
}

API CUresult cuEventDestroy_v2(CUevent event)
{
	ENTER(CONTEXT, 0);
	if (!valid(event))
		return E_HANDLE;
	pthread_mutex_lock(&cuda_lock);
	event->magic = 0;
	event->next = spare;
	spare = event;
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

static CUresult record(CUevent event, CUstream stream)
{
	uint64_t now = now_ns();
	struct mark *mark;

	if (!stream || !valid(event))
		return E_HANDLE;
	pthread_mutex_lock(&cuda_lock);
	stream_advance(stream, now);
	event->recording++;
	event->stream = stream;
	event->pending = 0;
	event->at = stream->tail > now ? stream->tail : now;
	if (stream->last && (mark = calloc(1, sizeof(*mark)))) {
		mark->event = event;
		mark->recording = event->recording;
		mark->offset = stream->last->then;
		mark->next = stream->last->marks;
		stream->last->marks = mark;
		event->pending = 1;
	}
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

static int over(void *arg, uint64_t now, uint64_t *finish)
{
	CUevent event = arg;

	(void)now;
	if (event->magic != MAGIC_EVENT)
		return 1;
	if (event->pending && event->stream && event->stream->magic == MAGIC_STREAM)
		stream_advance(event->stream, now);
	if (event->pending)
		return 0;
	*finish = event->at;
	return 1;
}

static CUresult wait_for(CUstream stream, CUevent event)
{
	struct waiting *waiting;

	if (!stream || !valid(event))
		return E_HANDLE;
	pthread_mutex_lock(&cuda_lock);
	if (event->pending && event->stream != stream && (waiting = calloc(1, sizeof(*waiting)))) {
		waiting->done = over;
		waiting->arg = event;
		stream_wait(stream, waiting);
	} else if (!stream->last && event->at > stream->tail) {
		stream->tail = event->at;
	}
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

#define ON_STREAM(suffix, per_thread) \
API CUresult cuEventRecord##suffix(CUevent event, CUstream stream) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	return record(event, stream_of(stream, per_thread, context)); \
} \
API CUresult cuEventRecordWithFlags##suffix(CUevent event, CUstream stream, unsigned flags) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	return flags > 1 ? E_VALUE : record(event, stream_of(stream, per_thread, context)); \
} \
API CUresult cuStreamWaitEvent##suffix(CUstream stream, CUevent event, unsigned flags) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	return flags > 1 ? E_VALUE : wait_for(stream_of(stream, per_thread, context), event); \
}
ON_STREAM(, 0)
ON_STREAM(_ptsz, 1)

static int look(CUevent event, uint64_t now, uint64_t *at)
{
	int pending;

	pthread_mutex_lock(&cuda_lock);
	if (event->pending && event->stream && event->stream->magic == MAGIC_STREAM)
		stream_advance(event->stream, now);
	pending = event->pending;
	*at = event->at;
	pthread_mutex_unlock(&cuda_lock);
	return pending;
}

API CUresult cuEventQuery(CUevent event)
{
	uint64_t now = now_ns(), at;

	ENTER(CONTEXT, 0);
	if (!valid(event))
		return E_HANDLE;
	return look(event, now, &at) || at > now ? E_NOTREADY : OK;
}

API CUresult cuEventSynchronize(CUevent event)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	if (!valid(event))
		return E_HANDLE;
	for (;;) {
		uint64_t now = now_ns(), at;
		int pending = look(event, now, &at);

		if (pending)
			at = now + 100000;
		if (at > now)
			sleep_until(at);
		if (sticky_error())
			return (CUresult)sticky_error();
		if (!context->alive)
			return E_DESTROYED;
		if (!pending)
			return OK;
	}
}

static CUresult elapsed(float *milliseconds, CUevent from, CUevent to)
{
	uint64_t now = now_ns(), began, ended;

	if (!valid(from) || !valid(to) || !milliseconds)
		return milliseconds ? E_HANDLE : E_VALUE;
	if (!from->stream || !to->stream || ((from->flags | to->flags) & 2))
		return E_HANDLE; /* never recorded, or made without timing */
	if (look(from, now, &began) || look(to, now, &ended) || began > now || ended > now)
		return E_NOTREADY;
	*milliseconds = (float)((double)(int64_t)(ended - began) / 1e6);
	return OK;
}

API CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to)
{
	ENTER(CONTEXT, 0);
	return elapsed(milliseconds, from, to);
}

API CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent from, CUevent to)
{
	ENTER(CONTEXT, 0);
	return elapsed(milliseconds, from, to);
}

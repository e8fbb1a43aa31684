/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on streams; what a stream is stands in cuda_timeline.c. */
#include "cuda_local.h"

#include <stdlib.h>
#include <string.h>

static CUstream spare;

static CUresult create(CUcontext context, CUstream *out, unsigned flags, int priority)
{
	CUstream stream;

	if (!out || flags > 1)
		return E_VALUE;
	pthread_mutex_lock(&cuda_lock);
	stream = spare;
	if (stream)
		spare = stream->next;
	else
		stream = calloc(1, sizeof(*stream));
	if (stream) {
		memset(stream, 0, sizeof(*stream));
		stream->magic = MAGIC_STREAM;
		stream->flags = flags;
		stream->priority = priority;
		stream->context = context;
		stream->next = context->streams;
		context->streams = stream;
		*out = stream;
	}
	pthread_mutex_unlock(&cuda_lock);
	return stream ? OK : E_MEMORY;
}

API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	return create(context, stream, flags, 0);
}

API CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	CUcontext context;

	ENTER(CONTEXT, &context);
	return create(context, stream, flags, priority);
}

/* Work that is still on it is not called back: its time was accounted when it was put there. */
API CUresult cuStreamDestroy_v2(CUstream stream)
{
	CUstream *at;

	ENTER(CONTEXT, 0);
	if (!stream || (uintptr_t)stream <= 2 || stream->magic != MAGIC_STREAM)
		return E_HANDLE;
	pthread_mutex_lock(&cuda_lock);
	for (at = &stream->context->streams; *at && *at != stream; at = &(*at)->next)
		;
	if (*at)
		*at = stream->next;
	stream_drop(stream);
	stream->magic = 0;
	stream->next = spare;
	spare = stream;
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

static CUresult query(CUstream stream)
{
	uint64_t now = now_ns();
	int ready;

	pthread_mutex_lock(&cuda_lock);
	stream_advance(stream, now);
	ready = !stream->first && stream->tail <= now;
	pthread_mutex_unlock(&cuda_lock);
	return ready ? OK : E_NOTREADY;
}

#define ON_STREAM(suffix, per_thread) \
API CUresult cuStreamQuery##suffix(CUstream stream) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	stream = stream_of(stream, per_thread, context); \
	return stream ? query(stream) : E_HANDLE; \
} \
API CUresult cuStreamSynchronize##suffix(CUstream stream) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	stream = stream_of(stream, per_thread, context); \
	return stream ? (CUresult)stream_finish(stream) : E_HANDLE; \
} \
API CUresult cuStreamGetCtx##suffix(CUstream stream, CUcontext *out) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	stream = stream_of(stream, per_thread, context); \
	if (!stream || !out) \
		return stream ? E_VALUE : E_HANDLE; \
	*out = stream->context; \
	return OK; \
} \
API CUresult cuStreamGetFlags##suffix(CUstream stream, unsigned *flags) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	stream = stream_of(stream, per_thread, context); \
	if (!stream || !flags) \
		return stream ? E_VALUE : E_HANDLE; \
	*flags = stream->flags; \
	return OK; \
} \
API CUresult cuStreamGetPriority##suffix(CUstream stream, int *priority) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	stream = stream_of(stream, per_thread, context); \
	if (!stream || !priority) \
		return stream ? E_VALUE : E_HANDLE; \
	*priority = stream->priority; \
	return OK; \
} \
API CUresult cuLaunchHostFunc##suffix(CUstream stream, CUhostFn call, void *arg) \
{ \
	CUcontext context; \
	int code; \
\
	ENTER(CONTEXT, &context); \
	stream = stream_of(stream, per_thread, context); \
	if (!stream || !call) \
		return stream ? E_VALUE : E_HANDLE; \
	code = stream_finish(stream); /* no thread of ours: the caller waits and runs it */ \
	if (!code) \
		call(arg); \
	return (CUresult)code; \
}
ON_STREAM(, 0)
ON_STREAM(_ptsz, 1)

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives on streams: what libnccl puts there, and what other processes see of it. A kernel that
 * waits for other ranks polls, and so the device is busy, from its start until the collective is over.
 */
#include "cuda_local.h"

#include <stdlib.h>

static uint64_t start_of(CUstream stream)
{
	return stream->first->put > stream->tail ? stream->first->put : stream->tail;
}

void spin_show(CUstream stream)
{
	struct share *share = share_of(stream->context->device);
	struct waiting *first = stream->first;
	int i;

	if (first && !first->what)
		first = 0; /* an event of another stream: nothing runs */
	for (i = 0; first && share && !stream->spin && i < SPINS; i++)
		if (!share->spins[i].since)
			stream->spin = &share->spins[i];
	if (!stream->spin)
		return;
	if (first)
		__atomic_store_n(&stream->spin->what, stream->last->what ? stream->last->what : first->what,
				 __ATOMIC_RELAXED);
	__atomic_store_n(&stream->spin->since, first ? start_of(stream) : 0, __ATOMIC_RELEASE);
	if (!first)
		stream->spin = 0;
}

void spin_credit(CUstream stream, uint64_t until)
{
	struct share *share = share_of(stream->context->device);

	if (share && stream->first->what && until > start_of(stream))
		busy_add(share, start_of(stream), until);
}

static int table_wait(void *handle, uint64_t what, int (*done)(void *, uint64_t, uint64_t *),
		      void (*release)(void *), void *arg)
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
	waiting->what = what;
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

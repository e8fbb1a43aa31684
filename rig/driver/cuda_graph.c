/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs are sums: so many kernels, so much time, perhaps a trap. One launch replays them all. */
#include "cuda_local.h"

#include <stdlib.h>

API CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
	ENTER(INITIALISED, 0);
	if (!graph || flags)
		return E_VALUE;
	*graph = calloc(1, sizeof(**graph));
	return *graph ? OK : E_MEMORY;
}

static CUresult add(CUgraph graph, CUgraphNode *node, CUfunction function)
{
	CUcontext context = current();
	int trap = 0;

	if (!graph || !node || !function)
		return E_VALUE;
	graph->cost += function_cost(function, context ? context->device : ANY_DEVICE, &trap);
	graph->trap = trap ? trap : graph->trap;
	graph->kernels++;
	*node = (CUgraphNode)(uintptr_t)graph->kernels;
	return OK;
}

API CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
				  const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	ENTER(INITIALISED, 0);
	return params && (before || !count) ? add(graph, node, params->func) : E_VALUE;
}

API CUresult cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
				     const CUDA_KERNEL_NODE_PARAMS *params)
{
	ENTER(INITIALISED, 0);
	if (!params || (count && !before))
		return E_VALUE;
	return add(graph, node, params->func ? params->func : (CUfunction)params->kern);
}

static CUresult instantiate(CUgraphExec *out, CUgraph graph)
{
	struct CUgraph_st *copy;

	if (!out || !graph)
		return E_VALUE;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return E_MEMORY;
	*copy = *graph;
	*out = (CUgraphExec)copy;
	return OK;
}

API CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	ENTER(CONTEXT, 0);
	(void)flags;
	return instantiate(out, graph);
}

API CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log, size_t size)
{
	ENTER(CONTEXT, 0);
	(void)node;
	if (log && size)
		*log = 0;
	return instantiate(out, graph);
}

API CUresult cuGraphExecDestroy(CUgraphExec graph)
{
	ENTER(INITIALISED, 0);
	free(graph);
	return OK;
}

API CUresult cuGraphDestroy(CUgraph graph)
{
	ENTER(INITIALISED, 0);
	free(graph);
	return OK;
}

static CUresult replay(CUgraphExec exec, CUstream stream)
{
	struct CUgraph_st *graph = (struct CUgraph_st *)exec;

	if (!stream || !graph)
		return graph ? E_HANDLE : E_VALUE;
	pthread_mutex_lock(&cuda_lock);
	stream_work(stream, graph->cost);
	if (graph->trap)
		trap_at(graph->trap, stream->tail);
	pthread_mutex_unlock(&cuda_lock);
	return OK;
}

static CUresult begin(CUstream stream)
{
	if (!stream)
		return E_HANDLE;
	if (stream->capture)
		return E_CAPTURING;
	stream->capture = calloc(1, sizeof(*stream->capture));
	return stream->capture ? OK : E_MEMORY;
}

#define ON_STREAM(suffix, per_thread) \
API CUresult cuGraphLaunch##suffix(CUgraphExec graph, CUstream stream) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	return replay(graph, stream_of(stream, per_thread, context)); \
} \
API CUresult cuGraphUpload##suffix(CUgraphExec graph, CUstream stream) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	return graph && stream_of(stream, per_thread, context) ? OK : E_HANDLE; \
} \
API CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, CUstreamCaptureMode mode) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	return (int)mode > 2 ? E_VALUE : begin(stream_of(stream, per_thread, context)); \
} \
API CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph *graph) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	stream = stream_of(stream, per_thread, context); \
	if (!stream || !graph || !stream->capture) \
		return stream ? E_VALUE : E_HANDLE; \
	*graph = stream->capture; \
	stream->capture = 0; \
	return OK; \
} \
API CUresult cuStreamIsCapturing##suffix(CUstream stream, CUstreamCaptureStatus *status) \
{ \
	CUcontext context; \
\
	ENTER(CONTEXT, &context); \
	stream = stream_of(stream, per_thread, context); \
	if (!stream || !status) \
		return stream ? E_VALUE : E_HANDLE; \
	*status = stream->capture != 0; \
	return OK; \
}
ON_STREAM(, 0)
ON_STREAM(_ptsz, 1)

API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	static __thread CUstreamCaptureMode mine;
	CUstreamCaptureMode was = mine;

	ENTER(INITIALISED, 0);
	if (!mode || (int)*mode > 2)
		return E_VALUE;
	mine = *mode;
	*mode = was;
	return OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and graphs of the runtime: the driver's, under their other names. */
#include "cudart_local.h"

#define CALL(name, params, call) \
API cudaError_t name params \
{ \
	READY(); \
	return done(driver.call); \
}
CALL(cudaStreamCreate, (cudaStream_t *out), stream_create((void **)out, 0))
CALL(cudaStreamCreateWithFlags, (cudaStream_t *out, unsigned flags), stream_create((void **)out, flags))
CALL(cudaStreamDestroy, (cudaStream_t stream), stream_destroy(stream))
CALL(cudaStreamQuery, (cudaStream_t stream), stream_query(stream))
CALL(cudaStreamSynchronize, (cudaStream_t stream), stream_synchronize(stream))
CALL(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
     stream_wait(stream, event, flags))
CALL(cudaEventCreate, (cudaEvent_t *out), event_create((void **)out, 0))
CALL(cudaEventCreateWithFlags, (cudaEvent_t *out, unsigned flags), event_create((void **)out, flags))
CALL(cudaEventDestroy, (cudaEvent_t event), event_destroy(event))
CALL(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event_record(event, stream))
CALL(cudaEventQuery, (cudaEvent_t event), event_query(event))
CALL(cudaEventSynchronize, (cudaEvent_t event), event_synchronize(event))
CALL(cudaEventElapsedTime, (float *ms, cudaEvent_t from, cudaEvent_t to), event_elapsed(ms, from, to))
CALL(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
     capture_begin(stream, (int)mode))
CALL(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), capture_end(stream, (void **)graph))
CALL(cudaGraphInstantiate, (cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags),
     instantiate((void **)out, graph, flags))
CALL(cudaGraphLaunch, (cudaGraphExec_t graph, cudaStream_t stream), graph_launch(graph, stream))

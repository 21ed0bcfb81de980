/* SPDX-License-Identifier: MIT */
/* Streams, events, graphs. The runtime's handles are the driver's, so each row hands its call on;
 * stream 0 means the legacy or the thread's own stream by the table that the row goes through. */

#include "cudart.h"

RT_CALL(cudaStreamCreate, (cudaStream_t * s), d->cuStreamCreate(s, CU_STREAM_DEFAULT))
RT_CALL(cudaStreamCreateWithFlags, (cudaStream_t * s, unsigned flags), d->cuStreamCreate(s, flags))
RT_CALL(cudaStreamCreateWithPriority, (cudaStream_t * s, unsigned flags, int priority),
        d->cuStreamCreateWithPriority(s, flags, priority))
RT_CALL(cudaStreamDestroy, (cudaStream_t s), d->cuStreamDestroy(s))

RT_TWINS(cudaStreamSynchronize, _ptsz, (cudaStream_t s), d->cuStreamSynchronize(s))
RT_TWINS(cudaStreamQuery, _ptsz, (cudaStream_t s), d->cuStreamQuery(s))
RT_TWINS(cudaStreamWaitEvent, _ptsz, (cudaStream_t s, cudaEvent_t e, unsigned flags),
         d->cuStreamWaitEvent(s, e, flags))
RT_TWINS(cudaStreamGetFlags, _ptsz, (cudaStream_t s, unsigned *flags),
         d->cuStreamGetFlags(s, flags))
RT_TWINS(cudaStreamGetPriority, _ptsz, (cudaStream_t s, int *priority),
         d->cuStreamGetPriority(s, priority))
RT_TWINS(cudaStreamGetId, _ptsz, (cudaStream_t s, unsigned long long *id), d->cuStreamGetId(s, id))

/* Both callback types take (stream, int status, user data), or the user data alone. */
RT_TWINS(cudaStreamAddCallback, _ptsz,
         (cudaStream_t s, cudaStreamCallback_t fn, void *user, unsigned flags),
         d->cuStreamAddCallback(s, (CUstreamCallback)(void (*)(void))fn, user, flags))
RT_TWINS(cudaLaunchHostFunc, _ptsz, (cudaStream_t s, cudaHostFn_t fn, void *user),
         d->cuLaunchHostFunc(s, fn, user))

RT_TWINS(cudaStreamBeginCapture, _ptsz, (cudaStream_t s, enum cudaStreamCaptureMode mode),
         d->cuStreamBeginCapture(s, (CUstreamCaptureMode)mode))
RT_TWINS(cudaStreamEndCapture, _ptsz, (cudaStream_t s, cudaGraph_t *g), d->cuStreamEndCapture(s, g))
RT_TWINS(cudaStreamIsCapturing, _ptsz, (cudaStream_t s, enum cudaStreamCaptureStatus *status),
         d->cuStreamIsCapturing(s, (CUstreamCaptureStatus *)status))
RT_TWINS(cudaStreamGetCaptureInfo, _ptsz,
         (cudaStream_t s, enum cudaStreamCaptureStatus *status, unsigned long long *id,
          cudaGraph_t *g, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
          size_t *n),
         d->cuStreamGetCaptureInfo(s, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, g, nodes,
                                   (const CUgraphEdgeData **)edges, n))
RT_CALL(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
        d->cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))

RT_CALL(cudaEventCreate, (cudaEvent_t * e), d->cuEventCreate(e, CU_EVENT_DEFAULT))
RT_CALL(cudaEventCreateWithFlags, (cudaEvent_t * e, unsigned flags), d->cuEventCreate(e, flags))
RT_CALL(cudaEventQuery, (cudaEvent_t e), d->cuEventQuery(e))
RT_CALL(cudaEventSynchronize, (cudaEvent_t e), d->cuEventSynchronize(e))
RT_CALL(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end),
        d->cuEventElapsedTime(ms, start, end))
RT_CALL(cudaEventDestroy, (cudaEvent_t e), d->cuEventDestroy(e))
RT_TWINS(cudaEventRecord, _ptsz, (cudaEvent_t e, cudaStream_t s), d->cuEventRecord(e, s))
RT_TWINS(cudaEventRecordWithFlags, _ptsz, (cudaEvent_t e, cudaStream_t s, unsigned flags),
         d->cuEventRecordWithFlags(e, s, flags))

RT_CALL(cudaGraphInstantiate, (cudaGraphExec_t * x, cudaGraph_t g, unsigned long long flags),
        d->cuGraphInstantiateWithFlags(x, g, flags))
RT_CALL(cudaGraphInstantiateWithFlags,
        (cudaGraphExec_t * x, cudaGraph_t g, unsigned long long flags),
        d->cuGraphInstantiateWithFlags(x, g, flags))
RT_CALL(cudaGraphGetNodes, (cudaGraph_t g, cudaGraphNode_t *nodes, size_t *count),
        d->cuGraphGetNodes(g, nodes, count))
RT_CALL(cudaGraphDestroy, (cudaGraph_t g), d->cuGraphDestroy(g))
RT_CALL(cudaGraphExecDestroy, (cudaGraphExec_t x), d->cuGraphExecDestroy(x))
RT_TWINS(cudaGraphLaunch, _ptsz, (cudaGraphExec_t x, cudaStream_t s), d->cuGraphLaunch(x, s))

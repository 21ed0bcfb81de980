/* SPDX-License-Identifier: MIT */
/* Captures begin, end, and end with their stream. A begin is noted before the driver's: a copy in
 * another thread must not slip in between. */
#include "intercept/hooks.h"
#include "shim/capture.h"
#include "shim/turn.h"

static void announce(CUstream stream)
{
    es_note(ES_SEEN_CAPTURE);
    es_turn_begin(stream);
    es_capture_begin(stream);
}

static CUresult begun(CUstream stream, CUresult r)
{
    es_turn_end();
    if (r != CUDA_SUCCESS)
        es_capture_end(stream);
    return r;
}

/* A failed end also ends the capture, but for this one: it is another thread's. */
static CUresult ended(CUstream stream, CUresult r)
{
    if (r != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        es_capture_end(stream);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuStreamBeginCapture(CUstream s)
{
    announce(ES_LEGACY(s));
    return begun(ES_LEGACY(s), ES_REAL(cuStreamBeginCapture)(s));
}

ES_EXPORT CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream s)
{
    announce(ES_PER_THREAD(s));
    return begun(ES_PER_THREAD(s), ES_REAL(cuStreamBeginCapture_ptsz)(s));
}

ES_EXPORT CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode)
{
    announce(ES_LEGACY(s));
    return begun(ES_LEGACY(s), ES_REAL(cuStreamBeginCapture_v2)(s, mode));
}

ES_EXPORT CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream s, CUstreamCaptureMode mode)
{
    announce(ES_PER_THREAD(s));
    return begun(ES_PER_THREAD(s), ES_REAL(cuStreamBeginCapture_v2_ptsz)(s, mode));
}

ES_EXPORT CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream s, CUgraph graph,
                                                       const CUgraphNode *nodes,
                                                       const CUgraphEdgeData *edges, size_t n,
                                                       CUstreamCaptureMode mode)
{
    announce(ES_LEGACY(s));
    return begun(ES_LEGACY(s),
                 ES_REAL(cuStreamBeginCaptureToGraph)(s, graph, nodes, edges, n, mode));
}

ES_EXPORT CUresult CUDAAPI cuStreamBeginCaptureToGraph_ptsz(CUstream s, CUgraph graph,
                                                            const CUgraphNode *nodes,
                                                            const CUgraphEdgeData *edges, size_t n,
                                                            CUstreamCaptureMode mode)
{
    announce(ES_PER_THREAD(s));
    return begun(ES_PER_THREAD(s),
                 ES_REAL(cuStreamBeginCaptureToGraph_ptsz)(s, graph, nodes, edges, n, mode));
}

ES_EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream s, CUgraph *graph)
{
    es_note(ES_SEEN_CAPTURE);
    return ended(ES_LEGACY(s), ES_REAL(cuStreamEndCapture)(s, graph));
}

ES_EXPORT CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream s, CUgraph *graph)
{
    es_note(ES_SEEN_CAPTURE);
    return ended(ES_PER_THREAD(s), ES_REAL(cuStreamEndCapture_ptsz)(s, graph));
}

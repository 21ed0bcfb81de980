/* SPDX-License-Identifier: MIT */
/* Stream capture and graphs: a captured operation becomes a node, with the stream's tail as its
 * dependency; an event recorded inside carries the node to other streams, which then capture too.
 * What a capture forbids is forbidden here, and invalidates it: the CUDA Programming Guide,
 * "Prohibited and Unhandled Operations". */
#include "tests/simgpu/sim.h"

#include <stdlib.h>

struct node {
    struct sim_work work;
    unsigned deps[16], dep_count; /* node numbers */
};

struct CUgraph_st {
    struct node *nodes;
    size_t count;
};

struct CUgraphExec_st {
    struct CUgraph_st graph;
};

struct sim_capture {
    struct CUgraph_st *graph;
    struct CUstream_st *origin;
    CUstreamCaptureMode mode;
    unsigned long thread;
    bool invalid;
    struct sim_capture *next;
};

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult sim_unsafe(void)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    for (struct sim_capture *c = sim.captures; c; c = c->next) {
        bool own = c->thread == sim_thread() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool global = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                      thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;

        if (own || global) {
            sim_invalidate(c);
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return CUDA_SUCCESS;
}

/* The legacy stream may not be used while a blocking stream captures. */
CUresult sim_implicit(struct CUctx_st *context)
{
    for (struct CUstream_st *s = context->streams; s; s = s->next) {
        if (s->capture && !(s->flags & CU_STREAM_NON_BLOCKING)) {
            sim_invalidate(s->capture);
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return CUDA_SUCCESS;
}

void sim_invalidate(struct sim_capture *c)
{
    c->invalid = true;
}

CUresult sim_capture_add(struct CUstream_st *s, const struct sim_work *work)
{
    struct sim_capture *c = s->capture;
    struct node *n;

    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (work->kind == SIM_NOTHING)
        return CUDA_SUCCESS;
    c->graph->nodes = realloc(c->graph->nodes, (c->graph->count + 1) * sizeof *n);
    n = &c->graph->nodes[c->graph->count++];
    *n = (struct node){.work = *work};
    if (s->capture_tail)
        n->deps[n->dep_count++] = s->capture_tail - 1;
    for (unsigned i = 0; i < s->capture_extra_count && n->dep_count < 16; i++)
        n->deps[n->dep_count++] = s->capture_extra[i];
    s->capture_extra_count = 0;
    s->capture_tail = (unsigned)c->graph->count;
    return CUDA_SUCCESS;
}

void sim_capture_record(struct CUstream_st *s, struct CUevent_st *e)
{
    e->capture = s->capture;
    e->capture_node = s->capture_tail;
}

CUresult sim_capture_wait(struct CUstream_st *s, struct CUevent_st *e)
{
    if (!e->capture) { /* an event from outside the capture */
        sim_invalidate(s->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (s->capture && s->capture != e->capture)
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    s->capture = e->capture;
    if (e->capture_node && s->capture_extra_count < 8)
        s->capture_extra[s->capture_extra_count++] = e->capture_node - 1;
    return CUDA_SUCCESS;
}

static void leave_capture(struct sim_capture *c)
{
    for (struct CUstream_st *s = c->origin->context->streams; s; s = s->next) {
        if (s->capture == c) {
            s->capture = NULL;
            s->capture_tail = s->capture_extra_count = 0;
        }
    }
    for (struct sim_capture **at = &sim.captures; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
}

void sim_capture_forget(struct CUstream_st *s)
{
    if (!s->capture)
        return;
    sim_invalidate(s->capture);
    if (s->capture->origin == s)
        leave_capture(s->capture);
    s->capture = NULL;
}

static CUresult begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode)
{
    struct sim_capture *c;
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r)
        return r;
    if (s == s->context->legacy)
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (s->capture)
        return CUDA_ERROR_ILLEGAL_STATE;
    c = calloc(1, sizeof *c);
    c->graph = calloc(1, sizeof *c->graph);
    c->origin = s;
    c->mode = mode;
    c->thread = sim_thread();
    c->next = sim.captures;
    sim.captures = c;
    s->capture = c;
    return CUDA_SUCCESS;
}

static CUresult end(CUstream handle, bool per_thread, CUgraph *graph)
{
    struct sim_capture *c;
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r)
        return r;
    c = s->capture;
    if (!c)
        return CUDA_ERROR_ILLEGAL_STATE;
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != sim_thread())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    leave_capture(c);
    *graph = c->invalid ? NULL : c->graph;
    r = c->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    free(c);
    return r;
}

static CUresult is_capturing(CUstream handle, bool per_thread, CUstreamCaptureStatus *status)
{
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r)
        return r;
    if (s == s->context->legacy)
        for (struct CUstream_st *o = s->context->streams; o; o = o->next)
            if (o->capture && !(o->flags & CU_STREAM_NON_BLOCKING))
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; /* asking is no use: the capture lives on
                                                            */
    *status = !s->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
              : s->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

#define BOTH(suffix, per_thread)                                                                   \
    EXPORT CUresult cuStreamBeginCapture_v2##suffix(CUstream s, CUstreamCaptureMode mode)          \
    {                                                                                              \
        CUresult r = sim_enter("cuStreamBeginCapture_v2" #suffix);                                 \
        return r ? r : sim_leave(begin(s, per_thread, mode));                                      \
    }                                                                                              \
    EXPORT CUresult cuStreamEndCapture##suffix(CUstream s, CUgraph *graph)                         \
    {                                                                                              \
        CUresult r = sim_enter("cuStreamEndCapture" #suffix);                                      \
        return r ? r : sim_leave(end(s, per_thread, graph));                                       \
    }                                                                                              \
    EXPORT CUresult cuStreamIsCapturing##suffix(CUstream s, CUstreamCaptureStatus *status)         \
    {                                                                                              \
        CUresult r = sim_enter("cuStreamIsCapturing" #suffix);                                     \
        return r ? r : sim_leave(is_capturing(s, per_thread, status));                             \
    }
BOTH(, false)
BOTH(_ptsz, true)

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode old;
    CUresult r = sim_enter("cuThreadExchangeStreamCaptureMode");

    if (r)
        return r;
    old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    CUresult r = sim_enter("cuGraphGetNodes");

    if (r)
        return r;
    for (size_t i = 0; nodes && i < *count && i < graph->count; i++)
        nodes[i] = (CUgraphNode)&graph->nodes[i];
    *count = graph->count;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                            unsigned long long flags)
{
    CUresult r = sim_enter("cuGraphInstantiateWithFlags");

    if (r)
        return r;
    *exec = calloc(1, sizeof **exec);
    (*exec)->graph.count = graph->count;
    (*exec)->graph.nodes = malloc(graph->count * sizeof *graph->nodes + 1);
    for (size_t i = 0; i < graph->count; i++)
        (*exec)->graph.nodes[i] = graph->nodes[i];
    return sim_leave(CUDA_SUCCESS);
}

/* In the order of capture: one order that the dependencies allow. */
static CUresult launch(CUgraphExec exec, CUstream handle, bool per_thread)
{
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    for (size_t i = 0; r == CUDA_SUCCESS && i < exec->graph.count; i++)
        r = sim_submit(s, &exec->graph.nodes[i].work, NULL);
    return r;
}

EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream s)
{
    CUresult r = sim_enter("cuGraphLaunch");

    return r ? r : sim_leave(launch(exec, s, false));
}

EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream s)
{
    CUresult r = sim_enter("cuGraphLaunch_ptsz");

    return r ? r : sim_leave(launch(exec, s, true));
}

EXPORT CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult r = sim_enter("cuGraphDestroy");

    if (r)
        return r;
    free(graph->nodes);
    free(graph);
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    CUresult r = sim_enter("cuGraphExecDestroy");

    if (r)
        return r;
    free(exec->graph.nodes);
    free(exec);
    return sim_leave(CUDA_SUCCESS);
}

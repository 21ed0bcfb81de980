/* SPDX-License-Identifier: MIT */
/* Stream capture: a submitted operation becomes a node, after the nodes of the stream's tail; an
 * event recorded inside carries the tail to other streams, which then capture too. What a capture
 * forbids is forbidden here, and invalidates it: the CUDA Programming Guide, "Prohibited and
 * Unhandled Operations". */
#include "tests/simgpu/sim.h"

#include <stdlib.h>

struct sim_capture {
    unsigned long long id;
    struct CUgraph_st *graph;
    struct CUstream_st *origin;
    CUstreamCaptureMode mode;
    unsigned long thread;
    bool invalid;
    CUgraphNode tail[16]; /* what cuStreamGetCaptureInfo points to */
    struct sim_capture *next;
};

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static struct sim_capture *capture_with(unsigned long long id)
{
    struct sim_capture *c = sim.captures;

    while (c && c->id != id)
        c = c->next;
    return c;
}

/* --- what it forbids --- */

CUresult sim_unsafe(void)
{
    CUresult r = CUDA_SUCCESS;

    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return r;
    for (struct sim_capture *c = sim.captures; c; c = c->next) {
        bool own = c->thread == sim_thread() && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
        bool global = c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                      thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;

        if (own || global) {
            c->invalid = true;
            r = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return r;
}

/* The legacy stream may not be used while a blocking stream captures. */
CUresult sim_implicit(struct CUctx_st *context)
{
    for (struct CUstream_st *s = context->streams; s; s = s->next) {
        if (s->capture && !(s->flags & CU_STREAM_NON_BLOCKING)) {
            s->capture->invalid = true;
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return CUDA_SUCCESS;
}

/* Has it finished? A captured stream or event has no answer to that. */
CUresult sim_capture_asked(struct CUstream_st *s, struct CUevent_st *e)
{
    struct sim_capture *c = s ? s->capture : e->capture ? capture_with(e->capture) : NULL;

    if (c)
        c->invalid = true;
    if (s)
        return c ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
    return e->capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

/* --- what it takes in --- */

CUresult sim_capture_add(struct CUstream_st *s, const struct sim_work *work)
{
    struct sim_capture *c = s->capture;

    if (c->invalid)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (work->kind == SIM_NOTHING)
        return CUDA_SUCCESS;
    s->tail.number[0] = sim_add_node(c->graph, work, &s->tail)->number;
    s->tail.count = 1;
    return CUDA_SUCCESS;
}

void sim_capture_record(struct CUstream_st *s, struct CUevent_st *e)
{
    e->capture = s->capture->id;
    e->nodes = s->tail;
}

static bool merge(struct sim_nodes *into, const struct sim_nodes *from)
{
    for (unsigned i = 0; i < from->count; i++) {
        bool known = false;

        for (unsigned k = 0; k < into->count; k++)
            known |= into->number[k] == from->number[i];
        if (!known && into->count == sizeof into->number / sizeof *into->number)
            return false;
        if (!known)
            into->number[into->count++] = from->number[i];
    }
    return true;
}

CUresult sim_capture_wait(struct CUstream_st *s, struct CUevent_st *e)
{
    struct sim_capture *c = e->capture ? capture_with(e->capture) : NULL;

    if (!e->recorded)
        return CUDA_SUCCESS;
    if (!c) { /* from outside, or from a capture that is over */
        if (s->capture)
            s->capture->invalid = true;
        return s->capture ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : CUDA_ERROR_CAPTURED_EVENT;
    }
    if (s->capture && s->capture != c) {
        s->capture->invalid = c->invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    if (s == s->context->legacy)
        return sim_implicit(s->context);
    if (s->context != c->origin->context)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!s->capture)
        s->tail.count = 0;
    s->capture = c;
    return merge(&s->tail, &e->nodes) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

/* --- begin and end --- */

static CUresult begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode)
{
    static unsigned long long newest;
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
    c->id = ++newest;
    c->graph = sim_new_graph();
    c->origin = s;
    c->mode = mode;
    c->thread = sim_thread();
    c->next = sim.captures;
    sim.captures = c;
    s->capture = c;
    s->tail.count = 0;
    return CUDA_SUCCESS;
}

static void mark(const struct CUgraph_st *g, bool *reached, const struct sim_nodes *from)
{
    for (unsigned i = 0; i < from->count; i++) {
        unsigned n = from->number[i];

        if (!reached[n]) {
            reached[n] = true;
            mark(g, reached, &g->nodes[n]->deps);
        }
    }
}

/* Did every stream that was drawn in come back to the one where it began? */
static bool is_joined(const struct sim_capture *c)
{
    bool *reached = calloc(c->graph->count + 1, sizeof *reached), joined = true;

    mark(c->graph, reached, &c->origin->tail);
    for (struct CUstream_st *s = c->origin->context->streams; s; s = s->next)
        for (unsigned i = 0; s->capture == c && i < s->tail.count; i++)
            joined &= reached[s->tail.number[i]];
    free(reached);
    return joined;
}

/* Its streams go back to work. The graph is the caller's. */
static void leave(struct sim_capture *c)
{
    for (struct CUstream_st *s = c->origin->context->streams; s; s = s->next)
        if (s->capture == c)
            s->capture = NULL;
    c->origin->capture = NULL;
    for (struct sim_capture **at = &sim.captures; *at; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    free(c);
}

/* The stream is being destroyed. */
void sim_capture_forget(struct CUstream_st *s)
{
    struct sim_capture *c = s->capture;

    if (!c)
        return;
    c->invalid = true;
    s->capture = NULL;
    if (c->origin == s) {
        sim_free_graph(c->graph);
        leave(c);
    }
}

static CUresult end(CUstream handle, bool per_thread, CUgraph *graph)
{
    struct sim_capture *c;
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r)
        return r;
    c = s->capture;
    if (!c || !graph)
        return c ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_ILLEGAL_STATE;
    if (c->origin != s)
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != sim_thread())
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    r = c->invalid      ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        : !is_joined(c) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                        : CUDA_SUCCESS;
    *graph = r ? NULL : c->graph;
    if (r)
        sim_free_graph(c->graph);
    leave(c);
    return r;
}

/* --- questions --- */

static CUresult status(CUstream handle, bool per_thread, struct CUstream_st **s,
                       CUstreamCaptureStatus *out)
{
    CUresult r = sim_stream(handle, per_thread, s);

    if (r)
        return r;
    if (*s == (*s)->context->legacy) /* asking is no use of it: the capture lives on */
        for (struct CUstream_st *o = (*s)->context->streams; o; o = o->next)
            if (o->capture && !(o->flags & CU_STREAM_NON_BLOCKING))
                return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    *out = !(*s)->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
           : (*s)->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                    : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

static CUresult is_capturing(CUstream handle, bool per_thread, CUstreamCaptureStatus *out)
{
    struct CUstream_st *s;

    return status(handle, per_thread, &s, out);
}

/* Each of the three generations asks for a little more; what is not asked for is NULL. */
static CUresult info(CUstream handle, bool per_thread, CUstreamCaptureStatus *out, cuuint64_t *id,
                     CUgraph *graph, const CUgraphNode **tail, const CUgraphEdgeData **edges,
                     size_t *count)
{
    struct CUstream_st *s;
    CUresult r = status(handle, per_thread, &s, out);
    struct sim_capture *c;

    if (r || *out != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return r;
    c = s->capture;
    for (unsigned i = 0; i < s->tail.count; i++)
        c->tail[i] = c->graph->nodes[s->tail.number[i]];
    if (id)
        *id = c->id;
    if (graph)
        *graph = c->graph;
    if (tail)
        *tail = c->tail;
    if (edges)
        *edges = NULL;
    if (count)
        *count = s->tail.count;
    return CUDA_SUCCESS;
}

#define BOTH(suffix, per_thread)                                                                   \
    EXPORT CUresult cuStreamBeginCapture##suffix(CUstream s)                                       \
    {                                                                                              \
        CUresult r = sim_enter("cuStreamBeginCapture" #suffix);                                    \
        return r ? r : sim_leave(begin(s, per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL));             \
    }                                                                                              \
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
    EXPORT CUresult cuStreamIsCapturing##suffix(CUstream s, CUstreamCaptureStatus *out)            \
    {                                                                                              \
        CUresult r = sim_enter("cuStreamIsCapturing" #suffix);                                     \
        return r ? r : sim_leave(is_capturing(s, per_thread, out));                                \
    }                                                                                              \
    EXPORT CUresult cuStreamGetCaptureInfo##suffix(CUstream s, CUstreamCaptureStatus *out,         \
                                                   cuuint64_t *id)                                 \
    {                                                                                              \
        CUresult r = sim_enter("cuStreamGetCaptureInfo" #suffix);                                  \
        return r ? r : sim_leave(info(s, per_thread, out, id, NULL, NULL, NULL, NULL));            \
    }                                                                                              \
    EXPORT CUresult cuStreamGetCaptureInfo_v2##suffix(CUstream s, CUstreamCaptureStatus *out,      \
                                                      cuuint64_t *id, CUgraph *graph,              \
                                                      const CUgraphNode **tail, size_t *count)     \
    {                                                                                              \
        CUresult r = sim_enter("cuStreamGetCaptureInfo_v2" #suffix);                               \
        return r ? r : sim_leave(info(s, per_thread, out, id, graph, tail, NULL, count));          \
    }                                                                                              \
    EXPORT CUresult cuStreamGetCaptureInfo_v3##suffix(                                             \
        CUstream s, CUstreamCaptureStatus *out, cuuint64_t *id, CUgraph *graph,                    \
        const CUgraphNode **tail, const CUgraphEdgeData **edges, size_t *count)                    \
    {                                                                                              \
        CUresult r = sim_enter("cuStreamGetCaptureInfo_v3" #suffix);                               \
        return r ? r : sim_leave(info(s, per_thread, out, id, graph, tail, edges, count));         \
    }
BOTH(, false)
BOTH(_ptsz, true)

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    CUstreamCaptureMode old = thread_mode;
    CUresult r = sim_enter("cuThreadExchangeStreamCaptureMode");

    if (r)
        return r;
    if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    thread_mode = *mode;
    *mode = old;
    return sim_leave(CUDA_SUCCESS);
}

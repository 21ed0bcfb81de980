/* SPDX-License-Identifier: MIT */
/* Streams and events: what is ordered after what. An operation depends on the last one of its
 * stream, on the events its stream was told to wait for since, and by the legacy rule: legacy work
 * on every blocking stream's last, blocking streams' work on the legacy stream's last. */
#include "tests/simgpu/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct CUstream_st *spare; /* destroyed ones: the newest handle comes back first */
static unsigned long long next_id = 1;

struct CUstream_st *sim_new_stream(struct CUctx_st *context, unsigned flags, int priority)
{
    struct CUstream_st *s = spare;

    if (s)
        spare = s->next;
    else
        s = malloc(sizeof *s);
    *s = (struct CUstream_st){.context = context,
                              .id = next_id++,
                              .flags = flags,
                              .priority = priority,
                              .alive = true,
                              .next = context->streams};
    context->streams = s;
    return s;
}

static struct CUstream_st *per_thread_stream(struct CUctx_st *c)
{
    struct CUstream_st *s = c->streams;

    while (s && s->thread != sim_thread())
        s = s->next;
    if (!s) {
        s = sim_new_stream(c, CU_STREAM_DEFAULT, 0);
        s->thread = sim_thread();
    }
    return s;
}

CUresult sim_stream(CUstream handle, bool per_thread, struct CUstream_st **stream)
{
    struct CUctx_st *c = sim_current();

    if (handle == NULL)
        handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        *stream = handle;
        return handle->alive && handle->context->alive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!c->alive)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *stream = handle == CU_STREAM_LEGACY ? c->legacy : per_thread_stream(c);
    return CUDA_SUCCESS;
}

static bool is_blocking(const struct CUstream_st *s)
{
    return s != s->context->legacy && !(s->flags & CU_STREAM_NON_BLOCKING);
}

static void depend(struct sim_op *op, struct sim_op *on)
{
    if (!on || on->state == SIM_DONE)
        return;
    op->deps = realloc(op->deps, (op->dep_count + 1) * sizeof *op->deps);
    op->deps[op->dep_count++] = sim_ref(on);
}

CUresult sim_submit(struct CUstream_st *s, const struct sim_work *work, struct sim_op **out)
{
    struct sim_op *op;

    if (s == s->context->legacy) {
        CUresult r = sim_implicit(s->context);

        if (r)
            return r;
    }
    if (s->capture) {
        if (out)
            *out = NULL;
        return sim_capture_add(s, work);
    }
    op = calloc(1, sizeof *op);
    op->work = *work;
    op->context = s->context;
    depend(op, s->last);
    for (unsigned i = 0; i < s->extra_count; i++) {
        depend(op, s->extra[i]);
        sim_unref(s->extra[i]);
    }
    s->extra_count = 0;
    if (is_blocking(s))
        depend(op, s->context->legacy->last);
    if (s == s->context->legacy)
        for (struct CUstream_st *other = s->context->streams; other; other = other->next)
            if (is_blocking(other))
                depend(op, other->last);
    sim_unref(s->last);
    s->last = sim_ref(op);
    op->refs++; /* this function's, handed to *out */
    sim_add(op);
    if (out)
        *out = op;
    else
        sim_unref(op);
    return CUDA_SUCCESS;
}

/* Everything the stream holds now, as one operation. */
static struct sim_op *marker(struct CUstream_st *s)
{
    static const struct sim_work nothing = {.kind = SIM_NOTHING};
    struct sim_op *op = NULL;

    sim_submit(s, &nothing, &op);
    return op;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuStreamCreateWithPriority");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS)
        *stream = sim_new_stream(c, flags, priority);
    return sim_leave(r);
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuStreamCreate");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS && (!stream || flags > CU_STREAM_NON_BLOCKING))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *stream = sim_new_stream(c, flags, 0);
    return sim_leave(r);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream s)
{
    CUresult r = sim_enter("cuStreamDestroy_v2");

    if (r)
        return r;
    if (!s || s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD || !s->alive)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    sim_capture_forget(s);
    for (struct CUstream_st **at = &s->context->streams; *at; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    /* Its work goes on; legacy work submitted later still comes after it. */
    if (is_blocking(s) && s->last && s->last->state != SIM_DONE &&
        s->context->legacy->extra_count < 8)
        s->context->legacy->extra[s->context->legacy->extra_count++] = sim_ref(s->last);
    sim_unref(s->last);
    s->last = NULL;
    s->alive = false;
    s->next = spare;
    spare = s;
    return sim_leave(CUDA_SUCCESS);
}

/* One function a pair of symbols: the plain one and the one whose stream 0 is per thread. */
#define PAIR(name, params, body)                                                                   \
    EXPORT CUresult name params                                                                    \
    {                                                                                              \
        struct CUstream_st *s = NULL;                                                              \
        CUresult r = sim_enter(#name);                                                             \
        if (r)                                                                                     \
            return r;                                                                              \
        r = sim_stream(handle, false, &s);                                                         \
        return sim_leave(r ? r : body);                                                            \
    }                                                                                              \
    EXPORT CUresult name##_ptsz params                                                             \
    {                                                                                              \
        struct CUstream_st *s = NULL;                                                              \
        CUresult r = sim_enter(#name "_ptsz");                                                     \
        if (r)                                                                                     \
            return r;                                                                              \
        r = sim_stream(handle, true, &s);                                                          \
        return sim_leave(r ? r : body);                                                            \
    }

static CUresult give(unsigned long long *out, unsigned long long value)
{
    *out = value;
    return CUDA_SUCCESS;
}

static CUresult give_flags(unsigned *out, unsigned value)
{
    *out = value;
    return CUDA_SUCCESS;
}

static CUresult give_context(CUcontext *out, CUcontext value)
{
    *out = value;
    return CUDA_SUCCESS;
}

static CUresult synchronize(struct CUstream_st *s)
{
    struct sim_op *op;

    if (s->capture) {
        sim_invalidate(s->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    op = marker(s);
    if (!op)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    sim_wait_op(op, "cuStreamSynchronize");
    sim_unref(op);
    return CUDA_SUCCESS;
}

static CUresult query(struct CUstream_st *s)
{
    struct sim_op *last = s->last;

    if (s->capture) {
        sim_invalidate(s->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (last && last->state != SIM_DONE) {
        sim_progress(last);
        return CUDA_ERROR_NOT_READY;
    }
    return CUDA_SUCCESS;
}

static CUresult wait_event(struct CUstream_st *s, CUevent e)
{
    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;
    if (s->capture || e->capture)
        return sim_capture_wait(s, e);
    if (!e->recorded || !e->op || e->op->state == SIM_DONE)
        return CUDA_SUCCESS;
    if (s->extra_count == 8) { /* make room: one operation stands for them */
        struct sim_op *op = marker(s);

        sim_unref(op);
    }
    s->extra[s->extra_count++] = sim_ref(e->op);
    return CUDA_SUCCESS;
}

static CUresult record(struct CUstream_st *s, CUevent e)
{
    if (!e || (e->context != s->context))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_unref(e->op);
    e->op = NULL;
    e->capture = NULL;
    e->recorded = true;
    if (s->capture) {
        sim_capture_record(s, e);
        return CUDA_SUCCESS;
    }
    e->op = marker(s);
    return e->op ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static CUresult host_function(struct CUstream_st *s, CUhostFn function, void *data)
{
    struct sim_work w = {.kind = SIM_HOST_FUNCTION, .host = {function, data}};

    return sim_submit(s, &w, NULL);
}

static CUresult write_value(struct CUstream_st *s, CUdeviceptr at, uint32_t value, unsigned flags,
                            enum sim_kind kind)
{
    struct sim_work w = {.kind = kind};

    w.value.address = (volatile uint32_t *)(void *)sim_alias(at, 4);
    w.value.value = value;
    w.value.flags = flags;
    return w.value.address ? sim_submit(s, &w, NULL) : CUDA_ERROR_INVALID_VALUE;
}

PAIR(cuStreamGetId, (CUstream handle, unsigned long long *id), give(id, s->id))
PAIR(cuStreamGetFlags, (CUstream handle, unsigned *flags), give_flags(flags, s->flags))
PAIR(cuStreamGetCtx, (CUstream handle, CUcontext *context), give_context(context, s->context))
PAIR(cuStreamSynchronize, (CUstream handle), synchronize(s))
PAIR(cuStreamQuery, (CUstream handle), query(s))
PAIR(cuStreamWaitEvent, (CUstream handle, CUevent event, unsigned flags), wait_event(s, event))
PAIR(cuEventRecord, (CUevent event, CUstream handle), record(s, event))
PAIR(cuEventRecordWithFlags, (CUevent event, CUstream handle, unsigned flags), record(s, event))
static CUresult give_int(int *out, int value)
{
    *out = value;
    return CUDA_SUCCESS;
}

/* A callback is a host function that is told the stream's status. */
struct callback {
    CUstream stream;
    CUstreamCallback function;
    void *data;
};

static void run_callback(void *arg)
{
    struct callback c = *(struct callback *)arg;

    free(arg);
    c.function(c.stream, CUDA_SUCCESS, c.data);
}

static CUresult add_callback(struct CUstream_st *s, CUstream handle, CUstreamCallback function,
                             void *data)
{
    struct callback *c = malloc(sizeof *c);

    *c = (struct callback){handle, function, data};
    return host_function(s, run_callback, c);
}

PAIR(cuStreamGetPriority, (CUstream handle, int *priority), give_int(priority, s->priority))
PAIR(cuStreamAddCallback, (CUstream handle, CUstreamCallback function, void *data, unsigned flags),
     add_callback(s, handle, function, data))
PAIR(cuLaunchHostFunc, (CUstream handle, CUhostFn function, void *data),
     host_function(s, function, data))
#undef PAIR
#define VALUE(name, kind)                                                                          \
    EXPORT CUresult name(CUstream handle, CUdeviceptr at, cuuint32_t value, unsigned flags)        \
    {                                                                                              \
        struct CUstream_st *s = NULL;                                                              \
        CUresult r = sim_enter(#name);                                                             \
        if (r)                                                                                     \
            return r;                                                                              \
        r = sim_stream(handle, false, &s);                                                         \
        return sim_leave(r ? r : write_value(s, at, value, flags, kind));                          \
    }
VALUE(cuStreamWriteValue32_v2, SIM_WRITE)
VALUE(cuStreamWaitValue32_v2, SIM_WAIT)

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuEventCreate");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS) {
        *event = calloc(1, sizeof **event);
        (*event)->context = c;
        (*event)->flags = flags;
    }
    return sim_leave(r);
}

EXPORT CUresult cuEventDestroy_v2(CUevent e)
{
    CUresult r = sim_enter("cuEventDestroy_v2");

    if (r)
        return r;
    if (!e)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    sim_unref(e->op);
    free(e);
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuEventQuery(CUevent e)
{
    CUresult r = sim_enter("cuEventQuery");

    if (r)
        return r;
    if (!e)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    r = sim_unsafe();
    if (r == CUDA_SUCCESS && e->op && e->op->state != SIM_DONE) {
        sim_progress(e->op);
        r = CUDA_ERROR_NOT_READY;
    }
    return sim_leave(r);
}

EXPORT CUresult cuEventSynchronize(CUevent e)
{
    CUresult r = sim_enter("cuEventSynchronize");

    if (r)
        return r;
    if (!e)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    r = sim_unsafe();
    if (r == CUDA_SUCCESS && e->op)
        sim_wait_op(e->op, "cuEventSynchronize");
    return sim_leave(r);
}

static CUresult elapsed(float *ms, CUevent a, CUevent b)
{
    if (!ms || !a || !b || !a->recorded || !b->recorded ||
        (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
        return CUDA_ERROR_INVALID_HANDLE;
    if ((a->op && a->op->state != SIM_DONE) || (b->op && b->op->state != SIM_DONE)) {
        sim_progress(b->op);
        return CUDA_ERROR_NOT_READY;
    }
    *ms = a->op && b->op ? (float)((double)(int64_t)(b->op->done_ns - a->op->done_ns) / 1e6) : 0;
    return CUDA_SUCCESS;
}

#define ELAPSED(name)                                                                              \
    EXPORT CUresult name(float *ms, CUevent a, CUevent b)                                          \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r : sim_leave(elapsed(ms, a, b));                                               \
    }
ELAPSED(cuEventElapsedTime)
ELAPSED(cuEventElapsedTime_v2)

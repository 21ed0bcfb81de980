/* SPDX-License-Identifier: MIT */
/* Streams: what is ordered after what. An operation depends on the last one of its stream, on the
 * events its stream was told to wait for since, and by the legacy rule: legacy work on
 * every blocking stream's last, blocking streams' work on the legacy stream's last. (A wait that no
 * work follows is no work: whether the legacy rule covers it is not documented, so here it does
 * not.) A handle comes back after its stream was destroyed, an id never does. */
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
    struct CUctx_st *c;
    CUresult r;

    if (handle == NULL)
        handle = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
    if (handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
        *stream = handle;
        return handle->alive ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS)
        *stream = handle == CU_STREAM_LEGACY ? c->legacy : per_thread_stream(c);
    return r;
}

static bool is_legacy(const struct CUstream_st *s)
{
    return s == s->context->legacy;
}

static bool is_blocking(const struct CUstream_st *s)
{
    return !is_legacy(s) && !(s->flags & CU_STREAM_NON_BLOCKING);
}

/* --- what is ordered after what --- */

/* Everything that the stream's next operation comes after. */
static void depend_on_stream(struct sim_op *op, const struct CUstream_st *s)
{
    sim_depend(op, s->last);
    for (unsigned i = 0; i < s->extra_count; i++)
        sim_depend(op, s->extra[i]);
}

static void clear_extra(struct CUstream_st *s)
{
    for (unsigned i = 0; i < s->extra_count; i++)
        sim_unref(s->extra[i]);
    free(s->extra);
    s->extra = NULL;
    s->extra_count = 0;
}

static void add_extra(struct CUstream_st *s, struct sim_op *op)
{
    if (!op || op->state == SIM_DONE)
        return;
    s->extra = realloc(s->extra, (s->extra_count + 1) * sizeof *s->extra);
    s->extra[s->extra_count++] = sim_ref(op);
}

struct sim_op *sim_new_op(struct CUctx_st *context, const struct sim_work *work)
{
    struct sim_op *op = calloc(1, sizeof *op);

    op->work = *work;
    op->context = context;
    op->refs = 1;
    return op;
}

void sim_append(struct CUstream_st *s, struct sim_op *op)
{
    depend_on_stream(op, s);
    if (is_blocking(s))
        sim_depend(op, s->context->legacy->last);
    if (is_legacy(s))
        for (struct CUstream_st *other = s->context->streams; other; other = other->next)
            if (is_blocking(other))
                sim_depend(op, other->last);
    clear_extra(s);
    sim_unref(s->last);
    s->last = op;
    sim_add(op);
}

CUresult sim_submit(struct CUstream_st *s, const struct sim_work *work, struct sim_op **out)
{
    struct sim_op *op;
    CUresult r = is_legacy(s) ? sim_implicit(s->context) : CUDA_SUCCESS;

    if (out)
        *out = NULL;
    if (r)
        return r;
    if (s->capture)
        return sim_capture_add(s, work);
    op = sim_new_op(s->context, work);
    if (out)
        *out = sim_ref(op);
    sim_append(s, op);
    return CUDA_SUCCESS;
}

struct sim_op *sim_marker(struct CUstream_st *s)
{
    static const struct sim_work nothing = {.kind = SIM_NOTHING};
    struct sim_op *op;

    return sim_submit(s, &nothing, &op) ? NULL : op;
}

/* --- life --- */

static CUresult create(CUstream *stream, unsigned flags, int priority)
{
    struct CUctx_st *c;
    CUresult r = sim_need_context(&c);

    if (r == CUDA_SUCCESS && (!stream || flags > CU_STREAM_NON_BLOCKING))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        *stream = sim_new_stream(c, flags, priority);
    return r;
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
    CUresult r = sim_enter("cuStreamCreateWithPriority");

    return r ? r : sim_leave(create(stream, flags, priority));
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    CUresult r = sim_enter("cuStreamCreate");

    return r ? r : sim_leave(create(stream, flags, 0));
}

static void retire(struct CUstream_st *s)
{
    sim_capture_forget(s);
    clear_extra(s);
    sim_unref(s->last);
    s->last = NULL;
    s->alive = false;
    s->next = spare;
    spare = s;
}

EXPORT CUresult cuStreamDestroy_v2(CUstream s)
{
    CUresult r = sim_enter("cuStreamDestroy_v2");

    if (r)
        return r;
    if (!s || s == CU_STREAM_LEGACY || s == CU_STREAM_PER_THREAD || !s->alive)
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    for (struct CUstream_st **at = &s->context->streams; *at; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            break;
        }
    }
    /* Its work goes on; legacy work submitted later still comes after it. */
    if (is_blocking(s))
        add_extra(s->context->legacy, s->last);
    retire(s);
    return sim_leave(CUDA_SUCCESS);
}

/* With their context. */
void sim_end_streams(struct CUctx_st *context)
{
    struct CUstream_st *s;

    while ((s = context->streams)) {
        context->streams = s->next;
        retire(s);
    }
    context->legacy = NULL;
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

static CUresult give_int(int *out, int value)
{
    *out = value;
    return CUDA_SUCCESS;
}

static CUresult synchronize(struct CUstream_st *s)
{
    struct sim_op *op;
    CUresult r = sim_capture_asked(s, NULL);

    if (r)
        return r;
    op = sim_marker(s);
    if (!op)
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    sim_wait_op(op, "cuStreamSynchronize");
    sim_unref(op);
    return CUDA_SUCCESS;
}

/* The first thing found that the stream's next operation would wait for. */
static struct sim_op *pending(const struct CUstream_st *s)
{
    if (s->last && s->last->state != SIM_DONE)
        return s->last;
    for (unsigned i = 0; i < s->extra_count; i++)
        if (s->extra[i]->state != SIM_DONE)
            return s->extra[i];
    return NULL;
}

static CUresult query(struct CUstream_st *s)
{
    struct sim_op *op;
    CUresult r = sim_capture_asked(s, NULL);

    if (r)
        return r;
    op = pending(s);
    if (is_legacy(s))
        for (struct CUstream_st *other = s->context->streams; other && !op; other = other->next)
            op = is_blocking(other) && other->last && other->last->state != SIM_DONE ? other->last
                                                                                     : NULL;
    if (op)
        sim_progress(op);
    return op ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult wait_event(struct CUstream_st *s, CUevent e)
{
    CUresult r = e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;

    if (r)
        return r;
    if (e->recorded && e->stream_id != s->id)
        sim.stream_waits++;
    if (s->capture || e->capture)
        return sim_capture_wait(s, e);
    add_extra(s, e->op);
    return CUDA_SUCCESS;
}

static CUresult record(struct CUstream_st *s, CUevent e)
{
    if (!e || e->context != s->context)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_hold();
    sim_unref(e->op);
    e->op = NULL;
    e->capture = 0;
    e->recorded = true;
    e->stream_id = s->id;
    if (s->capture) {
        sim_capture_record(s, e);
        return CUDA_SUCCESS;
    }
    e->op = sim_marker(s);
    return e->op ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

static CUresult host_function(struct CUstream_st *s, CUhostFn function, void *data)
{
    struct sim_work w = {.kind = SIM_HOST_FUNCTION, .host = {function, data}};

    return function ? sim_submit(s, &w, NULL) : CUDA_ERROR_INVALID_VALUE;
}

PAIR(cuStreamGetId, (CUstream handle, unsigned long long *id), give(id, s->id))
PAIR(cuStreamGetFlags, (CUstream handle, unsigned *flags), give_flags(flags, s->flags))
PAIR(cuStreamGetCtx, (CUstream handle, CUcontext *context), give_context(context, s->context))
PAIR(cuStreamSynchronize, (CUstream handle), synchronize(s))
PAIR(cuStreamQuery, (CUstream handle), query(s))
PAIR(cuStreamWaitEvent, (CUstream handle, CUevent event, unsigned flags), wait_event(s, event))
PAIR(cuEventRecord, (CUevent event, CUstream handle), record(s, event))
PAIR(cuEventRecordWithFlags, (CUevent event, CUstream handle, unsigned flags), record(s, event))
PAIR(cuStreamGetDevice, (CUstream handle, CUdevice *device), give_int(device, s->context->device))

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
    struct callback *c;

    if (s->capture) /* not captured, unlike cuLaunchHostFunc */
        return sim_capture_asked(s, NULL);
    c = malloc(sizeof *c);
    *c = (struct callback){handle, function, data};
    return host_function(s, run_callback, c);
}

PAIR(cuStreamGetPriority, (CUstream handle, int *priority), give_int(priority, s->priority))
PAIR(cuStreamAddCallback, (CUstream handle, CUstreamCallback function, void *data, unsigned flags),
     add_callback(s, handle, function, data))
PAIR(cuLaunchHostFunc, (CUstream handle, CUhostFn function, void *data),
     host_function(s, function, data))

/* Memory operations: 4 and 8 bytes, the ABI of CUDA 8 and that of 11.7 (here the same). */
static CUresult value(struct CUstream_st *s, enum sim_kind kind, CUdeviceptr at, uint64_t number,
                      unsigned size, unsigned flags)
{
    struct sim_work w = {.kind = kind};

    w.value.address = sim_alias(at, size);
    w.value.value = number;
    w.value.flags = flags;
    w.value.size = size;
    return w.value.address && at % size == 0 ? sim_submit(s, &w, NULL) : CUDA_ERROR_INVALID_VALUE;
}

#define VALUE(bits, abi)                                                                           \
    PAIR(cuStreamWriteValue##bits##abi,                                                            \
         (CUstream handle, CUdeviceptr at, cuuint##bits##_t number, unsigned flags),               \
         value(s, SIM_WRITE, at, number, bits / 8, flags))                                         \
    PAIR(cuStreamWaitValue##bits##abi,                                                             \
         (CUstream handle, CUdeviceptr at, cuuint##bits##_t number, unsigned flags),               \
         value(s, SIM_WAIT, at, number, bits / 8, flags))
VALUE(32, )
VALUE(32, _v2)
VALUE(64, )
VALUE(64, _v2)

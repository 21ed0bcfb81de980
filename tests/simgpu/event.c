/* SPDX-License-Identifier: MIT */
/* Events, but for record and wait, which are a stream's (stream.c). An event stands for the
 * operation that its last record made; one recorded during a capture stands for none. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>

/* Is it one of a living context, and no captured one? */
static CUresult usable(CUevent e)
{
    if (!e)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!e->context->alive || e->context->id != e->context_id)
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return sim_capture_asked(NULL, e);
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuEventCreate");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS && !event)
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return sim_leave(r);
    sim_hold();
    *event = calloc(1, sizeof **event);
    (*event)->context = c;
    (*event)->context_id = c->id;
    (*event)->flags = flags;
    return sim_leave(CUDA_SUCCESS);
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
    r = usable(e);
    if (r == CUDA_SUCCESS)
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
    r = usable(e);
    if (r == CUDA_SUCCESS)
        r = sim_unsafe();
    if (r == CUDA_SUCCESS && e->op)
        sim_wait_op(e->op, "cuEventSynchronize");
    return sim_leave(r);
}

static CUresult elapsed(float *ms, CUevent a, CUevent b)
{
    CUresult r = usable(a);

    if (r == CUDA_SUCCESS)
        r = usable(b);
    if (r)
        return r;
    if (!ms || !a->recorded || !b->recorded || (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
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

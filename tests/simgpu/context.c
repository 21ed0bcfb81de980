/* SPDX-License-Identifier: MIT */
/* Contexts: primary ones, which come back under their old handle and with a new id, and others; and
 * each thread's stack of current ones. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = SIM_MOST_DEVICES, DEPTH = 16 };
static struct CUctx_st *primary[DEVICES];
static unsigned primary_flags[DEVICES], retained[DEVICES];
static unsigned long long next_id = 1;
static __thread struct CUctx_st *stack[DEPTH];
static __thread int depth;

struct CUctx_st *sim_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

CUresult sim_need_context(struct CUctx_st **context)
{
    *context = sim_current();
    if (!*context)
        return CUDA_ERROR_INVALID_CONTEXT;
    return (*context)->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

static struct CUctx_st *make(int device, unsigned flags, bool is_primary)
{
    static struct CUctx_st *spare[DEVICES];
    struct CUctx_st *c = is_primary && spare[device] ? spare[device] : calloc(1, sizeof *c);

    if (is_primary)
        spare[device] = c; /* a primary context comes back under its old handle */
    memset(c, 0, sizeof *c);
    c->device = device;
    c->id = next_id++;
    c->flags = flags;
    c->primary = is_primary;
    c->alive = true;
    c->legacy = sim_new_stream(c, CU_STREAM_DEFAULT, 0);
    return c;
}

/* The context's work is over, its memory and streams are gone. */
static void end(struct CUctx_st *c)
{
    sim_wait_context(c);
    c->alive = false;
    sim_end_streams(c);
    sim_end_memory(c);
    if (c->primary)
        sim_end_pool(c->device);
}

EXPORT CUresult cuInit(unsigned flags)
{
    CUresult r = sim_enter("cuInit");

    if (r)
        return r;
    sim.initialised = flags == 0;
    return sim_leave(flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    CUresult r = sim_enter("cuDriverGetVersion");

    if (r)
        return r;
    if (version)
        *version = sim.version;
    return sim_leave(version ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult r = sim_enter("cuDevicePrimaryCtxRetain");

    if (r)
        return r;
    if (device < 0 || device >= sim.devices)
        return sim_leave(CUDA_ERROR_INVALID_DEVICE);
    if (!primary[device])
        primary[device] = make(device, primary_flags[device], true);
    retained[device]++;
    *context = primary[device];
    return sim_leave(CUDA_SUCCESS);
}

/* A reset ends the context and keeps the count: who retained it still releases it. */
static CUresult release(CUdevice device, bool reset)
{
    if (device < 0 || device >= sim.devices)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!reset && retained[device] == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!reset && --retained[device] > 0)
        return CUDA_SUCCESS;
    if (primary[device])
        end(primary[device]);
    primary[device] = NULL;
    return CUDA_SUCCESS;
}

#define RELEASE(name, reset)                                                                       \
    EXPORT CUresult name(CUdevice device)                                                          \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r : sim_leave(release(device, reset));                                          \
    }
RELEASE(cuDevicePrimaryCtxRelease, false)
RELEASE(cuDevicePrimaryCtxRelease_v2, false)
RELEASE(cuDevicePrimaryCtxReset, true)
RELEASE(cuDevicePrimaryCtxReset_v2, true)

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
    CUresult r = sim_enter("cuDevicePrimaryCtxGetState");

    if (r)
        return r;
    if (device < 0 || device >= sim.devices || !flags || !active)
        return sim_leave(CUDA_ERROR_INVALID_DEVICE);
    *flags = primary_flags[device];
    *active = primary[device] != NULL;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    CUresult r = sim_enter("cuDevicePrimaryCtxSetFlags_v2");

    if (r)
        return r;
    if (device < 0 || device >= sim.devices)
        return sim_leave(CUDA_ERROR_INVALID_DEVICE);
    primary_flags[device] = flags;
    if (primary[device])
        primary[device]->flags = flags;
    return sim_leave(CUDA_SUCCESS);
}

static CUresult create(CUcontext *context, unsigned flags, CUdevice device)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    if (device < 0 || device >= sim.devices || depth == DEPTH)
        return CUDA_ERROR_INVALID_DEVICE;
    *context = make(device, flags, false);
    stack[depth++] = *context;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
    CUresult r = sim_enter("cuCtxCreate_v2");

    return r ? r : sim_leave(create(context, flags, device));
}

EXPORT CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int n,
                               unsigned flags, CUdevice device)
{
    CUresult r = sim_enter("cuCtxCreate_v3");

    return r ? r : sim_leave(create(context, flags, device));
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned flags,
                               CUdevice device)
{
    CUresult r = sim_enter("cuCtxCreate_v4");

    return r ? r : sim_leave(create(context, flags, device));
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult r = sim_enter("cuCtxDestroy_v2");

    if (r)
        return r;
    if (!context || !context->alive)
        return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
    end(context);
    if (sim_current() == context)
        depth--;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult r = sim_enter("cuCtxPushCurrent_v2");

    if (r)
        return r;
    if (!context || depth == DEPTH)
        return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
    stack[depth++] = context;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult r = sim_enter("cuCtxPopCurrent_v2");

    if (r)
        return r;
    if (!depth)
        return sim_leave(CUDA_ERROR_INVALID_CONTEXT);
    depth--;
    if (context)
        *context = stack[depth];
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult r = sim_enter("cuCtxSetCurrent");

    if (r)
        return r;
    if (!context)
        depth -= depth > 0;
    else
        stack[depth ? depth - 1 : depth++] = context;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult r = sim_enter("cuCtxGetCurrent");

    if (r)
        return r;
    *context = sim_current();
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuCtxGetDevice");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS)
        *device = c->device;
    return sim_leave(r);
}

EXPORT CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
    CUresult r = sim_enter("cuCtxGetId");

    if (r)
        return r;
    if (!context)
        context = sim_current();
    if (!context || !context->alive)
        return sim_leave(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    *id = context->id;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxGetFlags(unsigned *flags)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuCtxGetFlags");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS)
        *flags = c->flags;
    return sim_leave(r);
}

EXPORT CUresult cuCtxSetFlags(unsigned flags)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuCtxSetFlags");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS)
        c->flags = flags;
    return sim_leave(r);
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CUresult r = sim_enter("cuCtxGetStreamPriorityRange");

    if (r)
        return r;
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
    CUresult r = sim_enter("cuCtxGetApiVersion");

    if (r)
        return r;
    *version = (unsigned)sim.version;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxSynchronize(void)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuCtxSynchronize");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS)
        r = sim_unsafe();
    if (r == CUDA_SUCCESS)
        sim_wait_context(c);
    return sim_leave(r);
}

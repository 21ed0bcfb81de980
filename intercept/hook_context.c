/* SPDX-License-Identifier: MIT */
/* A context that ends takes the registration of its staging memory and its events with it. A
 * primary context that was reset or released is told from its successor by cuCtxGetId when the next
 * copy comes; only drivers before 12.0 need to be followed here. */
#include "intercept/hooks.h"
#include "shim/pool.h"
#include "shim/stream.h"

static CUresult ended(struct es_pool *pool, CUresult r)
{
    if (pool && r == CUDA_SUCCESS)
        es_pool_end(pool);
    else if (pool)
        es_pool_attach(pool);
    return r;
}

static void may_end(void)
{
    es_note(ES_SEEN_CONTEXT);
    es_stream_forget_all(); /* its streams go with it */
    if (!es_port.context_id)
        es_pool_abandon_all();
}

ES_EXPORT CUresult CUDAAPI cuCtxDestroy(CUcontext context)
{
    struct es_pool *pool = es_pool_detach(context);

    es_note(ES_SEEN_CONTEXT);
    es_stream_forget_all();
    return ended(pool, ES_REAL(cuCtxDestroy)(context));
}

ES_EXPORT CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context)
{
    struct es_pool *pool = es_pool_detach(context);

    es_note(ES_SEEN_CONTEXT);
    es_stream_forget_all();
    return ended(pool, ES_REAL(cuCtxDestroy_v2)(context));
}

ES_EXPORT CUresult CUDAAPI cuCtxDetach(CUcontext context)
{
    may_end();
    return ES_REAL(cuCtxDetach)(context);
}

ES_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device)
{
    may_end();
    return ES_REAL(cuDevicePrimaryCtxReset)(device);
}

ES_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    may_end();
    return ES_REAL(cuDevicePrimaryCtxReset_v2)(device);
}

ES_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device)
{
    may_end();
    return ES_REAL(cuDevicePrimaryCtxRelease)(device);
}

ES_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    may_end();
    return ES_REAL(cuDevicePrimaryCtxRelease_v2)(device);
}

/* The second device's counts as a context that the program made: there is more than one then. */
ES_EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    static atomic_int first = -1;
    int none = -1;

    if (atomic_compare_exchange_strong(&first, &none, device) || none == device)
        es_note(ES_SEEN_CONTEXT);
    else
        es_note(ES_SEEN_CONTEXT_MADE);
    return ES_REAL(cuDevicePrimaryCtxRetain)(context, device);
}

/* SPDX-License-Identifier: MIT */
/* The copies that may be rewritten. Twelve symbols, one shape: describe the call, offer it to
 * shim/copy.h, and make the very call of the program if it declines. */
#include <stdint.h>

#include "intercept/hooks.h"
#include "intercept/runtime.h"
#include "shim/copy.h"
#include "shim/facts.h"
#include "shim/turn.h"

static struct es_copy h2d(CUdeviceptr dst, const void *src, size_t bytes)
{
    return (struct es_copy){
        .dir = ES_H2D, .device = dst, .host = (void *)(uintptr_t)src, .bytes = bytes};
}

static struct es_copy d2h(void *dst, CUdeviceptr src, size_t bytes)
{
    return (struct es_copy){.dir = ES_D2H, .device = src, .host = dst, .bytes = bytes};
}

/* Which function was called, and from where. */
#define CALLED ((struct es_call){__func__, ES_CALL_SITE})

static struct es_copy sync_on(struct es_copy c, CUstream stream, struct es_call call)
{
    c.stream = stream;
    c.walks = !es_call.api; /* else our own runtime hook knows who called */
    if (es_call.api)
        call = es_call;
    c.stack.api = call.api;
    c.stack.frames[0] = call.site;
    es_note(ES_SEEN_COPY);
    es_copy_begin(&c);
    return c;
}

static struct es_copy async_on(struct es_copy c, CUstream stream, struct es_call call)
{
    c.async = true;
    return sync_on(c, stream, call);
}

/* A copy by unified addresses. False: it is none of ours, and only counted; its turn has begun. */
static bool unified(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream,
                    struct es_copy *c)
{
    enum es_direction dir;

    if (!es_count_begun())
        es_root_begin();
    if (!es_facts_direction(&es_port, dst, src, &dir)) {
        es_note(ES_SEEN_COPY_OTHER);
        es_turn_begin(stream);
        return false;
    }
    *c = dir == ES_H2D ? h2d(dst, (const void *)(uintptr_t)src, bytes)
                       : d2h((void *)(uintptr_t)dst, src, bytes);
    return true;
}

static CUresult counted(CUstream stream, CUresult r)
{
    es_turn_given(stream, es_count_effects(ES_SEEN_COPY_OTHER));
    return r;
}

ES_EXPORT CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes)
{
    struct es_copy c = sync_on(h2d(dst, src, bytes), CU_STREAM_LEGACY, CALLED);

    return es_copy_end(&c, es_copy_made(&c)
                               ? CUDA_SUCCESS
                               : ES_REAL(cuMemcpyHtoD_v2)(dst + c.done, (const char *)src + c.done,
                                                          bytes - c.done));
}

ES_EXPORT CUresult CUDAAPI cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t bytes)
{
    struct es_copy c = sync_on(h2d(dst, src, bytes), CU_STREAM_PER_THREAD, CALLED);

    return es_copy_end(&c, es_copy_made(&c)
                               ? CUDA_SUCCESS
                               : ES_REAL(cuMemcpyHtoD_v2_ptds)(
                                     dst + c.done, (const char *)src + c.done, bytes - c.done));
}

ES_EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes,
                                                CUstream s)
{
    struct es_copy c = async_on(h2d(dst, src, bytes), ES_LEGACY(s), CALLED);

    return es_copy_end(&c, es_copy_made(&c)
                               ? CUDA_SUCCESS
                               : ES_REAL(cuMemcpyHtoDAsync_v2)(
                                     dst + c.done, (const char *)src + c.done, bytes - c.done, s));
}

ES_EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t bytes,
                                                     CUstream s)
{
    struct es_copy c = async_on(h2d(dst, src, bytes), ES_PER_THREAD(s), CALLED);

    return es_copy_end(&c, es_copy_made(&c)
                               ? CUDA_SUCCESS
                               : ES_REAL(cuMemcpyHtoDAsync_v2_ptsz)(
                                     dst + c.done, (const char *)src + c.done, bytes - c.done, s));
}

ES_EXPORT CUresult CUDAAPI cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes)
{
    struct es_copy c = sync_on(d2h(dst, src, bytes), CU_STREAM_LEGACY, CALLED);

    return es_copy_end(
        &c, es_copy_made(&c)
                ? CUDA_SUCCESS
                : ES_REAL(cuMemcpyDtoH_v2)((char *)dst + c.done, src + c.done, bytes - c.done));
}

ES_EXPORT CUresult CUDAAPI cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t bytes)
{
    struct es_copy c = sync_on(d2h(dst, src, bytes), CU_STREAM_PER_THREAD, CALLED);

    return es_copy_end(&c, es_copy_made(&c)
                               ? CUDA_SUCCESS
                               : ES_REAL(cuMemcpyDtoH_v2_ptds)((char *)dst + c.done, src + c.done,
                                                               bytes - c.done));
}

ES_EXPORT CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes,
                                                CUstream s)
{
    struct es_copy c = async_on(d2h(dst, src, bytes), ES_LEGACY(s), CALLED);

    return es_copy_end(&c, es_copy_made(&c)
                               ? CUDA_SUCCESS
                               : ES_REAL(cuMemcpyDtoHAsync_v2)((char *)dst + c.done, src + c.done,
                                                               bytes - c.done, s));
}

ES_EXPORT CUresult CUDAAPI cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t bytes,
                                                     CUstream s)
{
    struct es_copy c = async_on(d2h(dst, src, bytes), ES_PER_THREAD(s), CALLED);

    return es_copy_end(&c, es_copy_made(&c)
                               ? CUDA_SUCCESS
                               : ES_REAL(cuMemcpyDtoHAsync_v2_ptsz)(
                                     (char *)dst + c.done, src + c.done, bytes - c.done, s));
}

ES_EXPORT CUresult CUDAAPI cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    struct es_copy c;

    if (!unified(dst, src, bytes, CU_STREAM_LEGACY, &c))
        return counted(CU_STREAM_LEGACY, ES_REAL(cuMemcpy)(dst, src, bytes));
    c = sync_on(c, CU_STREAM_LEGACY, CALLED);
    return es_copy_end(&c, es_copy_made(&c)
                               ? CUDA_SUCCESS
                               : ES_REAL(cuMemcpy)(dst + c.done, src + c.done, bytes - c.done));
}

ES_EXPORT CUresult CUDAAPI cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes)
{
    struct es_copy c;

    if (!unified(dst, src, bytes, CU_STREAM_PER_THREAD, &c))
        return counted(CU_STREAM_PER_THREAD, ES_REAL(cuMemcpy_ptds)(dst, src, bytes));
    c = sync_on(c, CU_STREAM_PER_THREAD, CALLED);
    return es_copy_end(
        &c, es_copy_made(&c) ? CUDA_SUCCESS
                             : ES_REAL(cuMemcpy_ptds)(dst + c.done, src + c.done, bytes - c.done));
}

ES_EXPORT CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    struct es_copy c;

    if (!unified(dst, src, bytes, ES_LEGACY(s), &c))
        return counted(ES_LEGACY(s), ES_REAL(cuMemcpyAsync)(dst, src, bytes, s));
    c = async_on(c, ES_LEGACY(s), CALLED);
    return es_copy_end(&c, es_copy_made(&c) ? CUDA_SUCCESS
                                            : ES_REAL(cuMemcpyAsync)(dst + c.done, src + c.done,
                                                                     bytes - c.done, s));
}

ES_EXPORT CUresult CUDAAPI cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                                              CUstream s)
{
    struct es_copy c;

    if (!unified(dst, src, bytes, ES_PER_THREAD(s), &c))
        return counted(ES_PER_THREAD(s), ES_REAL(cuMemcpyAsync_ptsz)(dst, src, bytes, s));
    c = async_on(c, ES_PER_THREAD(s), CALLED);
    return es_copy_end(&c, es_copy_made(&c) ? CUDA_SUCCESS
                                            : ES_REAL(cuMemcpyAsync_ptsz)(
                                                  dst + c.done, src + c.done, bytes - c.done, s));
}

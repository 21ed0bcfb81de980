/* SPDX-License-Identifier: MIT */
/* Stream-ordered pools. Memory is there as soon as it is asked for. Freed memory stays with the
 * pool, and the very address is given out again: to the stream that freed it at once, behind work
 * that still uses it (so such memory is never fresh), to others when the free has come to pass. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>

/* A freed one. */
struct block {
    struct sim_region *region; /* taken out of the list */
    unsigned long long stream_id;
    struct sim_op *freed; /* counted */
    struct block *next;
};
static struct block *blocks;

static struct sim_region *reuse(const struct CUstream_st *s, size_t bytes)
{
    for (struct block **at = &blocks, *b; (b = *at); at = &b->next) {
        struct sim_region *region = b->region, *again;

        if (region->bytes != bytes || region->device != s->context->device ||
            (b->stream_id != s->id && b->freed && b->freed->state != SIM_DONE))
            continue;
        *at = b->next;
        sim_unref(b->freed);
        free(b);
        again =
            sim_add_region(region->start, bytes, region->alias, SIM_DEVICE, NULL, region->device);
        free(region);
        return again;
    }
    return NULL;
}

static CUresult allocate_on(CUstream handle, bool per_thread, CUdeviceptr *p, size_t bytes)
{
    struct sim_region *region;
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r == CUDA_SUCCESS && (!p || !bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    region = s->capture ? NULL : reuse(s, bytes);
    if (!region)
        region = sim_device_memory(bytes, NULL, s->context->device);
    if (!region)
        return CUDA_ERROR_OUT_OF_MEMORY;
    region->origin = SIM_POOL;
    *p = region->start;
    return CUDA_SUCCESS;
}

static CUresult free_on(CUstream handle, bool per_thread, CUdeviceptr p)
{
    struct sim_region *region = sim_region_at(p);
    struct CUstream_st *s;
    struct block *b;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r || !p)
        return r;
    if (!region || region->start != p || region->kind != SIM_DEVICE ||
        (region->origin != SIM_POOL && region->origin != SIM_OWN))
        return CUDA_ERROR_INVALID_VALUE;
    if (s->capture) { /* the graph's own: not given out again */
        free(sim_take_region(p, SIM_DEVICE));
        return CUDA_SUCCESS;
    }
    b = calloc(1, sizeof *b);
    b->region = sim_take_region(p, SIM_DEVICE);
    b->stream_id = s->id;
    b->freed = sim_marker(s);
    b->next = blocks;
    blocks = b;
    return CUDA_SUCCESS;
}

void *sim_pool_alias(uint64_t address, size_t bytes)
{
    for (struct block *b = blocks; b; b = b->next) {
        struct sim_region *r = b->region;

        if (address >= r->start && address - r->start <= r->bytes &&
            bytes <= r->bytes - (address - r->start) && b->freed && b->freed->state != SIM_DONE)
            return (char *)r->alias + (address - r->start);
    }
    return NULL;
}

/* With the device's primary context. The bytes stay mapped, as in sim_end_memory. */
void sim_end_pool(int device)
{
    for (struct block **at = &blocks, *b; (b = *at);) {
        if (b->region->device != device) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        sim_unref(b->freed);
        free(b->region);
        free(b);
    }
    for (struct sim_region **at = &sim.regions, *r; (r = *at);) {
        if (r->device != device || r->origin != SIM_POOL) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        free(r);
    }
}

#define POOL(suffix, per_thread)                                                                   \
    EXPORT CUresult cuMemAllocAsync##suffix(CUdeviceptr *p, size_t bytes, CUstream s)              \
    {                                                                                              \
        CUresult r = sim_enter("cuMemAllocAsync" #suffix);                                         \
        return r ? r : sim_leave(allocate_on(s, per_thread, p, bytes));                            \
    }                                                                                              \
    EXPORT CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr *p, size_t bytes,                  \
                                                    CUmemoryPool pool, CUstream s)                 \
    {                                                                                              \
        CUresult r = sim_enter("cuMemAllocFromPoolAsync" #suffix);                                 \
        return r ? r : sim_leave(allocate_on(s, per_thread, p, bytes));                            \
    }                                                                                              \
    EXPORT CUresult cuMemFreeAsync##suffix(CUdeviceptr p, CUstream s)                              \
    {                                                                                              \
        CUresult r = sim_enter("cuMemFreeAsync" #suffix);                                          \
        return r ? r : sim_leave(free_on(s, per_thread, p));                                       \
    }
POOL(, false)
POOL(_ptsz, true)

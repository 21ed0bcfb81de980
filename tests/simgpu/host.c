/* SPDX-License-Identifier: MIT */
/* Pinned host memory: allocated by the driver, or registered. SIMGPU_PIN_LIMIT bounds the sum. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>
#include <sys/mman.h>

static CUresult pin(size_t bytes)
{
    if (bytes > sim.pin_limit || sim.pinned > sim.pin_limit - bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim.pinned += bytes;
    return CUDA_SUCCESS;
}

static CUresult host_alloc(void **p, size_t bytes, unsigned flags)
{
    struct CUctx_st *c;
    void *memory;
    CUresult r = sim_need_context(&c);

    if (r == CUDA_SUCCESS)
        r = sim_unsafe();
    if (r == CUDA_SUCCESS && (!p || !bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS)
        r = pin(bytes);
    if (r)
        return r;
    memory = sim_map(bytes, PROT_READ | PROT_WRITE);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_add_region((uintptr_t)memory, bytes, memory, SIM_HOST, c, c->device)->flags = flags;
    *p = memory;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    CUresult r = sim_enter("cuMemHostAlloc");

    return r ? r : sim_leave(host_alloc(p, bytes, flags));
}

EXPORT CUresult cuMemAllocHost_v2(void **p, size_t bytes)
{
    CUresult r = sim_enter("cuMemAllocHost_v2");

    return r ? r : sim_leave(host_alloc(p, bytes, 0));
}

EXPORT CUresult cuMemFreeHost(void *p)
{
    struct sim_region *region;
    CUresult r = sim_enter("cuMemFreeHost");

    if (r)
        return r;
    region = sim_region_at((uintptr_t)p);
    if (!region || region->kind != SIM_HOST || region->start != (uintptr_t)p)
        return sim_leave(p ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
    if (region->context && region->context->alive)
        sim_wait_context(region->context);
    region = sim_take_region((uintptr_t)p, SIM_HOST);
    if (!region)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    sim.pinned -= region->bytes;
    sim_discard(region);
    return sim_leave(CUDA_SUCCESS);
}

static CUresult register_host(void *p, size_t bytes, unsigned flags)
{
    struct CUctx_st *c;
    uint64_t start = (uintptr_t)p;
    CUresult r = sim_need_context(&c);

    if (r == CUDA_SUCCESS)
        r = sim_unsafe();
    if (r == CUDA_SUCCESS && (!p || !bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    sim_hold();
    for (struct sim_region *o = sim.regions; o; o = o->next)
        if (o->start < start + bytes && start < o->start + o->bytes)
            return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    r = pin(bytes);
    if (r == CUDA_SUCCESS)
        sim_add_region(start, bytes, p, SIM_REGISTERED, c, c->device)->flags = flags;
    return r;
}

EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
    CUresult r = sim_enter("cuMemHostRegister_v2");

    return r ? r : sim_leave(register_host(p, bytes, flags));
}

/* Waits for running kernels (measured). */
static CUresult unregister_host(uint64_t start)
{
    struct sim_region *r = sim_region_at(start);

    if (!r || r->kind != SIM_REGISTERED || r->start != start)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    sim_wait_context(r->context);
    r = sim_take_region(start, SIM_REGISTERED);
    if (r)
        sim.pinned -= r->bytes;
    free(r);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostUnregister(void *p)
{
    CUresult r = sim_enter("cuMemHostUnregister");

    return r ? r : sim_leave(unregister_host((uintptr_t)p));
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned flags)
{
    struct sim_region *region;
    CUresult r = sim_enter("cuMemHostGetDevicePointer_v2");

    if (r)
        return r;
    region = sim_region_at((uintptr_t)p);
    if (!d || !region || region->kind == SIM_DEVICE)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    *d = (uintptr_t)p;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemHostGetFlags(unsigned *flags, void *p)
{
    struct sim_region *region;
    CUresult r = sim_enter("cuMemHostGetFlags");

    if (r)
        return r;
    region = sim_region_at((uintptr_t)p);
    if (!flags || !region || (region->kind != SIM_HOST && region->kind != SIM_REGISTERED))
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    *flags = region->flags | CU_MEMHOSTALLOC_DEVICEMAP; /* always, with unified addressing */
    return sim_leave(CUDA_SUCCESS);
}

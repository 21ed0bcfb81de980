/* SPDX-License-Identifier: MIT */
/* Memory the driver knows, by address; and device and managed memory. Device memory has an address
 * range that nobody may touch and its bytes elsewhere, so a host access to it crashes, as it does
 * with a GPU; pinned (host.c) and managed memory is what it is. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

static unsigned long long next_id = 1;

/* --- what is where --- */

struct sim_region *sim_region_at(uint64_t address)
{
    for (struct sim_region *r = sim.regions; r; r = r->next)
        if (address - r->start < r->bytes)
            return r;
    return NULL;
}

/* A range may run over several mappings that lie side by side; their bytes do then, too. */
char *sim_alias(uint64_t address, size_t bytes)
{
    struct sim_region *r = sim_region_at(address);
    char *alias = r ? r->alias + (address - r->start) : NULL;

    while (r && r->start + r->bytes - address < bytes) {
        char *end = r->alias + r->bytes;

        r = sim_region_at(r->start + r->bytes);
        if (!r || r->alias != end)
            return NULL;
    }
    return alias;
}

struct sim_region *sim_add_region(uint64_t start, size_t bytes, char *alias, enum sim_memory kind,
                                  struct CUctx_st *context, int device)
{
    struct sim_region *r = calloc(1, sizeof *r);

    *r = (struct sim_region){.start = start,
                             .bytes = bytes,
                             .alias = alias,
                             .kind = kind,
                             .context = context,
                             .device = device,
                             .id = next_id++,
                             .next = sim.regions};
    sim.regions = r;
    return r;
}

struct sim_region *sim_take_region(uint64_t start, enum sim_memory kind)
{
    for (struct sim_region **at = &sim.regions, *r; (r = *at); at = &r->next) {
        if (r->start == start && r->kind == kind) {
            *at = r->next;
            return r;
        }
    }
    return NULL;
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + 4095) & ~(size_t)4095;
}

void *sim_map(size_t bytes, int protection)
{
    void *p = mmap(NULL, whole_pages(bytes), protection,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    madvise(p, bytes, MADV_HUGEPAGE);
    return p;
}

/* Timed: memory that was touched before, or the first copy would pay for it. One arena, made at the
 * first allocation and handed out once; what does not fit is mapped as it is. */
static char *timed_alias(size_t bytes)
{
    enum { ARENA = 384 << 20 };
    static char *arena;
    static size_t used;

    if (!arena) {
        arena = sim_map(ARENA, PROT_READ | PROT_WRITE);
        if (arena)
            madvise(arena, ARENA, MADV_POPULATE_WRITE);
    }
    if (!arena || bytes > ARENA - used)
        return sim_map(bytes, PROT_READ | PROT_WRITE);
    used += bytes;
    return arena + used - bytes;
}

struct sim_region *sim_device_memory(size_t bytes, struct CUctx_st *context, int device)
{
    char *address = sim_map(bytes, PROT_NONE);
    char *alias = sim.scheduler == SIM_TIMED ? timed_alias(whole_pages(bytes))
                                             : sim_map(bytes, PROT_READ | PROT_WRITE);

    if (!address || !alias)
        return NULL;
    return sim_add_region((uintptr_t)address, bytes, alias, SIM_DEVICE, context, device);
}

void sim_discard(struct sim_region *r)
{
    munmap((void *)(uintptr_t)r->start, whole_pages(r->bytes));
    if ((uintptr_t)r->alias != r->start)
        munmap(r->alias, whole_pages(r->bytes));
    free(r);
}

/* With their context. The bytes stay mapped: a late access shows as wrong bytes, not as a crash. */
void sim_end_memory(struct CUctx_st *context)
{
    for (struct sim_region **at = &sim.regions, *r; (r = *at);) {
        if (r->context != context) {
            at = &r->next;
            continue;
        }
        if (r->kind == SIM_HOST || r->kind == SIM_REGISTERED)
            sim.pinned -= r->bytes;
        *at = r->next;
        free(r);
    }
}

/* --- device memory --- */

static CUresult allocate(CUdeviceptr *p, size_t bytes)
{
    struct sim_region *region;
    struct CUctx_st *c;
    CUresult r = sim_need_context(&c);

    if (r == CUDA_SUCCESS)
        r = sim_unsafe();
    if (r == CUDA_SUCCESS && (!p || !bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    region = sim_device_memory(bytes, c, c->device);
    if (!region)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *p = region->start;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
    CUresult r = sim_enter("cuMemAlloc_v2");

    return r ? r : sim_leave(allocate(p, bytes));
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height,
                                   unsigned element)
{
    CUresult r = sim_enter("cuMemAllocPitch_v2");

    if (r)
        return r;
    if (!pitch)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    *pitch = (width + 511) & ~(size_t)511;
    return sim_leave(allocate(p, *pitch * height));
}

/* Waits for all work of the context, on whatever stream (measured). */
static CUresult release(CUdeviceptr p)
{
    struct sim_region *r = sim_region_at(p);
    struct CUctx_st *c;
    CUresult unsafe = sim_unsafe();

    if (!p)
        return CUDA_SUCCESS;
    if (unsafe)
        return unsafe;
    if (!r || r->start != p || (r->kind != SIM_DEVICE && r->kind != SIM_MANAGED) ||
        (r->origin != SIM_OWN && r->origin != SIM_POOL))
        return CUDA_ERROR_INVALID_VALUE;
    c = r->context ? r->context : sim_current();
    if (c)
        sim_wait_context(c);
    r = sim_take_region(p, SIM_DEVICE);
    if (!r)
        r = sim_take_region(p, SIM_MANAGED);
    if (r)
        sim_discard(r);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
    CUresult r = sim_enter("cuMemFree_v2");

    return r ? r : sim_leave(release(p));
}

static CUresult managed(CUdeviceptr *p, size_t bytes)
{
    struct CUctx_st *c;
    void *memory;
    CUresult r = sim_need_context(&c);

    if (r == CUDA_SUCCESS && (!p || !bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    memory = sim_map(bytes, PROT_READ | PROT_WRITE);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_add_region((uintptr_t)memory, bytes, memory, SIM_MANAGED, c, c->device);
    *p = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *p, size_t bytes, unsigned flags)
{
    CUresult r = sim_enter("cuMemAllocManaged");

    return r ? r : sim_leave(managed(p, bytes));
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    CUresult r = sim_enter("cuMemGetInfo_v2");

    if (r)
        return r;
    *available = (size_t)15 << 30;
    *total = (size_t)16 << 30;
    return sim_leave(CUDA_SUCCESS);
}

/* SPDX-License-Identifier: MIT */
/* Memory the driver knows. Device memory has an address range that nobody may touch and its bytes
 * elsewhere, so a host access to it crashes, as it does with a GPU; pinned and managed memory is
 * what it is. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

static unsigned long long next_id = 1;

struct sim_region *sim_region_at(uint64_t address)
{
    for (struct sim_region *r = sim.regions; r; r = r->next)
        if (r->kind != SIM_RESERVED && address - r->start < r->bytes)
            return r;
    return NULL;
}

char *sim_alias(uint64_t address, size_t bytes)
{
    struct sim_region *r = sim_region_at(address);

    if (!r || r->bytes - (address - r->start) < bytes)
        return NULL;
    return r->alias + (address - r->start);
}

bool sim_is_pageable(uint64_t address)
{
    return sim_region_at(address) == NULL;
}

static struct sim_region *add(uint64_t start, size_t bytes, char *alias, int kind,
                              struct CUctx_st *context, int device)
{
    struct sim_region *r = calloc(1, sizeof *r);

    r->start = start;
    r->bytes = bytes;
    r->alias = alias;
    r->kind = kind;
    r->context = context;
    r->device = device;
    r->id = next_id++;
    r->next = sim.regions;
    sim.regions = r;
    return r;
}

static struct sim_region *take_out(uint64_t start, int kind, int other)
{
    for (struct sim_region **at = &sim.regions, *r; (r = *at); at = &r->next) {
        if (r->start == start && ((int)r->kind == kind || (int)r->kind == other)) {
            *at = r->next;
            return r;
        }
    }
    return NULL;
}

static void *map(size_t bytes, int protection)
{
    void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

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
        arena = map(ARENA, PROT_READ | PROT_WRITE);
        if (arena)
            madvise(arena, ARENA, MADV_POPULATE_WRITE);
    }
    if (!arena || bytes > ARENA - used)
        return map(bytes, PROT_READ | PROT_WRITE);
    used += bytes;
    return arena + used - bytes;
}

static CUresult allocate(CUdeviceptr *p, size_t bytes, struct CUctx_st *c, bool from_pool)
{
    size_t rounded = (bytes + 4095) & ~(size_t)4095;
    void *address, *alias;

    if (!p || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    address = map(rounded, PROT_NONE);
    alias =
        sim.scheduler == SIM_TIMED ? timed_alias(rounded) : map(rounded, PROT_READ | PROT_WRITE);
    if (!address || !alias)
        return CUDA_ERROR_OUT_OF_MEMORY;
    add((uintptr_t)address, bytes, alias, SIM_DEVICE, from_pool ? NULL : c, c->device);
    *p = (uintptr_t)address;
    return CUDA_SUCCESS;
}

static void discard(struct sim_region *r)
{
    size_t rounded = (r->bytes + 4095) & ~(size_t)4095;

    munmap((void *)(uintptr_t)r->start, rounded);
    if ((uintptr_t)r->alias != r->start)
        munmap(r->alias, rounded);
    free(r);
}

/* Waits for the context, as cuMemFree does. */
static CUresult release(CUdeviceptr p)
{
    struct sim_region *r;

    if (!p)
        return CUDA_SUCCESS;
    r = sim_region_at(p);
    if (!r || r->start != p || (r->kind != SIM_DEVICE && r->kind != SIM_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_current())
        sim_wait_context(sim_current());
    r = take_out(p, SIM_DEVICE, SIM_MANAGED);
    if (r)
        discard(r);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuMemAlloc_v2");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS)
        r = sim_unsafe();
    return sim_leave(r ? r : allocate(p, bytes, c, false));
}

EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height,
                                   unsigned element)
{
    struct CUctx_st *c;
    CUresult r = sim_enter("cuMemAllocPitch_v2");

    if (r)
        return r;
    r = sim_need_context(&c);
    *pitch = (width + 511) & ~(size_t)511;
    return sim_leave(r ? r : allocate(p, *pitch * height, c, false));
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
    CUresult r = sim_enter("cuMemFree_v2");

    return r ? r : sim_leave(release(p));
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *p, size_t bytes, unsigned flags)
{
    struct CUctx_st *c;
    void *memory;
    CUresult r = sim_enter("cuMemAllocManaged");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r)
        return sim_leave(r);
    memory = map((bytes + 4095) & ~(size_t)4095, PROT_READ | PROT_WRITE);
    if (!memory || !bytes)
        return sim_leave(CUDA_ERROR_OUT_OF_MEMORY);
    add((uintptr_t)memory, bytes, memory, SIM_MANAGED, c, c->device);
    *p = (uintptr_t)memory;
    return sim_leave(CUDA_SUCCESS);
}

static CUresult pin(size_t bytes)
{
    if (bytes > sim.pin_limit || sim.pinned > sim.pin_limit - bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim.pinned += bytes;
    return CUDA_SUCCESS;
}

static CUresult host_alloc(void **p, size_t bytes)
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
    memory = map((bytes + 4095) & ~(size_t)4095, PROT_READ | PROT_WRITE);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    add((uintptr_t)memory, bytes, memory, SIM_HOST, c, c->device);
    *p = memory;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    CUresult r = sim_enter("cuMemHostAlloc");

    return r ? r : sim_leave(host_alloc(p, bytes));
}

EXPORT CUresult cuMemAllocHost_v2(void **p, size_t bytes)
{
    CUresult r = sim_enter("cuMemAllocHost_v2");

    return r ? r : sim_leave(host_alloc(p, bytes));
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
    region = take_out((uintptr_t)p, SIM_HOST, SIM_HOST);
    sim.pinned -= region->bytes;
    discard(region);
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
    struct CUctx_st *c;
    uint64_t start = (uintptr_t)p;
    CUresult r = sim_enter("cuMemHostRegister_v2");

    if (r)
        return r;
    r = sim_need_context(&c);
    if (r == CUDA_SUCCESS)
        r = sim_unsafe();
    if (r == CUDA_SUCCESS && (!p || !bytes))
        r = CUDA_ERROR_INVALID_VALUE;
    for (struct sim_region *o = sim.regions; o && r == CUDA_SUCCESS; o = o->next)
        if (o->start < start + bytes && start < o->start + o->bytes)
            r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (r == CUDA_SUCCESS)
        r = pin(bytes);
    if (r == CUDA_SUCCESS)
        add(start, bytes, p, SIM_REGISTERED, c, c->device);
    return sim_leave(r);
}

EXPORT CUresult cuMemHostUnregister(void *p)
{
    struct sim_region *region;
    CUresult r = sim_enter("cuMemHostUnregister");

    if (r)
        return r;
    region = take_out((uintptr_t)p, SIM_REGISTERED, SIM_REGISTERED);
    if (!region)
        return sim_leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    sim.pinned -= region->bytes;
    free(region);
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned flags)
{
    CUresult r = sim_enter("cuMemHostGetDevicePointer_v2");

    if (r)
        return r;
    *d = (uintptr_t)p;
    return sim_leave(sim_region_at((uintptr_t)p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuMemHostGetFlags(unsigned *flags, void *p)
{
    CUresult r = sim_enter("cuMemHostGetFlags");

    if (r)
        return r;
    *flags = 0;
    return sim_leave(sim_region_at((uintptr_t)p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
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

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr p)
{
    struct sim_region *region;
    CUresult r = sim_enter("cuMemGetAddressRange_v2");

    if (r)
        return r;
    region = sim_region_at(p);
    if (!region)
        return sim_leave(CUDA_ERROR_NOT_FOUND);
    if (start)
        *start = region->start;
    if (bytes)
        *bytes = region->bytes;
    return sim_leave(CUDA_SUCCESS);
}

/* --- stream-ordered pools: memory is there at once, and freed when the stream comes to it
 * ----------- */

static CUresult allocate_on(CUstream handle, bool per_thread, CUdeviceptr *p, size_t bytes)
{
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    return r ? r : allocate(p, bytes, s->context, true);
}

static CUresult free_on(CUstream handle, bool per_thread, CUdeviceptr p)
{
    struct CUstream_st *s;
    struct sim_region *region = sim_region_at(p);
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r)
        return r;
    if (!region || region->start != p)
        return CUDA_ERROR_INVALID_VALUE;
    /* The bytes stay mapped: work still queued on the stream uses them. */
    take_out(p, SIM_DEVICE, SIM_DEVICE);
    free(region);
    return CUDA_SUCCESS;
}

#define POOL(name, per_thread)                                                                     \
    EXPORT CUresult cuMemAllocAsync##name(CUdeviceptr *p, size_t bytes, CUstream s)                \
    {                                                                                              \
        CUresult r = sim_enter("cuMemAllocAsync" #name);                                           \
        return r ? r : sim_leave(allocate_on(s, per_thread, p, bytes));                            \
    }                                                                                              \
    EXPORT CUresult cuMemFreeAsync##name(CUdeviceptr p, CUstream s)                                \
    {                                                                                              \
        CUresult r = sim_enter("cuMemFreeAsync" #name);                                            \
        return r ? r : sim_leave(free_on(s, per_thread, p));                                       \
    }
POOL(, false)
POOL(_ptsz, true)

/* --- virtual memory management, enough for one process
 * --------------------------------------------- */

struct handle {
    char *bytes;
    size_t size;
    int device;
};

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                            const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct handle *h;
    CUresult r = sim_enter("cuMemCreate");

    if (r)
        return r;
    h = calloc(1, sizeof *h);
    h->bytes = map(bytes, PROT_READ | PROT_WRITE);
    h->size = bytes;
    h->device = prop->location.id;
    *handle = (uintptr_t)h;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult r = sim_enter("cuMemRelease");

    return r ? r : sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *p, size_t bytes, size_t alignment,
                                    CUdeviceptr hint, unsigned long long flags)
{
    CUresult r = sim_enter("cuMemAddressReserve");

    if (r)
        return r;
    *p = (uintptr_t)map(bytes, PROT_NONE);
    return sim_leave(*p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes)
{
    CUresult r = sim_enter("cuMemAddressFree");

    if (r)
        return r;
    munmap((void *)(uintptr_t)p, bytes);
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemMap(CUdeviceptr p, size_t bytes, size_t offset,
                         CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct handle *h = (struct handle *)(uintptr_t)handle;
    CUresult r = sim_enter("cuMemMap");

    if (r)
        return r;
    add(p, bytes, h->bytes + offset, SIM_DEVICE, NULL, h->device);
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
    CUresult r = sim_enter("cuMemSetAccess");

    return r ? r : sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemUnmap(CUdeviceptr p, size_t bytes)
{
    CUresult r = sim_enter("cuMemUnmap");

    if (r)
        return r;
    free(take_out(p, SIM_DEVICE, SIM_DEVICE));
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType type,
                                             unsigned long long flags)
{
    CUresult r = sim_enter("cuMemExportToShareableHandle");

    if (r)
        return r;
    *(int *)out = 1;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr p)
{
    CUresult r = sim_enter("cuIpcGetMemHandle");

    if (r)
        return r;
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &p, sizeof p);
    return sim_leave(sim_region_at(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* --- attributes
 * ----------------------------------------------------------------------------------- */

static bool attribute(const struct sim_region *r, uint64_t p, CUpointer_attribute which, void *out)
{
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)out = r ? r->context : NULL;
        return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)out = !r                       ? 0
                           : r->kind == SIM_DEVICE  ? CU_MEMORYTYPE_DEVICE
                           : r->kind == SIM_MANAGED ? CU_MEMORYTYPE_DEVICE
                                                    : CU_MEMORYTYPE_HOST;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)out = r ? p : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)out = r && r->kind != SIM_DEVICE ? (void *)(uintptr_t)p : NULL;
        return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)out = r ? r->sync_memops : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)out = r ? r->id : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)out = r && r->kind == SIM_MANAGED;
        return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)out = r ? r->device : -2;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)out = r ? r->start : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)out = r ? r->bytes : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(unsigned *)out = r != NULL;
        return true;
    default:
        return false;
    }
}

EXPORT CUresult cuPointerGetAttribute(void *out, CUpointer_attribute which, CUdeviceptr p)
{
    struct sim_region *region;
    CUresult r = sim_enter("cuPointerGetAttribute");

    if (r)
        return r;
    region = sim_region_at(p);
    return sim_leave(region && attribute(region, p, which, out) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE);
}

EXPORT CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *which, void **out,
                                       CUdeviceptr p)
{
    CUresult r = sim_enter("cuPointerGetAttributes");

    if (r)
        return r;
    for (unsigned i = 0; i < n; i++)
        if (!attribute(sim_region_at(p), p, which[i], out[i]))
            r = CUDA_ERROR_INVALID_VALUE;
    return sim_leave(r);
}

EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute which, CUdeviceptr p)
{
    struct sim_region *region;
    CUresult r = sim_enter("cuPointerSetAttribute");

    if (r)
        return r;
    region = sim_region_at(p);
    if (!region || which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        return sim_leave(CUDA_ERROR_INVALID_VALUE);
    region->sync_memops = *(const unsigned *)value;
    return sim_leave(CUDA_SUCCESS);
}

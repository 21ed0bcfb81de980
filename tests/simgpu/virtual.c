/* SPDX-License-Identifier: MIT */
/* Virtual memory management and IPC, enough for one process: memory with more than one address. A
 * physical handle is a file in memory, a reservation an address range that nobody may touch and a
 * second one where the mapped bytes are seen. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GRANULE = 2 << 20 };

struct handle {
    int fd, device;
    size_t bytes;
    unsigned refs; /* the handle's own, and one a mapping */
};

struct reservation {
    uint64_t start;
    size_t bytes;
    char *view;
    struct reservation *next;
};
static struct reservation *reservations;

/* What was mapped where: to count the handle down. */
struct mapping {
    uint64_t start;
    struct handle *handle;
    struct mapping *next;
};
static struct mapping *mappings;

static void drop(struct handle *h)
{
    if (--h->refs)
        return;
    close(h->fd);
    free(h);
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes,
                       const CUmemAllocationProp *prop)
{
    struct handle *h;

    if (!out || !prop || !bytes || bytes % GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    h = calloc(1, sizeof *h);
    *h = (struct handle){memfd_create("simgpu", MFD_CLOEXEC), prop->location.id, bytes, 1};
    if (h->fd < 0 || ftruncate(h->fd, (off_t)bytes) != 0) {
        free(h);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = (uintptr_t)h;
    return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *p, size_t bytes)
{
    struct reservation *v;

    if (!p || !bytes || bytes % GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    v = calloc(1, sizeof *v);
    *v = (struct reservation){(uintptr_t)sim_map(bytes, PROT_NONE), bytes,
                              sim_map(bytes, PROT_NONE), reservations};
    reservations = v;
    *p = v->start;
    return CUDA_SUCCESS;
}

static struct reservation *reservation_of(uint64_t address)
{
    for (struct reservation *v = reservations; v; v = v->next)
        if (address - v->start < v->bytes)
            return v;
    return NULL;
}

static CUresult unreserve(uint64_t start)
{
    for (struct reservation **at = &reservations, *v; (v = *at); at = &v->next) {
        if (v->start != start)
            continue;
        *at = v->next;
        munmap((void *)(uintptr_t)start, v->bytes);
        munmap(v->view, v->bytes);
        free(v);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult map(uint64_t p, size_t bytes, size_t offset, struct handle *h)
{
    struct reservation *v = reservation_of(p);
    struct mapping *m;
    char *view;

    if (!v || !h || p + bytes > v->start + v->bytes || offset + bytes > h->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    view = mmap(v->view + (p - v->start), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                h->fd, (off_t)offset);
    if (view == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_add_region(p, bytes, view, SIM_DEVICE, NULL, h->device)->origin = SIM_MAPPING;
    m = calloc(1, sizeof *m);
    *m = (struct mapping){p, h, mappings};
    mappings = m;
    h->refs++;
    return CUDA_SUCCESS;
}

/* Every mapping in the range. */
static CUresult unmap(uint64_t p, size_t bytes)
{
    for (struct mapping **at = &mappings, *m; (m = *at);) {
        if (m->start - p >= bytes) {
            at = &m->next;
            continue;
        }
        free(sim_take_region(m->start, SIM_DEVICE));
        drop(m->handle);
        *at = m->next;
        free(m);
    }
    return CUDA_SUCCESS;
}

#define CALL(name, params, body)                                                                   \
    EXPORT CUresult name params                                                                    \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r : sim_leave(body);                                                            \
    }

CALL(cuMemCreate,
     (CUmemGenericAllocationHandle * out, size_t bytes, const CUmemAllocationProp *prop,
      unsigned long long flags),
     create(out, bytes, prop))
CALL(cuMemAddressReserve,
     (CUdeviceptr * p, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags),
     reserve(p, bytes))
CALL(cuMemAddressFree, (CUdeviceptr p, size_t bytes), unreserve(p))
CALL(cuMemMap,
     (CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
      unsigned long long flags),
     map(p, bytes, offset, (struct handle *)(uintptr_t)handle))
CALL(cuMemSetAccess, (CUdeviceptr p, size_t bytes, const CUmemAccessDesc *access, size_t n),
     sim_region_at(p) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
CALL(cuMemUnmap, (CUdeviceptr p, size_t bytes), unmap(p, bytes))

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult r = sim_enter("cuMemRelease");

    if (r)
        return r;
    drop((struct handle *)(uintptr_t)handle);
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                              CUmemAllocationGranularity_flags option)
{
    CUresult r = sim_enter("cuMemGetAllocationGranularity");

    if (r)
        return r;
    *granularity = GRANULE;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                             CUmemAllocationHandleType type,
                                             unsigned long long flags)
{
    CUresult r = sim_enter("cuMemExportToShareableHandle");

    if (r)
        return r;
    *(int *)out = dup(((struct handle *)(uintptr_t)handle)->fd);
    return sim_leave(CUDA_SUCCESS);
}

/* --- IPC: the same bytes under a second address --- */

static CUresult export(CUipcMemHandle *handle, CUdeviceptr p)
{
    struct sim_region *r = sim_region_at(p);

    if (!handle || !r || r->kind != SIM_DEVICE || r->origin != SIM_OWN)
        return CUDA_ERROR_INVALID_VALUE;
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &r->start, sizeof r->start);
    return CUDA_SUCCESS;
}

static CUresult import(CUdeviceptr *p, CUipcMemHandle handle)
{
    struct sim_region *r;
    uint64_t start;
    void *range;

    memcpy(&start, &handle, sizeof start);
    r = sim_region_at(start);
    if (!p || !r || r->start != start)
        return CUDA_ERROR_INVALID_VALUE;
    range = sim_map(r->bytes, PROT_NONE);
    if (!range)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_add_region((uintptr_t)range, r->bytes, r->alias, SIM_DEVICE, NULL, r->device)->origin =
        SIM_IMPORT;
    *p = (uintptr_t)range;
    return CUDA_SUCCESS;
}

static CUresult close_import(CUdeviceptr p)
{
    struct sim_region *r = sim_region_at(p);

    if (!r || r->start != p || r->origin != SIM_IMPORT)
        return CUDA_ERROR_INVALID_VALUE;
    r = sim_take_region(p, SIM_DEVICE);
    munmap((void *)(uintptr_t)p, r->bytes);
    free(r);
    return CUDA_SUCCESS;
}

CALL(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr p), export(handle, p))
CALL(cuIpcOpenMemHandle_v2, (CUdeviceptr * p, CUipcMemHandle handle, unsigned flags),
     import(p, handle))
CALL(cuIpcCloseMemHandle, (CUdeviceptr p), close_import(p))

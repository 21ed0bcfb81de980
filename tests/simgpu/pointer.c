/* SPDX-License-Identifier: MIT */
/* What the driver says of an address. One call answers for a pointer it knows only; the plural
 * succeeds for any, with zeros for plain host memory (measured). */
#include "tests/simgpu/sim.h"

/* Mappings side by side are one range (measured: of two physical handles the whole of both). */
static struct sim_region whole(const struct sim_region *r)
{
    struct sim_region all = *r, *o;

    if (r->origin != SIM_MAPPING)
        return all;
    while ((o = sim_region_at(all.start - 1)) && o->origin == SIM_MAPPING) {
        all.bytes += all.start - o->start;
        all.start = o->start;
    }
    while ((o = sim_region_at(all.start + all.bytes)) && o->origin == SIM_MAPPING)
        all.bytes += o->bytes;
    return all;
}

static CUresult range(CUdeviceptr *start, size_t *bytes, CUdeviceptr p)
{
    struct sim_region *r = sim_region_at(p);

    if (!r)
        return CUDA_ERROR_NOT_FOUND;
    if (start)
        *start = r->start;
    if (bytes)
        *bytes = r->bytes;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr p)
{
    CUresult r = sim_enter("cuMemGetAddressRange_v2");

    return r ? r : sim_leave(range(start, bytes, p));
}

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
        *(CUdeviceptr *)out = r ? whole(r).start : 0;
        return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)out = r ? whole(r).bytes : 0;
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
    return sim_leave(out && region && attribute(region, p, which, out) ? CUDA_SUCCESS
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

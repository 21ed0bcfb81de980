/* SPDX-License-Identifier: MIT */
/* Copies of two and three dimensions, of linear memory only (no arrays). */
#include "tests/simgpu/sim.h"

/* One side, as the two structs of the API have it. */
struct place {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    size_t x, y, z, pitch, height;
};

/* Its first byte; pitch and plane: how far apart rows and planes lie. */
static CUresult locate(const struct place *p, size_t width, size_t rows, size_t planes,
                       struct sim_side *side, size_t *pitch, size_t *plane)
{
    uint64_t first = p->type == CU_MEMORYTYPE_HOST ? (uintptr_t)p->host : p->device;

    if (p->type == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    *pitch = p->pitch ? p->pitch : width + p->x;
    *plane = *pitch * (p->height ? p->height : rows + p->y);
    if (*pitch < width + p->x || *plane < *pitch * rows)
        return CUDA_ERROR_INVALID_VALUE;
    first += p->z * *plane + p->y * *pitch + p->x;
    return sim_side(first, (planes - 1) * *plane + (rows - 1) * *pitch + width, side);
}

static CUresult box(const struct place *to, const struct place *from, size_t width, size_t rows,
                    size_t planes, CUstream handle, bool per_thread, bool sync)
{
    struct sim_work w = {.kind = SIM_COPY};
    struct sim_side dst, src;
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r || !width || !rows || !planes)
        return r;
    r = locate(to, width, rows, planes, &dst, &w.copy.dst_pitch, &w.copy.dst_plane);
    if (r == CUDA_SUCCESS)
        r = locate(from, width, rows, planes, &src, &w.copy.src_pitch, &w.copy.src_plane);
    if (r)
        return r;
    w.copy.dst = dst.at;
    w.copy.src = src.at;
    w.copy.width = width;
    w.copy.rows = rows;
    w.copy.planes = planes;
    return sim_copy(s, sync, &w, &dst, &src);
}

static CUresult plane(const CUDA_MEMCPY2D *c, CUstream s, bool per_thread, bool sync)
{
    struct place to = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes,
                       c->dstY,          0,          c->dstPitch,  0};
    struct place from = {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes,
                         c->srcY,          0,          c->srcPitch,  0};

    return box(&to, &from, c->WidthInBytes, c->Height, 1, s, per_thread, sync);
}

static CUresult solid(const CUDA_MEMCPY3D *c, CUstream s, bool per_thread, bool sync)
{
    struct place to = {c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes,
                       c->dstY,          c->dstZ,    c->dstPitch,  c->dstHeight};
    struct place from = {c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes,
                         c->srcY,          c->srcZ,    c->srcPitch,  c->srcHeight};

    return box(&to, &from, c->WidthInBytes, c->Height, c->Depth, s, per_thread, sync);
}

#define SYNC(name, shape, type, per_thread)                                                        \
    EXPORT CUresult name(const type *c)                                                            \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r : sim_leave(shape(c, NULL, per_thread, true));                                \
    }
#define ASYNC(name, shape, type, per_thread)                                                       \
    EXPORT CUresult name(const type *c, CUstream s)                                                \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r : sim_leave(shape(c, s, per_thread, false));                                  \
    }
SYNC(cuMemcpy2D_v2, plane, CUDA_MEMCPY2D, false)
SYNC(cuMemcpy2D_v2_ptds, plane, CUDA_MEMCPY2D, true)
SYNC(cuMemcpy2DUnaligned_v2, plane, CUDA_MEMCPY2D, false)
SYNC(cuMemcpy2DUnaligned_v2_ptds, plane, CUDA_MEMCPY2D, true)
SYNC(cuMemcpy3D_v2, solid, CUDA_MEMCPY3D, false)
SYNC(cuMemcpy3D_v2_ptds, solid, CUDA_MEMCPY3D, true)
ASYNC(cuMemcpy2DAsync_v2, plane, CUDA_MEMCPY2D, false)
ASYNC(cuMemcpy2DAsync_v2_ptsz, plane, CUDA_MEMCPY2D, true)
ASYNC(cuMemcpy3DAsync_v2, solid, CUDA_MEMCPY3D, false)
ASYNC(cuMemcpy3DAsync_v2_ptsz, solid, CUDA_MEMCPY3D, true)

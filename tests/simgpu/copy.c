/* SPDX-License-Identifier: MIT */
/* Copies and memsets, with native's promises (measured on an H200, driver 13.0):
 *
 *   sync, any                   done at return; while it waits, other threads' launches are held
 *   Async H2D from pageable     below 3 MiB the source is read at the call; from there on the call
 *                               waits for its stream; and it waits when 4 MiB are read and not yet
 *                               copied
 *   Async D2H to pageable       done at return
 *   pinned or managed host side read or written in stream order
 *
 * Speeds are a quarter of that GPU's, so that a small machine's processors can play the host. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>
#include <string.h>

enum { ASYNC_BLOCKS_FROM = 3 << 20, SNAPSHOTS = 4 << 20 };

/* GB/s, that is bytes a nanosecond. */
static const double pinned_speed = 13.7, pageable_h2d = 1.7, pageable_d2h = 3.5, device_speed = 500;

/* One side of a copy: its bytes, and whether they are the device's. */
struct side {
    char *at;
    bool device, pageable;
};

static CUresult find(uint64_t address, size_t bytes, struct side *side)
{
    struct sim_region *r = sim_region_at(address);

    *side = (struct side){(char *)(uintptr_t)address, false, true};
    if (!r)
        return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    side->device = r->kind == SIM_DEVICE;
    side->pageable = false;
    side->at = sim_alias(address, bytes);
    return side->at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void price(struct sim_work *w, const struct side *dst, const struct side *src)
{
    double bytes = (double)w->copy.width * (double)w->copy.rows, speed = pinned_speed;

    if (dst->device && src->device) {
        w->engine = SIM_D2D;
        speed = device_speed;
    } else {
        w->engine = dst->device ? SIM_H2D : SIM_D2H;
        if (dst->device && src->pageable)
            speed = pageable_h2d;
        if (!dst->device && dst->pageable)
            speed = pageable_d2h;
    }
    w->cost_ns = (uint64_t)(bytes / speed) + 1500;
}

static void wait_holding_launches(struct sim_op *op)
{
    sim.copying_thread = sim_thread();
    sim.copying_depth++;
    sim_wait_op(op, "a synchronous copy");
    if (--sim.copying_depth == 0)
        sim.copying_thread = 0;
    pthread_cond_broadcast(&sim.changed);
}

/* Room for a snapshot: waits for the oldest ones. */
static void make_room(size_t bytes)
{
    while (sim.snapshot_bytes + bytes > SNAPSHOTS) {
        struct sim_op *op = sim.first;

        while (op && !(op->work.kind == SIM_COPY && op->work.copy.owned))
            op = op->next;
        if (!op)
            return;
        sim_wait_op(op, "an Async copy that finds the driver's staging memory full");
    }
}

/* w: kind, dst and src addresses, and the shape; dst and src say where they are. */
static CUresult copy(struct CUstream_st *s, bool sync, struct sim_work *w, const struct side *dst,
                     const struct side *src)
{
    size_t bytes = w->copy.width * w->copy.rows;
    bool blocks = sync || dst->pageable || (src->pageable && bytes >= ASYNC_BLOCKS_FROM);
    struct sim_op *op;
    CUresult r;

    if (sync) {
        r = sim_implicit(s->context);
        if (r == CUDA_SUCCESS)
            r = sim_unsafe();
        if (r)
            return r;
    }
    if (!bytes)
        return CUDA_SUCCESS;
    price(w, dst, src);
    if (s->capture)
        return sim_submit(s, w, NULL);
    if (!blocks && src->pageable && w->copy.rows == 1) {
        make_room(bytes);
        sim.snapshot_bytes += bytes;
        w->copy.owned = malloc(bytes);
        memcpy(w->copy.owned, w->copy.src, bytes);
        w->copy.src = w->copy.owned;
    }
    r = sim_submit(s, w, &op);
    if (r)
        return r;
    if (sync)
        wait_holding_launches(op);
    else if (blocks)
        sim_wait_op(op, "an Async copy with pageable memory");
    sim_unref(op);
    return CUDA_SUCCESS;
}

static CUresult linear(CUstream handle, bool per_thread, bool sync, uint64_t dst, uint64_t src,
                       size_t bytes, int need)
{
    struct sim_work w = {.kind = SIM_COPY};
    struct CUstream_st *s;
    struct side to, from;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r == CUDA_SUCCESS && bytes == 0)
        return CUDA_SUCCESS;
    if (r == CUDA_SUCCESS)
        r = find(dst, bytes, &to);
    if (r == CUDA_SUCCESS)
        r = find(src, bytes, &from);
    if (r)
        return r;
    /* The device side of the H and D forms must be memory that the driver knows. */
    if ((need & 1 && to.pageable) || (need & 2 && from.pageable))
        return CUDA_ERROR_INVALID_VALUE;
    w.copy.dst = to.at;
    w.copy.src = from.at;
    w.copy.width = w.copy.dst_pitch = w.copy.src_pitch = bytes;
    w.copy.rows = 1;
    return copy(s, sync, &w, &to, &from);
}

#define LINEAR(name, dst_type, src_type, need)                                                     \
    EXPORT CUresult name##_v2(dst_type dst, src_type src, size_t n)                                \
    {                                                                                              \
        CUresult r = sim_enter(#name "_v2");                                                       \
        return r ? r                                                                               \
                 : sim_leave(linear(NULL, false, true, (uintptr_t)dst, (uintptr_t)src, n, need));  \
    }                                                                                              \
    EXPORT CUresult name##_v2_ptds(dst_type dst, src_type src, size_t n)                           \
    {                                                                                              \
        CUresult r = sim_enter(#name "_v2_ptds");                                                  \
        return r ? r                                                                               \
                 : sim_leave(linear(NULL, true, true, (uintptr_t)dst, (uintptr_t)src, n, need));   \
    }                                                                                              \
    EXPORT CUresult name##Async_v2(dst_type dst, src_type src, size_t n, CUstream s)               \
    {                                                                                              \
        CUresult r = sim_enter(#name "Async_v2");                                                  \
        return r ? r                                                                               \
                 : sim_leave(linear(s, false, false, (uintptr_t)dst, (uintptr_t)src, n, need));    \
    }                                                                                              \
    EXPORT CUresult name##Async_v2_ptsz(dst_type dst, src_type src, size_t n, CUstream s)          \
    {                                                                                              \
        CUresult r = sim_enter(#name "Async_v2_ptsz");                                             \
        return r ? r : sim_leave(linear(s, true, false, (uintptr_t)dst, (uintptr_t)src, n, need)); \
    }
LINEAR(cuMemcpyHtoD, CUdeviceptr, const void *, 1)
LINEAR(cuMemcpyDtoH, void *, CUdeviceptr, 2)
LINEAR(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr, 3)

EXPORT CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
    CUresult r = sim_enter("cuMemcpy");

    return r ? r : sim_leave(linear(NULL, false, true, dst, src, n, 0));
}

EXPORT CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
    CUresult r = sim_enter("cuMemcpy_ptds");

    return r ? r : sim_leave(linear(NULL, true, true, dst, src, n, 0));
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
    CUresult r = sim_enter("cuMemcpyAsync");

    return r ? r : sim_leave(linear(s, false, false, dst, src, n, 0));
}

EXPORT CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)
{
    CUresult r = sim_enter("cuMemcpyAsync_ptsz");

    return r ? r : sim_leave(linear(s, true, false, dst, src, n, 0));
}

EXPORT CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                             CUcontext src_context, size_t n)
{
    CUresult r = sim_enter("cuMemcpyPeer");

    return r ? r : sim_leave(linear(NULL, false, true, dst, src, n, 3));
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                  CUcontext src_context, size_t n, CUstream s)
{
    CUresult r = sim_enter("cuMemcpyPeerAsync");

    return r ? r : sim_leave(linear(s, false, false, dst, src, n, 3));
}

static CUresult plane(const CUDA_MEMCPY2D *c, CUstream handle, bool per_thread, bool sync)
{
    uint64_t dst = c->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)c->dstHost : c->dstDevice;
    uint64_t src = c->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)c->srcHost : c->srcDevice;
    size_t dst_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
    size_t src_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
    struct sim_work w = {.kind = SIM_COPY};
    struct CUstream_st *s;
    struct side to, from;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r)
        return r;
    if (c->Height == 0 || c->WidthInBytes == 0)
        return CUDA_SUCCESS;
    dst += c->dstY * dst_pitch + c->dstXInBytes;
    src += c->srcY * src_pitch + c->srcXInBytes;
    r = find(dst, dst_pitch * (c->Height - 1) + c->WidthInBytes, &to);
    if (r == CUDA_SUCCESS)
        r = find(src, src_pitch * (c->Height - 1) + c->WidthInBytes, &from);
    if (r)
        return r;
    w.copy.dst = to.at;
    w.copy.src = from.at;
    w.copy.width = c->WidthInBytes;
    w.copy.rows = c->Height;
    w.copy.dst_pitch = dst_pitch;
    w.copy.src_pitch = src_pitch;
    /* A pitched snapshot is not worth its lines: such a copy waits, which native may do as well. */
    return copy(s, sync || (from.pageable && !s->capture), &w, &to, &from);
}

#define PLANE(name, per_thread)                                                                    \
    EXPORT CUresult name(const CUDA_MEMCPY2D *c)                                                   \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r : sim_leave(plane(c, NULL, per_thread, true));                                \
    }
PLANE(cuMemcpy2D_v2, false)
PLANE(cuMemcpy2D_v2_ptds, true)
PLANE(cuMemcpy2DUnaligned_v2, false)
PLANE(cuMemcpy2DUnaligned_v2_ptds, true)

#define PLANE_ASYNC(name, per_thread)                                                              \
    EXPORT CUresult name(const CUDA_MEMCPY2D *c, CUstream s)                                       \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r : sim_leave(plane(c, s, per_thread, false));                                  \
    }
PLANE_ASYNC(cuMemcpy2DAsync_v2, false)
PLANE_ASYNC(cuMemcpy2DAsync_v2_ptsz, true)

/* --- memsets: the legacy stream's do not block
 * ------------------------------------------------------ */

static CUresult fill(CUstream handle, bool per_thread, CUdeviceptr dst, size_t pitch,
                     uint32_t value, unsigned size, size_t n, size_t rows)
{
    struct sim_work w = {.kind = SIM_FILL, .engine = SIM_COMPUTE};
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r || n == 0 || rows == 0)
        return r;
    w.fill.dst = sim_alias(dst, (rows - 1) * pitch + n * size);
    if (!w.fill.dst)
        return CUDA_ERROR_INVALID_VALUE;
    w.fill.width = n * size;
    w.fill.rows = rows;
    w.fill.pitch = pitch;
    w.fill.size = size;
    memcpy(w.fill.pattern, &value, 4);
    w.cost_ns = (uint64_t)((double)(n * size * rows) / device_speed) + 1500;
    return sim_submit(s, &w, NULL);
}

#define FILL(bits, type)                                                                           \
    EXPORT CUresult cuMemsetD##bits##_v2(CUdeviceptr dst, type v, size_t n)                        \
    {                                                                                              \
        CUresult r = sim_enter("cuMemsetD" #bits "_v2");                                           \
        return r ? r : sim_leave(fill(NULL, false, dst, 0, v, bits / 8, n, 1));                    \
    }                                                                                              \
    EXPORT CUresult cuMemsetD##bits##_v2_ptds(CUdeviceptr dst, type v, size_t n)                   \
    {                                                                                              \
        CUresult r = sim_enter("cuMemsetD" #bits "_v2_ptds");                                      \
        return r ? r : sim_leave(fill(NULL, true, dst, 0, v, bits / 8, n, 1));                     \
    }                                                                                              \
    EXPORT CUresult cuMemsetD##bits##Async(CUdeviceptr dst, type v, size_t n, CUstream s)          \
    {                                                                                              \
        CUresult r = sim_enter("cuMemsetD" #bits "Async");                                         \
        return r ? r : sim_leave(fill(s, false, dst, 0, v, bits / 8, n, 1));                       \
    }                                                                                              \
    EXPORT CUresult cuMemsetD##bits##Async_ptsz(CUdeviceptr dst, type v, size_t n, CUstream s)     \
    {                                                                                              \
        CUresult r = sim_enter("cuMemsetD" #bits "Async_ptsz");                                    \
        return r ? r : sim_leave(fill(s, true, dst, 0, v, bits / 8, n, 1));                        \
    }
FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned int)

EXPORT CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char v, size_t n,
                                size_t rows)
{
    CUresult r = sim_enter("cuMemsetD2D8_v2");

    return r ? r : sim_leave(fill(NULL, false, dst, pitch, v, 1, n, rows));
}

EXPORT CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char v, size_t n,
                                  size_t rows, CUstream s)
{
    CUresult r = sim_enter("cuMemsetD2D8Async");

    return r ? r : sim_leave(fill(s, false, dst, pitch, v, 1, n, rows));
}

/* SPDX-License-Identifier: MIT */
/* Copies, with native's promises (measured on an H200, driver 13.0):
 *
 *   sync, to or from the host   done at return; while it waits, other threads' launches are held
 *   sync, between devices       queued on the legacy stream, and the call returns
 *   Async H2D from pageable     below 3 MiB the source is read at the call; from there on the call
 *                               waits for its stream; and it waits when 4 MiB are read and not yet
 *                               copied
 *   Async D2H to pageable       done at return
 *   pinned or managed host side read or written in stream order
 *   SYNC_MEMOPS memory          done at return, whatever the form
 *
 * Speeds are a quarter of that GPU's, so that a small machine's processors can play the host. */
#include "tests/simgpu/sim.h"

#include <stdlib.h>
#include <string.h>

enum { ASYNC_BLOCKS_FROM = 3 << 20, SNAPSHOTS = 4 << 20 };

/* GB/s, that is bytes a nanosecond. */
static const double pinned_speed = 13.7, pageable_h2d = 1.7, pageable_d2h = 3.5;

CUresult sim_side(uint64_t address, size_t bytes, struct sim_side *side)
{
    struct sim_region *r = sim_region_at(address);

    *side = (struct sim_side){(char *)(uintptr_t)address, false, true, false};
    if (!r)
        return address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    side->device = r->kind == SIM_DEVICE;
    side->pageable = false;
    side->sync_memops = r->sync_memops;
    side->at = sim_alias(address, bytes);
    return side->at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void price(struct sim_work *w, const struct sim_side *dst, const struct sim_side *src)
{
    double bytes = (double)(w->copy.width * w->copy.rows * w->copy.planes), speed = pinned_speed;

    if (dst->device && src->device) {
        w->engine = SIM_D2D;
        speed = SIM_DEVICE_SPEED;
    } else {
        w->engine = dst->device ? SIM_H2D : SIM_D2H;
        if (dst->device && src->pageable)
            speed = pageable_h2d;
        if (!dst->device && dst->pageable)
            speed = pageable_d2h;
    }
    w->cost_ns = (uint64_t)(bytes / speed) + 1500;
}

static __thread unsigned own_copying;

void sim_hold(void)
{
    while (sim.copying > own_copying)
        pthread_cond_wait(&sim.changed, &sim.lock);
}

static void wait_holding_launches(struct sim_op *op)
{
    sim.copying++;
    own_copying++;
    sim_wait_op(op, "a synchronous copy");
    own_copying--;
    sim.copying--;
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

static void take_snapshot(struct sim_work *w, size_t bytes)
{
    size_t width = w->copy.width, rows = w->copy.rows;
    char *to = malloc(bytes);

    for (size_t i = 0; i < rows * w->copy.planes; i++)
        memcpy(to + i * width,
               w->copy.src + i / rows * w->copy.src_plane + i % rows * w->copy.src_pitch, width);
    w->copy.src = w->copy.owned = to;
    w->copy.src_pitch = width;
    w->copy.src_plane = width * rows;
}

/* w: kind, dst and src addresses, and the shape; dst and src say where they are. */
CUresult sim_copy(struct CUstream_st *s, bool sync, struct sim_work *w, const struct sim_side *dst,
                  const struct sim_side *src)
{
    size_t bytes = w->copy.width * w->copy.rows * w->copy.planes;
    bool between = dst->device && src->device;
    bool blocks = dst->pageable || (src->pageable && bytes >= ASYNC_BLOCKS_FROM) ||
                  dst->sync_memops || src->sync_memops || s->context->flags & CU_CTX_SYNC_MEMOPS;
    struct sim_op *op;
    CUresult r;

    if (sync) {
        r = s == s->context->legacy ? sim_implicit(s->context) : sim_capture_asked(s, NULL);
        if (r == CUDA_SUCCESS)
            r = sim_unsafe();
        if (r)
            return r;
    }
    if (!bytes)
        return CUDA_SUCCESS;
    if (!sync)
        sim_hold();
    price(w, dst, src);
    if (s->capture)
        return sim_submit(s, w, NULL);
    if (!blocks && !sync && src->pageable) {
        make_room(bytes);
        sim.snapshot_bytes += bytes;
        take_snapshot(w, bytes);
    }
    r = sim_submit(s, w, &op);
    if (r)
        return r;
    if (sync && !between)
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
    struct sim_side to, from;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r == CUDA_SUCCESS && bytes == 0)
        return CUDA_SUCCESS;
    if (r == CUDA_SUCCESS)
        r = sim_side(dst, bytes, &to);
    if (r == CUDA_SUCCESS)
        r = sim_side(src, bytes, &from);
    if (r)
        return r;
    /* The device side of the H and D forms must be memory that the driver knows. */
    if ((need & 1 && to.pageable) || (need & 2 && from.pageable))
        return CUDA_ERROR_INVALID_VALUE;
    w.copy.dst = to.at;
    w.copy.src = from.at;
    w.copy.width = w.copy.dst_pitch = w.copy.src_pitch = bytes;
    w.copy.rows = w.copy.planes = 1;
    return sim_copy(s, sync, &w, &to, &from);
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

#define PEER(suffix_sync, suffix_async, per_thread)                                                \
    EXPORT CUresult cuMemcpyPeer##suffix_sync(CUdeviceptr dst, CUcontext dst_context,              \
                                              CUdeviceptr src, CUcontext src_context, size_t n)    \
    {                                                                                              \
        CUresult r = sim_enter("cuMemcpyPeer" #suffix_sync);                                       \
        return r ? r : sim_leave(linear(NULL, per_thread, true, dst, src, n, 3));                  \
    }                                                                                              \
    EXPORT CUresult cuMemcpyPeerAsync##suffix_async(CUdeviceptr dst, CUcontext dst_context,        \
                                                    CUdeviceptr src, CUcontext src_context,        \
                                                    size_t n, CUstream s)                          \
    {                                                                                              \
        CUresult r = sim_enter("cuMemcpyPeerAsync" #suffix_async);                                 \
        return r ? r : sim_leave(linear(s, per_thread, false, dst, src, n, 3));                    \
    }
PEER(, , false)
PEER(_ptds, _ptsz, true)

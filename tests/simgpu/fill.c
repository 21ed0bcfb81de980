/* SPDX-License-Identifier: MIT */
/* Memsets. None waits for its stream, the legacy stream's neither (measured). */
#include "tests/simgpu/sim.h"

#include <string.h>

static CUresult fill(CUstream handle, bool per_thread, CUdeviceptr dst, size_t pitch,
                     uint32_t value, unsigned size, size_t n, size_t rows)
{
    struct sim_work w = {.kind = SIM_FILL, .engine = SIM_COMPUTE};
    struct sim_side side;
    struct CUstream_st *s;
    struct sim_op *op;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r || n == 0 || rows == 0)
        return r;
    r = sim_side(dst, (rows - 1) * pitch + n * size, &side);
    if (r || side.pageable)
        return CUDA_ERROR_INVALID_VALUE;
    sim_hold();
    w.fill.dst = side.at;
    w.fill.width = n * size;
    w.fill.rows = rows;
    w.fill.pitch = pitch;
    w.fill.size = size;
    memcpy(w.fill.pattern, &value, 4);
    w.cost_ns = (uint64_t)((double)(n * size * rows) / SIM_DEVICE_SPEED) + 1500;
    r = sim_submit(s, &w, &op);
    if (op && side.sync_memops)
        sim_wait_op(op, "a memset of SYNC_MEMOPS memory");
    sim_unref(op);
    return r;
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

#define FILL_PLANE(suffix_sync, suffix_async, per_thread)                                          \
    EXPORT CUresult cuMemsetD2D8##suffix_sync(CUdeviceptr dst, size_t pitch, unsigned char v,      \
                                              size_t n, size_t rows)                               \
    {                                                                                              \
        CUresult r = sim_enter("cuMemsetD2D8" #suffix_sync);                                       \
        return r ? r : sim_leave(fill(NULL, per_thread, dst, pitch, v, 1, n, rows));               \
    }                                                                                              \
    EXPORT CUresult cuMemsetD2D8##suffix_async(CUdeviceptr dst, size_t pitch, unsigned char v,     \
                                               size_t n, size_t rows, CUstream s)                  \
    {                                                                                              \
        CUresult r = sim_enter("cuMemsetD2D8" #suffix_async);                                      \
        return r ? r : sim_leave(fill(s, per_thread, dst, pitch, v, 1, n, rows));                  \
    }
FILL_PLANE(_v2, Async, false)
FILL_PLANE(_v2_ptds, Async_ptsz, true)

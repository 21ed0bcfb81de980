/* SPDX-License-Identifier: MIT */
/* Modules, libraries and launches. An image is not read: a kernel is found by its name. Module
 * globals are made as they are asked for, 64 KiB each, and live as long as the process. */
#include "tests/simgpu/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUmod_st {
    int unused;
};

static CUresult any(void **out)
{
    static struct CUmod_st one;

    *out = &one;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    CUresult r = sim_enter("cuModuleLoadData");

    return r ? r : sim_leave(any((void **)module));
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n,
                                   CUjit_option *options, void **values)
{
    CUresult r = sim_enter("cuModuleLoadDataEx");

    return r ? r : sim_leave(any((void **)module));
}

EXPORT CUresult cuModuleUnload(CUmodule module)
{
    CUresult r = sim_enter("cuModuleUnload");

    return r ? r : sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *a, void **b,
                                  unsigned c, CUlibraryOption *d, void **e, unsigned f)
{
    CUresult r = sim_enter("cuLibraryLoadData");

    return r ? r : sim_leave(any((void **)library));
}

EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    CUresult r = sim_enter("cuLibraryUnload");

    return r ? r : sim_leave(CUDA_SUCCESS);
}

/* A function's handle is its row in the table of kernels. */
static CUresult kernel(const struct sim_kernel **out, const char *name)
{
    *out = sim_kernel_named(name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult r = sim_enter("cuModuleGetFunction");

    return r ? r : sim_leave(kernel((const struct sim_kernel **)(void *)function, name));
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *function, CUlibrary library, const char *name)
{
    CUresult r = sim_enter("cuLibraryGetKernel");

    return r ? r : sim_leave(kernel((const struct sim_kernel **)(void *)function, name));
}

EXPORT CUresult cuKernelGetFunction(CUfunction *function, CUkernel k)
{
    CUresult r = sim_enter("cuKernelGetFunction");

    if (r)
        return r;
    *function = (CUfunction)k;
    return sim_leave(sim_is_kernel((const struct sim_kernel *)k) ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_INVALID_HANDLE);
}

static CUresult param_info(const struct sim_kernel *k, size_t index, size_t *offset, size_t *size)
{
    if (index >= k->count)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = k->params[index].offset;
    if (size)
        *size = k->params[index].size;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    CUresult r = sim_enter("cuFuncGetParamInfo");

    return r ? r : sim_leave(param_info((const struct sim_kernel *)f, index, offset, size));
}

EXPORT CUresult cuKernelGetParamInfo(CUkernel f, size_t index, size_t *offset, size_t *size)
{
    CUresult r = sim_enter("cuKernelGetParamInfo");

    return r ? r : sim_leave(param_info((const struct sim_kernel *)f, index, offset, size));
}

static CUresult global(CUdeviceptr *p, size_t *bytes, const char *name)
{
    enum { GLOBALS = 32, BYTES = 64 << 10 };
    static struct {
        char name[64];
        CUdeviceptr p;
    } globals[GLOBALS];

    for (int i = 0; i < GLOBALS; i++) {
        if (!globals[i].name[0]) {
            void *memory = calloc(1, BYTES);
            struct sim_region *r = calloc(1, sizeof *r);

            snprintf(globals[i].name, sizeof globals[i].name, "%s", name);
            *r = (struct sim_region){.start = (uintptr_t)memory,
                                     .bytes = BYTES,
                                     .alias = memory,
                                     .kind = SIM_DEVICE,
                                     .device = sim_current() ? sim_current()->device : 0,
                                     .next = sim.regions};
            sim.regions = r;
            globals[i].p = (uintptr_t)memory;
        }
        if (strcmp(globals[i].name, name) == 0) {
            if (p)
                *p = globals[i].p;
            if (bytes)
                *bytes = BYTES;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *bytes, CUmodule module,
                                     const char *name)
{
    CUresult r = sim_enter("cuModuleGetGlobal_v2");

    return r ? r : sim_leave(global(p, bytes, name));
}

EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *p, size_t *bytes, CUlibrary library,
                                   const char *name)
{
    CUresult r = sim_enter("cuLibraryGetGlobal");

    return r ? r : sim_leave(global(p, bytes, name));
}

EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *p, size_t *bytes, CUlibrary library,
                                    const char *name)
{
    CUresult r = sim_enter("cuLibraryGetManaged");

    return r ? r : sim_leave(global(p, bytes, name));
}

/* --- launches: held while another thread is in a synchronous copy (measured, facts of the H200)
 * ----- */

static CUresult launch(CUstream handle, bool per_thread, const struct sim_kernel *k, void **params,
                       void **extra)
{
    struct sim_work w = {.kind = SIM_KERNEL, .engine = SIM_COMPUTE};
    struct CUstream_st *s;
    CUresult r = sim_stream(handle, per_thread, &s);

    if (r)
        return r;
    if (!sim_is_kernel(k))
        return CUDA_ERROR_INVALID_HANDLE;
    while (sim.copying_depth && sim.copying_thread != sim_thread())
        pthread_cond_wait(&sim.changed, &sim.lock);
    w.kernel.kernel = k;
    if (extra && extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
        memcpy(w.kernel.params, extra[1], *(size_t *)extra[3]);
    else
        for (unsigned i = 0; i < k->count; i++)
            memcpy(w.kernel.params + k->params[i].offset, params[i], k->params[i].size);
    w.cost_ns = k->cost_ns(w.kernel.params);
    return sim_submit(s, &w, NULL);
}

#define LAUNCH(name, per_thread)                                                                   \
    EXPORT CUresult name(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,         \
                         unsigned by, unsigned bz, unsigned shared, CUstream s, void **params,     \
                         void **extra)                                                             \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r                                                                               \
                 : sim_leave(launch(s, per_thread, (const struct sim_kernel *)f, params, extra));  \
    }
LAUNCH(cuLaunchKernel, false)
LAUNCH(cuLaunchKernel_ptsz, true)

#define LAUNCH_EX(name, per_thread)                                                                \
    EXPORT CUresult name(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)       \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r                                                                               \
                 : sim_leave(launch(c->hStream, per_thread, (const struct sim_kernel *)f, params,  \
                                    extra));                                                       \
    }
LAUNCH_EX(cuLaunchKernelEx, false)
LAUNCH_EX(cuLaunchKernelEx_ptsz, true)

#define LAUNCH_COOPERATIVE(name, per_thread)                                                       \
    EXPORT CUresult name(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,         \
                         unsigned by, unsigned bz, unsigned shared, CUstream s, void **params)     \
    {                                                                                              \
        CUresult r = sim_enter(#name);                                                             \
        return r ? r                                                                               \
                 : sim_leave(launch(s, per_thread, (const struct sim_kernel *)f, params, NULL));   \
    }
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel, false)
LAUNCH_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

/* SPDX-License-Identifier: MIT */
/* Modules, libraries and launches. An image is not read: a kernel is found by its name. Module
 * globals are made as they are asked for, 64 KiB each, and live as long as the process. */
#include "tests/simgpu/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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

EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    CUresult r = sim_enter("cuModuleLoadFatBinary");

    return r ? r : sim_leave(any((void **)module));
}

EXPORT CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    CUresult r = sim_enter("cuLibraryGetModule");

    return r ? r : sim_leave(any((void **)module));
}

EXPORT CUresult cuFuncGetModule(CUmodule *module, CUfunction f)
{
    CUresult r = sim_enter("cuFuncGetModule");

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

EXPORT CUresult cuFuncGetName(const char **name, CUfunction f)
{
    CUresult r = sim_enter("cuFuncGetName");

    if (r)
        return r;
    if (!sim_is_kernel((const struct sim_kernel *)f))
        return sim_leave(CUDA_ERROR_INVALID_HANDLE);
    *name = ((const struct sim_kernel *)f)->name;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuFuncLoad(CUfunction f)
{
    CUresult r = sim_enter("cuFuncLoad");

    return r ? r : sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction f)
{
    CUresult r = sim_enter("cuFuncGetAttribute");

    if (r)
        return r;
    *value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return sim_leave(CUDA_SUCCESS);
}

EXPORT CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value)
{
    CUresult r = sim_enter("cuFuncSetAttribute");

    return r ? r : sim_leave(CUDA_SUCCESS);
}

static CUresult param_info(const struct sim_kernel *k, size_t index, size_t *offset, size_t *size)
{
    if (!sim_is_kernel(k))
        return CUDA_ERROR_INVALID_HANDLE;
    if (index >= k->count || !offset)
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

/* One address a name and device. */
static CUresult global(CUdeviceptr *p, size_t *bytes, const char *name, bool is_managed)
{
    enum { GLOBALS = 64, BYTES = 64 << 10 };
    static struct {
        char name[64];
        bool is_managed;
        int device;
        CUdeviceptr p;
    } globals[GLOBALS];
    struct CUctx_st *c;
    CUresult r = sim_need_context(&c);
    int i = 0;

    if (r)
        return r;
    while (i < GLOBALS && globals[i].p &&
           (strcmp(globals[i].name, name) != 0 || globals[i].is_managed != is_managed ||
            (!is_managed && globals[i].device != c->device)))
        i++;
    if (i == GLOBALS)
        return CUDA_ERROR_NOT_FOUND;
    if (!globals[i].p) {
        char *memory = is_managed ? sim_map(BYTES, PROT_READ | PROT_WRITE) : NULL;
        struct sim_region *region = is_managed ? sim_add_region((uintptr_t)memory, BYTES, memory,
                                                                SIM_MANAGED, NULL, c->device)
                                               : sim_device_memory(BYTES, NULL, c->device);

        snprintf(globals[i].name, sizeof globals[i].name, "%s", name);
        globals[i].is_managed = is_managed;
        globals[i].device = c->device;
        globals[i].p = region->start;
        region->origin = SIM_GLOBAL;
    }
    if (p)
        *p = globals[i].p;
    if (bytes)
        *bytes = BYTES;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *bytes, CUmodule module,
                                     const char *name)
{
    CUresult r = sim_enter("cuModuleGetGlobal_v2");

    return r ? r : sim_leave(global(p, bytes, name, false));
}

EXPORT CUresult cuLibraryGetGlobal(CUdeviceptr *p, size_t *bytes, CUlibrary library,
                                   const char *name)
{
    CUresult r = sim_enter("cuLibraryGetGlobal");

    return r ? r : sim_leave(global(p, bytes, name, false));
}

EXPORT CUresult cuLibraryGetManaged(CUdeviceptr *p, size_t *bytes, CUlibrary library,
                                    const char *name)
{
    CUresult r = sim_enter("cuLibraryGetManaged");

    return r ? r : sim_leave(global(p, bytes, name, true));
}

/* --- launches --- */

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
    sim_hold();
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

/* SPDX-License-Identifier: MIT */
/* Launches: by the handle that generated code keeps, or by the address of the host's stub. */

#include "cudart.h"

/* What `<<<grid, block, shared, stream>>>` pushed and the stub will pop. Launches nest (an argument
 * may itself launch), but never deeper than this in practice. */
struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
};

static __thread struct configuration pushed[8];
static __thread unsigned depth;

RT_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                            cudaStream_t stream);
RT_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                              void *stream);

/* Not 0: the call site skips the launch. */
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    if (depth == sizeof(pushed) / sizeof(pushed[0]))
        return rt_done((CUresult)cudaErrorInvalidConfiguration);
    pushed[depth++] = (struct configuration){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    const struct configuration *c;

    if (depth == 0)
        return rt_done((CUresult)cudaErrorMissingConfiguration);
    c = &pushed[--depth];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    *(cudaStream_t *)stream = c->stream;
    return cudaSuccess;
}

static CUresult launch(const struct rt_driver *d, CUfunction fn, dim3 g, dim3 b, void **args,
                       size_t shared, cudaStream_t s)
{
    CUresult r =
        d->cuLaunchKernel(fn, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, s, args, NULL);

    /* What was passed through as a handle was none. */
    return r == CUDA_ERROR_INVALID_HANDLE ? (CUresult)cudaErrorInvalidDeviceFunction : r;
}

static CUresult launch_handle(const struct rt_driver *d, cudaKernel_t k, dim3 g, dim3 b,
                              void **args, size_t shared, cudaStream_t s)
{
    CUfunction fn = NULL;
    CUresult r = rt_kernel_function(k, &fn);

    return r == CUDA_SUCCESS ? launch(d, fn, g, b, args, shared, s) : r;
}

/* `stub` may also be a handle from cudaGetKernel, which cudaLaunchKernel takes as well. */
static CUresult function_of(const void *stub, CUfunction *fn)
{
    CUresult r = rt_kernel(stub, fn);

    if (r == (CUresult)cudaErrorInvalidDeviceFunction && stub)
        r = rt_kernel_function((cudaKernel_t)(size_t)stub, fn);
    return r;
}

static CUresult launch_stub(const struct rt_driver *d, const void *stub, dim3 g, dim3 b,
                            void **args, size_t shared, cudaStream_t s)
{
    CUfunction fn = NULL;
    CUresult r = function_of(stub, &fn);

    return r == CUDA_SUCCESS ? launch(d, fn, g, b, args, shared, s) : r;
}

static CUresult launch_cooperative(const struct rt_driver *d, const void *stub, dim3 g, dim3 b,
                                   void **args, size_t shared, cudaStream_t s)
{
    CUfunction fn = NULL;
    CUresult r = function_of(stub, &fn);

    if (r != CUDA_SUCCESS)
        return r;
    return d->cuLaunchCooperativeKernel(fn, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned)shared, s,
                                        args);
}

/* Attributes have one layout in both interfaces. */
static CUresult launch_ex(const struct rt_driver *d, const cudaLaunchConfig_t *c, const void *stub,
                          void **args)
{
    CUfunction fn = NULL;
    CUresult r = function_of(stub, &fn);
    CUlaunchConfig config = {
        .gridDimX = c->gridDim.x,
        .gridDimY = c->gridDim.y,
        .gridDimZ = c->gridDim.z,
        .blockDimX = c->blockDim.x,
        .blockDimY = c->blockDim.y,
        .blockDimZ = c->blockDim.z,
        .sharedMemBytes = (unsigned)c->dynamicSmemBytes,
        .hStream = c->stream,
        .attrs = (CUlaunchAttribute *)(void *)c->attrs,
        .numAttrs = c->numAttrs,
    };

    return r == CUDA_SUCCESS ? d->cuLaunchKernelEx(&config, fn, args, NULL) : r;
}

RT_TWINS(__cudaLaunchKernel, _ptsz,
         (cudaKernel_t k, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s),
         launch_handle(d, k, g, b, args, shared, s))
RT_TWINS(cudaLaunchKernel, _ptsz,
         (const void *stub, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s),
         launch_stub(d, stub, g, b, args, shared, s))
RT_TWINS(cudaLaunchCooperativeKernel, _ptsz,
         (const void *stub, dim3 g, dim3 b, void **args, size_t shared, cudaStream_t s),
         launch_cooperative(d, stub, g, b, args, shared, s))
RT_TWINS(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t *c, const void *stub, void **args),
         launch_ex(d, c, stub, args))

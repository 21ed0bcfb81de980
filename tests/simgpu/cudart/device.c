/* SPDX-License-Identifier: MIT */
/* Devices, versions, and the names of errors. */

#include "cudart.h"

#include <string.h>

/* Fields of cudaDeviceProp that are one device attribute each. */
#define PROPERTIES(X)                                                                              \
    X(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK)                                              \
    X(regsPerBlock, MAX_REGISTERS_PER_BLOCK)                                                       \
    X(warpSize, WARP_SIZE)                                                                         \
    X(memPitch, MAX_PITCH)                                                                         \
    X(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK)                                                   \
    X(maxThreadsDim[0], MAX_BLOCK_DIM_X)                                                           \
    X(maxThreadsDim[1], MAX_BLOCK_DIM_Y)                                                           \
    X(maxThreadsDim[2], MAX_BLOCK_DIM_Z)                                                           \
    X(maxGridSize[0], MAX_GRID_DIM_X)                                                              \
    X(maxGridSize[1], MAX_GRID_DIM_Y)                                                              \
    X(maxGridSize[2], MAX_GRID_DIM_Z)                                                              \
    X(totalConstMem, TOTAL_CONSTANT_MEMORY)                                                        \
    X(major, COMPUTE_CAPABILITY_MAJOR)                                                             \
    X(minor, COMPUTE_CAPABILITY_MINOR)                                                             \
    X(textureAlignment, TEXTURE_ALIGNMENT)                                                         \
    X(multiProcessorCount, MULTIPROCESSOR_COUNT)                                                   \
    X(integrated, INTEGRATED)                                                                      \
    X(canMapHostMemory, CAN_MAP_HOST_MEMORY)                                                       \
    X(concurrentKernels, CONCURRENT_KERNELS)                                                       \
    X(ECCEnabled, ECC_ENABLED)                                                                     \
    X(pciBusID, PCI_BUS_ID)                                                                        \
    X(pciDeviceID, PCI_DEVICE_ID)                                                                  \
    X(pciDomainID, PCI_DOMAIN_ID)                                                                  \
    X(asyncEngineCount, ASYNC_ENGINE_COUNT)                                                        \
    X(unifiedAddressing, UNIFIED_ADDRESSING)                                                       \
    X(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH)                                                     \
    X(l2CacheSize, L2_CACHE_SIZE)                                                                  \
    X(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR)                                 \
    X(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED)                                      \
    X(managedMemory, MANAGED_MEMORY)                                                               \
    X(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS)                                                \
    X(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS)                                          \
    X(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)                  \
    X(cooperativeLaunch, COOPERATIVE_LAUNCH)                                                       \
    X(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES)        \
    X(hostRegisterSupported, HOST_REGISTER_SUPPORTED)                                              \
    X(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED)                                                \
    X(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED)

/* An attribute that the driver does not know stays 0. */
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    const struct rt_driver *d = &rt_driver[0];
    CUdevice dev;
    CUresult r = rt_load();
    int value;

    memset(p, 0, sizeof(*p));
    if (r == CUDA_SUCCESS)
        r = d->cuDeviceGet(&dev, device);
    if (r == CUDA_SUCCESS)
        r = d->cuDeviceGetName(p->name, sizeof(p->name), dev);
    if (r == CUDA_SUCCESS)
        r = d->cuDeviceTotalMem(&p->totalGlobalMem, dev);
    if (r != CUDA_SUCCESS)
        return rt_done(r);
#define X(field, attribute)                                                                        \
    if (d->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_##attribute, dev) == CUDA_SUCCESS)     \
        p->field = value;
    PROPERTIES(X)
#undef X
    return cudaSuccess;
}

/* Attribute numbers are the driver's. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    const struct rt_driver *d = &rt_driver[0];
    CUdevice dev;
    CUresult r = rt_load();

    if (r == CUDA_SUCCESS)
        r = d->cuDeviceGet(&dev, device);
    if (r == CUDA_SUCCESS)
        r = d->cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, dev);
    return rt_done(r);
}

cudaError_t cudaGetDeviceCount(int *count)
{
    CUresult r = rt_load();

    *count = 0;
    if (r == CUDA_SUCCESS)
        r = rt_driver[0].cuDeviceGetCount(count);
    if (r == CUDA_SUCCESS && *count == 0)
        r = CUDA_ERROR_NO_DEVICE;
    return rt_done(r);
}

cudaError_t cudaGetDevice(int *device)
{
    CUresult r = rt_load();

    *device = rt_device();
    return rt_done(r);
}

cudaError_t cudaSetDevice(int device)
{
    return rt_done(rt_use_device(device));
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 0; /* no driver is no error here */
    if (rt_load() != (CUresult)cudaErrorInsufficientDriver)
        rt_driver[0].cuDriverGetVersion(version);
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = RT_VERSION;
    return cudaSuccess;
}

static CUresult can_access(const struct rt_driver *d, int *can, int device, int peer)
{
    CUdevice a, b;
    CUresult r = d->cuDeviceGet(&a, device);

    if (r == CUDA_SUCCESS)
        r = d->cuDeviceGet(&b, peer);
    return r == CUDA_SUCCESS ? d->cuDeviceCanAccessPeer(can, a, b) : r;
}

/* The primary context of another device, with the thread's own left current. */
static CUresult context_of(const struct rt_driver *d, int device, CUcontext *out)
{
    int mine = rt_device();
    CUcontext ctx;
    CUresult r = d->cuCtxGetCurrent(&ctx);

    if (r == CUDA_SUCCESS)
        r = rt_use_device(device);
    if (r == CUDA_SUCCESS)
        r = d->cuCtxGetCurrent(out);
    if (r == CUDA_SUCCESS)
        r = rt_use_device(mine);
    return r == CUDA_SUCCESS ? d->cuCtxSetCurrent(ctx) : r;
}

static CUresult enable_peer(const struct rt_driver *d, int peer, unsigned flags)
{
    CUcontext ctx;
    CUresult r = context_of(d, peer, &ctx);

    return r == CUDA_SUCCESS ? d->cuCtxEnablePeerAccess(ctx, flags) : r;
}

static CUresult copy_peer(const struct rt_driver *d, void *dst, int to, const void *src, int from,
                          size_t n, const cudaStream_t *async)
{
    CUcontext a, b;
    CUresult r = context_of(d, to, &a);

    if (r == CUDA_SUCCESS)
        r = context_of(d, from, &b);
    if (r != CUDA_SUCCESS || n == 0)
        return r;
    return async ? d->cuMemcpyPeerAsync((size_t)dst, a, (size_t)src, b, n, *async)
                 : d->cuMemcpyPeer((size_t)dst, a, (size_t)src, b, n);
}

RT_CALL(cudaDeviceSynchronize, (void), d->cuCtxSynchronize())
RT_CALL(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
        d->cuCtxGetStreamPriorityRange(least, greatest))
RT_CALL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
        d->cuDeviceGetDefaultMemPool(pool, device))
RT_CALL(cudaDeviceCanAccessPeer, (int *can, int device, int peer), can_access(d, can, device, peer))
RT_CALL(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), enable_peer(d, peer, flags))
RT_CALL(cudaMemcpyPeer, (void *dst, int to, const void *src, int from, size_t n),
        copy_peer(d, dst, to, src, from, n, NULL))
RT_CALL(cudaMemcpyPeerAsync,
        (void *dst, int to, const void *src, int from, size_t n, cudaStream_t s),
        copy_peer(d, dst, to, src, from, n, &s))

/* The errors that a program is likely to meet on the simulated driver, in the real words. */
#define ERRORS(X)                                                                                  \
    X(cudaSuccess, "no error")                                                                     \
    X(cudaErrorInvalidValue, "invalid argument")                                                   \
    X(cudaErrorMemoryAllocation, "out of memory")                                                  \
    X(cudaErrorInitializationError, "initialization error")                                        \
    X(cudaErrorCudartUnloading, "driver shutting down")                                            \
    X(cudaErrorInvalidConfiguration, "invalid configuration argument")                             \
    X(cudaErrorInvalidPitchValue, "invalid pitch argument")                                        \
    X(cudaErrorInvalidSymbol, "invalid device symbol")                                             \
    X(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy")                        \
    X(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version") \
    X(cudaErrorCallRequiresNewerDriver, "API call is not supported in the installed CUDA driver")  \
    X(cudaErrorMissingConfiguration, "__global__ function call is not configured")                 \
    X(cudaErrorInvalidDeviceFunction, "invalid device function")                                   \
    X(cudaErrorNoDevice, "no CUDA-capable device is detected")                                     \
    X(cudaErrorInvalidDevice, "invalid device ordinal")                                            \
    X(cudaErrorInvalidKernelImage, "device kernel image is invalid")                               \
    X(cudaErrorDeviceUninitialized, "invalid device context")                                      \
    X(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device") \
    X(cudaErrorPeerAccessUnsupported, "peer access is not supported between these two devices")    \
    X(cudaErrorInvalidResourceHandle, "invalid resource handle")                                   \
    X(cudaErrorIllegalState, "the operation cannot be performed in the present state")             \
    X(cudaErrorSymbolNotFound, "named symbol not found")                                           \
    X(cudaErrorNotReady, "device not ready")                                                       \
    X(cudaErrorIllegalAddress, "an illegal memory access was encountered")                         \
    X(cudaErrorLaunchOutOfResources, "too many resources requested for launch")                    \
    X(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled")                         \
    X(cudaErrorContextIsDestroyed, "context is destroyed")                                         \
    X(cudaErrorAssert, "device-side assert triggered")                                             \
    X(cudaErrorHostMemoryAlreadyRegistered,                                                        \
      "part or all of the requested memory range is already mapped")                               \
    X(cudaErrorHostMemoryNotRegistered,                                                            \
      "pointer does not correspond to a registered memory region")                                 \
    X(cudaErrorLaunchFailure, "unspecified launch failure")                                        \
    X(cudaErrorNotPermitted, "operation not permitted")                                            \
    X(cudaErrorNotSupported, "operation not supported")                                            \
    X(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing")       \
    X(cudaErrorStreamCaptureInvalidated,                                                           \
      "operation failed due to a previous error during capture")                                   \
    X(cudaErrorStreamCaptureMerge,                                                                 \
      "operation would result in a merge of separate capture sequences")                           \
    X(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began")     \
    X(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work")                        \
    X(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream")  \
    X(cudaErrorStreamCaptureImplicit,                                                              \
      "operation would make the legacy stream depend on a capturing blocking stream")              \
    X(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing "  \
                              "stream")                                                            \
    X(cudaErrorStreamCaptureWrongThread,                                                           \
      "attempt to terminate a thread-local capture sequence from another thread")                  \
    X(cudaErrorUnknown, "unknown error")

const char *cudaGetErrorName(cudaError_t e)
{
    switch (e) {
#define X(id, text)                                                                                \
    case id:                                                                                       \
        return #id;
        ERRORS(X)
#undef X
    default:
        return "unrecognized error code";
    }
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
#define X(id, text)                                                                                \
    case id:                                                                                       \
        return text;
        ERRORS(X)
#undef X
    default:
        return "unrecognized error code";
    }
}

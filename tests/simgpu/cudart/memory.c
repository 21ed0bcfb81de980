/* SPDX-License-Identifier: MIT */
/* Memory: allocation, copies, fills, and what a pointer is.
 *
 * Which driver call a copy becomes follows the real runtime: the kind that the program states
 * picks cuMemcpyHtoD, DtoH or DtoD (Async), and only cudaMemcpyDefault leaves it to cuMemcpy to
 * find out from the pointers. A copy of nothing, and the allocation of nothing, make no call. */

#include "cudart.h"

#include <stdint.h>

static CUdeviceptr dev(const void *p)
{
    return (CUdeviceptr)(uintptr_t)p;
}

static CUresult allocate(const struct rt_driver *d, void **p, size_t n)
{
    CUdeviceptr q = 0;
    CUresult r = n ? d->cuMemAlloc(&q, n) : CUDA_SUCCESS;

    if (r == CUDA_SUCCESS)
        *p = (void *)(uintptr_t)q;
    return r;
}

RT_CALL(cudaMalloc, (void **p, size_t n), allocate(d, p, n))
RT_CALL(cudaMallocPitch, (void **p, size_t *pitch, size_t width, size_t height),
        d->cuMemAllocPitch((CUdeviceptr *)p, pitch, width, height, 4))
RT_CALL(cudaMallocManaged, (void **p, size_t n, unsigned flags),
        d->cuMemAllocManaged((CUdeviceptr *)p, n, flags))
RT_CALL(cudaFree, (void *p), p ? d->cuMemFree(dev(p)) : CUDA_SUCCESS)
RT_TWINS(cudaMallocAsync, _ptsz, (void **p, size_t n, cudaStream_t s),
         d->cuMemAllocAsync((CUdeviceptr *)p, n, s))
RT_TWINS(cudaFreeAsync, _ptsz, (void *p, cudaStream_t s), d->cuMemFreeAsync(dev(p), s))

/* The flags of both interfaces have the same values. */
RT_CALL(cudaMallocHost, (void **p, size_t n), d->cuMemHostAlloc(p, n, CU_MEMHOSTALLOC_PORTABLE))
RT_CALL(cudaHostAlloc, (void **p, size_t n, unsigned flags), d->cuMemHostAlloc(p, n, flags))
RT_CALL(cudaFreeHost, (void *p), p ? d->cuMemFreeHost(p) : CUDA_SUCCESS)
RT_CALL(cudaHostRegister, (void *p, size_t n, unsigned flags), d->cuMemHostRegister(p, n, flags))
RT_CALL(cudaHostUnregister, (void *p), d->cuMemHostUnregister(p))
RT_CALL(cudaHostGetDevicePointer, (void **q, void *p, unsigned flags),
        d->cuMemHostGetDevicePointer((CUdeviceptr *)q, p, flags))
RT_CALL(cudaHostGetFlags, (unsigned *flags, void *p), d->cuMemHostGetFlags(flags, p))
RT_CALL(cudaMemGetInfo, (size_t * free_bytes, size_t *total), d->cuMemGetInfo(free_bytes, total))

static CUresult copy(const struct rt_driver *d, void *dst, const void *src, size_t n, int kind)
{
    if (n == 0)
        return CUDA_SUCCESS;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return d->cuMemcpyHtoD(dev(dst), src, n);
    case cudaMemcpyDeviceToHost:
        return d->cuMemcpyDtoH(dst, dev(src), n);
    case cudaMemcpyDeviceToDevice:
        return d->cuMemcpyDtoD(dev(dst), dev(src), n);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return d->cuMemcpy(dev(dst), dev(src), n);
    default:
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    }
}

static CUresult copy_async(const struct rt_driver *d, void *dst, const void *src, size_t n,
                           int kind, cudaStream_t s)
{
    if (n == 0)
        return CUDA_SUCCESS;
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return d->cuMemcpyHtoDAsync(dev(dst), src, n, s);
    case cudaMemcpyDeviceToHost:
        return d->cuMemcpyDtoHAsync(dst, dev(src), n, s);
    case cudaMemcpyDeviceToDevice:
        return d->cuMemcpyDtoDAsync(dev(dst), dev(src), n, s);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return d->cuMemcpyAsync(dev(dst), dev(src), n, s);
    default:
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    }
}

RT_TWINS(cudaMemcpy, _ptds, (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind),
         copy(d, dst, src, n, kind))
RT_TWINS(cudaMemcpyAsync, _ptsz,
         (void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, cudaStream_t s),
         copy_async(d, dst, src, n, kind, s))

/* One side of a 2D copy: host memory goes into srcHost or dstHost, any other into the device
 * member, which is also where cudaMemcpyDefault's pointers go, as unified ones. */
static CUmemorytype side(bool host, int kind)
{
    if (kind == cudaMemcpyDefault)
        return CU_MEMORYTYPE_UNIFIED;
    return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

static CUDA_MEMCPY2D rectangle(void *dst, size_t dpitch, const void *src, size_t spitch, size_t w,
                               size_t h, int kind)
{
    return (CUDA_MEMCPY2D){
        .srcMemoryType = side(kind == cudaMemcpyHostToDevice || kind == cudaMemcpyHostToHost, kind),
        .srcHost = src,
        .srcDevice = dev(src),
        .srcPitch = spitch,
        .dstMemoryType = side(kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost, kind),
        .dstHost = dst,
        .dstDevice = dev(dst),
        .dstPitch = dpitch,
        .WidthInBytes = w,
        .Height = h,
    };
}

static CUresult copy_2d(const struct rt_driver *d, CUDA_MEMCPY2D r)
{
    if (r.WidthInBytes == 0 || r.Height == 0)
        return CUDA_SUCCESS;
    return d->cuMemcpy2DUnaligned(&r);
}

static CUresult copy_2d_async(const struct rt_driver *d, CUDA_MEMCPY2D r, cudaStream_t s)
{
    if (r.WidthInBytes == 0 || r.Height == 0)
        return CUDA_SUCCESS;
    return d->cuMemcpy2DAsync(&r, s);
}

RT_TWINS(cudaMemcpy2D, _ptds,
         (void *dst, size_t dpitch, const void *src, size_t spitch, size_t w, size_t h,
          enum cudaMemcpyKind kind),
         copy_2d(d, rectangle(dst, dpitch, src, spitch, w, h, kind)))
RT_TWINS(cudaMemcpy2DAsync, _ptsz,
         (void *dst, size_t dpitch, const void *src, size_t spitch, size_t w, size_t h,
          enum cudaMemcpyKind kind, cudaStream_t s),
         copy_2d_async(d, rectangle(dst, dpitch, src, spitch, w, h, kind), s))

/* Copies to and from a variable of the program: look its address up, then as any other. */
static CUresult inside(const void *symbol, size_t offset, size_t n, void **address)
{
    CUdeviceptr base = 0;
    size_t size = 0;
    CUresult r = rt_symbol(symbol, &base, &size);

    if (r == CUDA_SUCCESS && (offset > size || n > size - offset))
        r = CUDA_ERROR_INVALID_VALUE;
    *address = (void *)(uintptr_t)(base + offset);
    return r;
}

static CUresult to_symbol(const struct rt_driver *d, const void *symbol, const void *src, size_t n,
                          size_t offset, int kind, const cudaStream_t *async)
{
    void *at;
    CUresult r = inside(symbol, offset, n, &at);

    if (r != CUDA_SUCCESS)
        return r;
    return async ? copy_async(d, at, src, n, kind, *async) : copy(d, at, src, n, kind);
}

static CUresult from_symbol(const struct rt_driver *d, void *dst, const void *symbol, size_t n,
                            size_t offset, int kind, const cudaStream_t *async)
{
    void *at;
    CUresult r = inside(symbol, offset, n, &at);

    if (r != CUDA_SUCCESS)
        return r;
    return async ? copy_async(d, dst, at, n, kind, *async) : copy(d, dst, at, n, kind);
}

RT_TWINS(cudaMemcpyToSymbol, _ptds,
         (const void *symbol, const void *src, size_t n, size_t offset, enum cudaMemcpyKind kind),
         to_symbol(d, symbol, src, n, offset, kind, NULL))
RT_TWINS(cudaMemcpyFromSymbol, _ptds,
         (void *dst, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind),
         from_symbol(d, dst, symbol, n, offset, kind, NULL))
RT_TWINS(cudaMemcpyToSymbolAsync, _ptsz,
         (const void *symbol, const void *src, size_t n, size_t offset, enum cudaMemcpyKind kind,
          cudaStream_t s),
         to_symbol(d, symbol, src, n, offset, kind, &s))
RT_TWINS(cudaMemcpyFromSymbolAsync, _ptsz,
         (void *dst, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind,
          cudaStream_t s),
         from_symbol(d, dst, symbol, n, offset, kind, &s))

RT_TWINS(cudaMemset, _ptds, (void *p, int value, size_t n),
         n ? d->cuMemsetD8(dev(p), (unsigned char)value, n) : CUDA_SUCCESS)
RT_TWINS(cudaMemsetAsync, _ptsz, (void *p, int value, size_t n, cudaStream_t s),
         n ? d->cuMemsetD8Async(dev(p), (unsigned char)value, n, s) : CUDA_SUCCESS)
RT_TWINS(cudaMemset2D, _ptds, (void *p, size_t pitch, int value, size_t w, size_t h),
         w &&h ? d->cuMemsetD2D8(dev(p), pitch, (unsigned char)value, w, h) : CUDA_SUCCESS)
RT_TWINS(cudaMemset2DAsync, _ptsz,
         (void *p, size_t pitch, int value, size_t w, size_t h, cudaStream_t s),
         w &&h ? d->cuMemsetD2D8Async(dev(p), pitch, (unsigned char)value, w, h, s) : CUDA_SUCCESS)

/* Memory that CUDA does not know is no error: the driver answers zeros, and so do we. */
static CUresult describe(const struct rt_driver *d, struct cudaPointerAttributes *out,
                         const void *p)
{
    CUmemorytype type = 0;
    CUdeviceptr device_pointer = 0;
    void *host_pointer = NULL;
    int managed = 0, ordinal = -2;
    CUpointer_attribute names[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER,   CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    };
    void *values[] = {&type, &device_pointer, &host_pointer, &managed, &ordinal};
    CUresult r = d->cuPointerGetAttributes(5, names, values, dev(p));

    if (r != CUDA_SUCCESS)
        return r;
    *out = (struct cudaPointerAttributes){
        .type = managed                        ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                               : cudaMemoryTypeUnregistered,
        .device = type ? ordinal : -2,
        .devicePointer = (void *)(uintptr_t)device_pointer,
        .hostPointer = type ? host_pointer : (void *)(uintptr_t)p,
    };
    return CUDA_SUCCESS;
}

RT_CALL(cudaPointerGetAttributes, (struct cudaPointerAttributes * out, const void *p),
        describe(d, out, p))

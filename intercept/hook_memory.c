/* SPDX-License-Identifier: MIT */
/* Keeps shim/memory.h's record: host memory that CUDA knows, and device memory that someone outside
 * the process can reach. Two shapes: allocate = call, then note; free = forget, then call (once it
 * is freed, the address may be somebody else's). */
#include <stdint.h>

#include "intercept/hooks.h"
#include "shim/memory.h"
#include "shim/touch.h"

static CUresult noted(CUresult r, const void *p, size_t bytes, enum es_memory kind)
{
    if (r == CUDA_SUCCESS)
        es_memory_add((uintptr_t)p, bytes, kind, 0);
    return r;
}

/* The driver's word on the allocation around an address, to note the whole of it. */
static void note_allocation(CUdeviceptr p)
{
    CUdeviceptr start = 0;
    size_t bytes = 0;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&start, &bytes};

    if (es_port.pointer_attributes(2, which, values, p) == CUDA_SUCCESS && start)
        es_memory_add(start, bytes, ES_MEM_FOREIGN, 0);
    else
        es_memory_add(p, 1, ES_MEM_FOREIGN, 0);
}

static CUresult born(CUresult r, const CUdeviceptr *p, size_t bytes)
{
    if (r == CUDA_SUCCESS)
        es_touch_born(*p, bytes);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
    es_note(ES_SEEN_DEVICE_ALLOC);
    return born(ES_REAL(cuMemAlloc_v2)(p, bytes), p, bytes);
}

ES_EXPORT CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width,
                                              size_t height, unsigned element)
{
    CUresult r;

    es_note(ES_SEEN_DEVICE_ALLOC);
    r = ES_REAL(cuMemAllocPitch_v2)(p, pitch, width, height, element);
    return r == CUDA_SUCCESS ? born(r, p, *pitch * height) : r;
}

ES_EXPORT CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *p, size_t bytes, unsigned flags)
{
    CUresult r;

    es_note(ES_SEEN_ALLOC);
    r = ES_REAL(cuMemAllocManaged)(p, bytes, flags);
    return r == CUDA_SUCCESS ? noted(r, (void *)(uintptr_t)*p, bytes, ES_MEM_MANAGED) : r;
}

ES_EXPORT CUresult CUDAAPI cuMemAllocHost_v2(void **p, size_t bytes)
{
    CUresult r;

    es_note(ES_SEEN_ALLOC);
    r = ES_REAL(cuMemAllocHost_v2)(p, bytes);
    return r == CUDA_SUCCESS ? noted(r, *p, bytes, ES_MEM_PINNED) : r;
}

ES_EXPORT CUresult CUDAAPI cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    CUresult r;

    es_note(ES_SEEN_ALLOC);
    r = ES_REAL(cuMemHostAlloc)(p, bytes, flags);
    return r == CUDA_SUCCESS ? noted(r, *p, bytes, ES_MEM_PINNED) : r;
}

ES_EXPORT CUresult CUDAAPI cuMemHostRegister(void *p, size_t bytes, unsigned flags)
{
    es_note(ES_SEEN_ALLOC);
    return noted(ES_REAL(cuMemHostRegister)(p, bytes, flags), p, bytes, ES_MEM_PINNED);
}

ES_EXPORT CUresult CUDAAPI cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
    es_note(ES_SEEN_ALLOC);
    return noted(ES_REAL(cuMemHostRegister_v2)(p, bytes, flags), p, bytes, ES_MEM_PINNED);
}

ES_EXPORT CUresult CUDAAPI cuMemFree_v2(CUdeviceptr p)
{
    es_note(ES_SEEN_FREE);
    es_memory_drop(p, 1);
    es_touch_gone(p);
    return ES_REAL(cuMemFree_v2)(p);
}

ES_EXPORT CUresult CUDAAPI cuMemFreeHost(void *p)
{
    es_note(ES_SEEN_FREE);
    es_memory_drop((uintptr_t)p, 1);
    return ES_REAL(cuMemFreeHost)(p);
}

ES_EXPORT CUresult CUDAAPI cuMemHostUnregister(void *p)
{
    es_note(ES_SEEN_FREE);
    es_memory_drop((uintptr_t)p, 1);
    return ES_REAL(cuMemHostUnregister)(p);
}

/* Virtual memory management: what counts is the physical handle. */

ES_EXPORT CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                                       const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult r;

    es_note(ES_SEEN_ALLOC);
    r = ES_REAL(cuMemCreate)(handle, bytes, prop, flags);
    if (r == CUDA_SUCCESS)
        es_memory_handle_new(*handle);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuMemMap(CUdeviceptr p, size_t bytes, size_t offset,
                                    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    CUresult r;

    es_note(ES_SEEN_ALLOC);
    r = ES_REAL(cuMemMap)(p, bytes, offset, handle, flags);
    if (r == CUDA_SUCCESS)
        es_memory_add(p, bytes, ES_MEM_DEVICE, handle);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuMemUnmap(CUdeviceptr p, size_t bytes)
{
    es_note(ES_SEEN_FREE);
    es_memory_drop(p, bytes);
    return ES_REAL(cuMemUnmap)(p, bytes);
}

ES_EXPORT CUresult CUDAAPI cuMemExportToShareableHandle(void *out,
                                                        CUmemGenericAllocationHandle handle,
                                                        CUmemAllocationHandleType type,
                                                        unsigned long long flags)
{
    es_note(ES_SEEN_FOREIGN);
    es_memory_handle_shared(handle);
    return ES_REAL(cuMemExportToShareableHandle)(out, handle, type, flags);
}

ES_EXPORT CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
                                                          void *os, CUmemAllocationHandleType type)
{
    CUresult r;

    es_note(ES_SEEN_FOREIGN);
    r = ES_REAL(cuMemImportFromShareableHandle)(handle, os, type);
    if (r == CUDA_SUCCESS)
        es_memory_handle_shared(*handle);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuMulticastBindMem(CUmemGenericAllocationHandle mc, size_t mc_offset,
                                              CUmemGenericAllocationHandle handle, size_t offset,
                                              size_t bytes, unsigned long long flags)
{
    es_note(ES_SEEN_FOREIGN);
    es_memory_handle_shared(handle);
    return ES_REAL(cuMulticastBindMem)(mc, mc_offset, handle, offset, bytes, flags);
}

ES_EXPORT CUresult CUDAAPI cuMulticastBindAddr(CUmemGenericAllocationHandle mc, size_t mc_offset,
                                               CUdeviceptr p, size_t bytes,
                                               unsigned long long flags)
{
    es_note(ES_SEEN_FOREIGN);
    es_memory_add(p, bytes, ES_MEM_FOREIGN, 0);
    return ES_REAL(cuMulticastBindAddr)(mc, mc_offset, p, bytes, flags);
}

/* Memory handed to other processes, devices or libraries, or got from them. */

ES_EXPORT CUresult CUDAAPI cuMemGetHandleForAddressRange(void *handle, CUdeviceptr p, size_t bytes,
                                                         CUmemRangeHandleType type,
                                                         unsigned long long flags)
{
    es_note(ES_SEEN_FOREIGN);
    es_memory_add(p, bytes, ES_MEM_FOREIGN, 0);
    return ES_REAL(cuMemGetHandleForAddressRange)(handle, p, bytes, type, flags);
}

ES_EXPORT CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr p)
{
    es_note(ES_SEEN_FOREIGN);
    note_allocation(p);
    return ES_REAL(cuMemPoolExportPointer)(out, p);
}

ES_EXPORT CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *p, CUmemoryPool pool,
                                                  CUmemPoolPtrExportData *data)
{
    CUresult r;

    es_note(ES_SEEN_FOREIGN);
    r = ES_REAL(cuMemPoolImportPointer)(p, pool, data);
    if (r == CUDA_SUCCESS)
        note_allocation(*p);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr p)
{
    es_note(ES_SEEN_FOREIGN);
    note_allocation(p);
    return ES_REAL(cuIpcGetMemHandle)(handle, p);
}

static CUresult opened(CUresult r, const CUdeviceptr *p)
{
    if (r == CUDA_SUCCESS)
        note_allocation(*p);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *p, CUipcMemHandle handle, unsigned flags)
{
    es_note(ES_SEEN_FOREIGN);
    return opened(ES_REAL(cuIpcOpenMemHandle)(p, handle, flags), p);
}

ES_EXPORT CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *p, CUipcMemHandle handle,
                                                 unsigned flags)
{
    es_note(ES_SEEN_FOREIGN);
    return opened(ES_REAL(cuIpcOpenMemHandle_v2)(p, handle, flags), p);
}

/* The mapping may have more openers, so the record stays: too careful, never wrong. */
ES_EXPORT CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr p)
{
    es_note(ES_SEEN_FOREIGN);
    return ES_REAL(cuIpcCloseMemHandle)(p);
}

ES_EXPORT CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(
    CUdeviceptr *p, CUexternalMemory memory, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
    CUresult r;

    es_note(ES_SEEN_FOREIGN);
    r = ES_REAL(cuExternalMemoryGetMappedBuffer)(p, memory, desc);
    if (r == CUDA_SUCCESS)
        es_memory_add(*p, desc->size, ES_MEM_FOREIGN, 0);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuGraphicsResourceGetMappedPointer_v2(CUdeviceptr *p, size_t *bytes,
                                                                 CUgraphicsResource resource)
{
    size_t got = 0;
    CUresult r;

    es_note(ES_SEEN_FOREIGN);
    r = ES_REAL(cuGraphicsResourceGetMappedPointer_v2)(p, bytes ? bytes : &got, resource);
    if (r == CUDA_SUCCESS && p)
        es_memory_add(*p, bytes ? *bytes : got, ES_MEM_FOREIGN, 0);
    return r;
}

/* A peer-to-peer token lets another device's driver reach the allocation. */

ES_EXPORT CUresult CUDAAPI cuPointerGetAttribute(void *value, CUpointer_attribute which,
                                                 CUdeviceptr p)
{
    es_note(ES_SEEN_ATTRIBUTE);
    if (which == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
        note_allocation(p);
    return ES_REAL(cuPointerGetAttribute)(value, which, p);
}

ES_EXPORT CUresult CUDAAPI cuPointerGetAttributes(unsigned n, CUpointer_attribute *which,
                                                  void **values, CUdeviceptr p)
{
    es_note(ES_SEEN_ATTRIBUTE);
    for (unsigned i = 0; which && i < n; i++)
        if (which[i] == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
            note_allocation(p);
    return ES_REAL(cuPointerGetAttributes)(n, which, values, p);
}

/* Variables of the program's code; a managed one is memory of the host, too. */
static CUresult found(CUresult r, const CUdeviceptr *p, const size_t *bytes)
{
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_IS_MANAGED};
    unsigned managed = 0;
    void *values[] = {&managed};

    if (r == CUDA_SUCCESS && p &&
        (es_port.pointer_attributes(1, which, values, *p) != CUDA_SUCCESS || managed))
        es_memory_add(*p, bytes ? *bytes : 1, ES_MEM_MANAGED, 0);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *bytes, CUmodule module,
                                                const char *name)
{
    es_note(ES_SEEN_MODULE);
    return found(ES_REAL(cuModuleGetGlobal_v2)(p, bytes, module, name), p, bytes);
}

ES_EXPORT CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *p, size_t *bytes, CUlibrary library,
                                              const char *name)
{
    es_note(ES_SEEN_MODULE);
    return found(ES_REAL(cuLibraryGetGlobal)(p, bytes, library, name), p, bytes);
}

ES_EXPORT CUresult CUDAAPI cuLibraryGetManaged(CUdeviceptr *p, size_t *bytes, CUlibrary library,
                                               const char *name)
{
    es_note(ES_SEEN_MODULE);
    return found(ES_REAL(cuLibraryGetManaged)(p, bytes, library, name), p, bytes);
}

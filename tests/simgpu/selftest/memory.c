/* SPDX-License-Identifier: MIT */
/* What is memory of which kind, who may touch it, and what comes back. */
#include "tests/simgpu/selftest/self.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Asks the kernel, which does not crash. */
static bool host_may_touch(CUdeviceptr p)
{
    int ends[2];
    bool may;

    CHECK_EQ_INT(pipe(ends), 0);
    may = write(ends[1], (const void *)(uintptr_t)p, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return may;
}

TEST(memory, the_host_may_not_touch_the_devices)
{
    CUdeviceptr plain, pool, managed, global;
    CUmodule module;
    size_t bytes;

    self_setup();
    plain = self_device(64);
    OK(cuMemAllocAsync(&pool, 64, CU_STREAM_LEGACY));
    OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    OK(cuModuleLoadData(&module, ""));
    OK(cuModuleGetGlobal(&global, &bytes, module, "some_global"));
    CHECK(!host_may_touch(plain));
    CHECK(!host_may_touch(pool));
    CHECK(!host_may_touch(global));
    CHECK(host_may_touch(managed));
    OK(cuMemsetD8(global, 3, bytes));
    OK(cuMemFree(managed));
    OK(cuMemFreeAsync(pool, CU_STREAM_LEGACY));
    OK(cuMemFree(plain));
    CHECK_EQ_INT(cuMemFree(plain), CUDA_ERROR_INVALID_VALUE);
}

TEST(memory, attributes_by_kind)
{
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_CONTEXT,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    unsigned type = 9, managed = 9;
    CUcontext context;
    CUdeviceptr start, d, m;
    size_t size;
    void *out[] = {&type, &managed, &context, &start, &size};
    char on_stack;
    char *pinned;

    self_setup();
    OK(cuPointerGetAttributes(5, which, out, (CUdeviceptr)(uintptr_t)&on_stack));
    CHECK(type == 0 && managed == 0 && !context && start == 0 && size == 0);
    CHECK_EQ_INT(cuPointerGetAttribute(&type, which[0], (CUdeviceptr)(uintptr_t)&on_stack),
                 CUDA_ERROR_INVALID_VALUE);
    d = self_device(1000);
    OK(cuPointerGetAttributes(5, which, out, d + 10));
    CHECK(type == CU_MEMORYTYPE_DEVICE && managed == 0 && context && start == d && size == 1000);
    pinned = self_pinned(100);
    OK(cuPointerGetAttributes(5, which, out, (CUdeviceptr)(uintptr_t)(pinned + 5)));
    CHECK(type == CU_MEMORYTYPE_HOST && start == (CUdeviceptr)(uintptr_t)pinned && size == 100);
    OK(cuMemAllocManaged(&m, 100, CU_MEM_ATTACH_GLOBAL));
    OK(cuPointerGetAttributes(5, which, out, m));
    CHECK(type == CU_MEMORYTYPE_DEVICE && managed == 1);
    OK(cuMemFree(m));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(d));
    CHECK_EQ_INT(cuPointerGetAttribute(&type, which[0], d), CUDA_ERROR_INVALID_VALUE);
}

TEST(memory, registering_is_exact_and_pinning_has_a_limit)
{
    char *p = mmap(NULL, 64 * KiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *host;

    self_setup();
    OK(cuMemHostRegister(p + 4096, 4096, 0));
    CHECK_EQ_INT(cuMemHostRegister(p, 8192, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    CHECK_EQ_INT(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostUnregister(p + 4096));
    CHECK_EQ_INT(cuMemHostUnregister(p + 4096), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    /* SIMGPU_PIN_LIMIT is 64 MiB here (driver.c) */
    CHECK_EQ_INT(cuMemHostAlloc(&host, 65 * MiB, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemHostAlloc(&host, 40 * MiB, 0));
    CHECK_EQ_INT(cuMemHostAlloc(&(void *){NULL}, 40 * MiB, 0), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemFreeHost(host));
    OK(cuMemHostAlloc(&host, 40 * MiB, 0));
    OK(cuMemFreeHost(host));
    munmap(p, 64 * KiB);
}

TEST(memory, a_pool_gives_an_address_out_again_behind_work_that_uses_it)
{
    CUstream a, b;
    CUdeviceptr x, y, z;

    self_setup();
    a = self_stream(CU_STREAM_NON_BLOCKING);
    b = self_stream(CU_STREAM_NON_BLOCKING);
    OK(cuMemAllocAsync(&x, 256, a));
    self_close_gate(a);
    self_fill(a, x, 1);
    OK(cuMemFreeAsync(x, a));
    OK(cuMemAllocAsync(&z, 256, b)); /* another stream waits until it is free */
    CHECK(z != x);
    OK(cuMemAllocAsync(&y, 256, a)); /* the same one need not */
    CHECK(y == x);
    self_fill(a, y, 2);
    self_open_gate();
    OK(cuStreamSynchronize(a));
    CHECK_EQ_U64(self_word(y), 2);
    OK(cuMemFreeAsync(y, a));
    OK(cuStreamSynchronize(a));
    OK(cuMemAllocAsync(&y, 256, b));
    CHECK(y == x);
    OK(cuMemFree(y));
    OK(cuMemFree(z));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

TEST(memory, one_handle_at_two_addresses_is_one_memory)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemAccessDesc access = {.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h[2];
    CUdeviceptr at, start;
    size_t grain, size;
    uint32_t *host, *back;

    self_setup();
    OK(cuMemGetAllocationGranularity(&grain, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    OK(cuMemAddressReserve(&at, 3 * grain, 0, 0, 0));
    OK(cuMemCreate(&h[0], grain, &prop, 0));
    OK(cuMemCreate(&h[1], grain, &prop, 0));
    OK(cuMemMap(at, grain, 0, h[0], 0));
    OK(cuMemMap(at + grain, grain, 0, h[1], 0));
    OK(cuMemMap(at + 2 * grain, grain, 0, h[0], 0)); /* again */
    access.location = prop.location;
    OK(cuMemSetAccess(at, 3 * grain, &access, 1));
    OK(cuMemRelease(h[0])); /* the mappings keep it */
    OK(cuMemRelease(h[1]));
    OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at + grain + 5));
    OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at + grain + 5));
    CHECK(start == at && size == 3 * grain);
    host = calloc(1, 2 * grain);
    back = calloc(1, grain);
    host[0] = 11;
    host[grain / 4] = 12;
    OK(cuMemcpyHtoD(at, host, 2 * grain)); /* over both handles */
    OK(cuMemcpyDtoH(back, at + 2 * grain, grain));
    CHECK_EQ_U64(back[0], 11);
    CHECK_EQ_U64(self_word(at + grain), 12);
    CHECK(!host_may_touch(at));
    OK(cuMemUnmap(at, 3 * grain));
    CHECK_EQ_INT(cuMemcpyDtoH(back, at, 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(at, 3 * grain));
    free(host);
    free(back);
}

TEST(memory, an_import_is_the_exported_memory)
{
    CUipcMemHandle handle;
    CUdeviceptr d, again;
    CUstream s;

    self_setup();
    s = self_stream(CU_STREAM_NON_BLOCKING);
    d = self_device(4);
    OK(cuIpcGetMemHandle(&handle, d));
    OK(cuIpcOpenMemHandle(&again, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    CHECK(again != d);
    self_fill(s, d, 21);
    OK(cuStreamSynchronize(s));
    CHECK_EQ_U64(self_word(again), 21);
    OK(cuIpcCloseMemHandle(again));
    CHECK_EQ_INT(cuIpcCloseMemHandle(again), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
}

TEST(memory, kernels_compute)
{
    enum { N = 3 };
    float a[N * N] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, b[N * N] = {2, 0, 0, 0, 2, 0, 0, 0, 2}, c[N * N];
    CUdeviceptr x, y, z, sum;
    uint64_t words = N * N, got;
    uint32_t n = N;
    float half = 0.5f;

    self_setup();
    x = self_device(sizeof a);
    y = self_device(sizeof b);
    z = self_device(sizeof c);
    sum = self_device(8);
    OK(cuMemcpyHtoD(x, a, sizeof a));
    OK(cuMemcpyHtoD(y, b, sizeof b));
    LAUNCH(CU_STREAM_LEGACY, "matmul_f32", &x, &y, &z, &n);
    LAUNCH(CU_STREAM_LEGACY, "scale_f32", &z, &half, &words);
    LAUNCH(CU_STREAM_LEGACY, "axpy_f32", &half, &z, &y, &words);
    OK(cuMemcpyDtoH(c, z, sizeof c));
    CHECK_EQ_MEM(c, a, sizeof a);
    OK(cuMemcpyDtoH(c, y, sizeof c));
    CHECK(c[0] == 2.5f && c[4] == 4.5f && c[8] == 6.5f);
    OK(cuMemsetD32(z, 3, words));
    LAUNCH(CU_STREAM_LEGACY, "checksum_u32", &z, &words, &sum);
    OK(cuMemcpyDtoH(&got, sum, 8));
    CHECK_EQ_U64(got, 3 * words);
    OK(cuMemFree(x));
    OK(cuMemFree(y));
    OK(cuMemFree(z));
    OK(cuMemFree(sum));
}

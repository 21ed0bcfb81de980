/* SPDX-License-Identifier: MIT */
/* Which call waits, for what, and when it reads its source: as measured on a real GPU. */
#include "tests/simgpu/selftest/self.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A copy that another thread makes. */
struct copy {
    CUdeviceptr d;
    void *h;
    size_t bytes;
    CUstream s;
};

static CUresult h2d(void *arg)
{
    struct copy *c = arg;

    return cuMemcpyHtoD(c->d, c->h, c->bytes);
}

static CUresult d2h(void *arg)
{
    struct copy *c = arg;

    return cuMemcpyDtoH(c->h, c->d, c->bytes);
}

static CUresult h2d_async(void *arg)
{
    struct copy *c = arg;

    return cuMemcpyHtoDAsync(c->d, c->h, c->bytes, c->s);
}

static CUresult d2h_async(void *arg)
{
    struct copy *c = arg;

    return cuMemcpyDtoHAsync(c->h, c->d, c->bytes, c->s);
}

static CUresult free_device(void *arg)
{
    return cuMemFree(*(CUdeviceptr *)arg);
}

static CUresult unregister(void *arg)
{
    return cuMemHostUnregister(arg);
}

TEST(copies, sync_ones_wait_for_their_stream)
{
    struct copy c = {.bytes = 1024};
    char *pageable, *pinned;
    CUstream blocking;

    self_setup();
    blocking = self_stream(CU_STREAM_DEFAULT);
    c.d = self_device(c.bytes);
    pageable = calloc(1, c.bytes);
    pinned = self_pinned(c.bytes);
    for (int i = 0; i < 2; i++) {
        c.h = i ? pinned : pageable;
        self_close_gate(blocking);
        CHECK(self_waits("cuMemcpyHtoD_v2", h2d, &c));
        self_close_gate(CU_STREAM_LEGACY);
        CHECK(self_waits("cuMemcpyDtoH_v2", d2h, &c));
    }
    free(pageable);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(c.d));
    OK(cuStreamDestroy(blocking));
}

TEST(copies, they_go_by_non_blocking_streams)
{
    CUstream nb;
    CUdeviceptr d;
    uint32_t word = 5, back = 0;

    self_setup();
    nb = self_stream(CU_STREAM_NON_BLOCKING);
    d = self_device(4);
    self_close_gate(nb);
    OK(cuMemcpyHtoD(d, &word, 4));
    OK(cuMemcpyDtoH(&back, d, 4));
    CHECK_EQ_U64(back, 5);
    self_open_gate();
    OK(cuStreamSynchronize(nb));
    OK(cuStreamDestroy(nb));
    OK(cuMemFree(d));
}

TEST(copies, async_ones_wait_where_native_does)
{
    struct copy c = {0};
    CUstream s;

    self_setup();
    c.s = s = self_stream(CU_STREAM_NON_BLOCKING);
    c.d = self_device(8 * MiB);
    c.h = calloc(1, 8 * MiB);
    c.bytes = 1024;
    self_close_gate(s);
    CHECK(self_waits("cuMemcpyDtoHAsync_v2", d2h_async, &c));
    c.bytes = 8 * MiB;
    self_close_gate(s);
    CHECK(self_waits("cuMemcpyHtoDAsync_v2", h2d_async, &c));
    OK(cuStreamSynchronize(s));
    free(c.h);
    OK(cuMemFree(c.d));
    OK(cuStreamDestroy(s));
}

TEST(copies, a_small_async_one_has_read_its_source_at_return)
{
    CUdeviceptr d;
    uint32_t *h;
    CUstream s;

    self_setup();
    s = self_stream(CU_STREAM_NON_BLOCKING);
    d = self_device(MiB);
    h = calloc(1, MiB);
    h[0] = 1;
    self_close_gate(s);
    OK(cuMemcpyHtoDAsync(d, h, MiB, s));
    h[0] = 2;
    self_open_gate();
    OK(cuStreamSynchronize(s));
    CHECK_EQ_U64(self_word(d), 1);
    free(h);
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
}

TEST(copies, pinned_and_managed_sources_are_read_in_stream_order)
{
    CUdeviceptr d, managed;
    CUstream s;

    self_setup();
    s = self_stream(CU_STREAM_NON_BLOCKING);
    d = self_device(4);
    OK(cuMemAllocManaged(&managed, 4, CU_MEM_ATTACH_GLOBAL));
    for (int i = 0; i < 2; i++) {
        uint32_t *h = i ? (uint32_t *)(uintptr_t)managed : self_pinned(4);

        *h = 1;
        self_close_gate(s);
        OK(cuMemcpyHtoDAsync(d, h, 4, s));
        *h = 2;
        self_open_gate();
        OK(cuStreamSynchronize(s));
        CHECK_EQ_U64(self_word(d), 2);
        if (i == 0)
            OK(cuMemFreeHost(h));
    }
    OK(cuMemFree(managed));
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
}

static void write_two(void *word)
{
    *(uint32_t *)word = 2;
}

TEST(copies, a_sync_one_reads_its_source_when_its_turn_has_come)
{
    uint32_t word = 1;
    CUdeviceptr d;

    self_setup();
    d = self_device(4);
    OK(cuLaunchHostFunc(CU_STREAM_LEGACY, write_two, &word));
    OK(cuMemcpyHtoD(d, &word, 4));
    CHECK_EQ_U64(self_word(d), 2);
    OK(cuMemFree(d));
}

TEST(copies, what_returns_while_the_device_is_busy)
{
    CUdeviceptr a, b, more;
    void *host, *plain;
    CUevent e;

    self_setup();
    a = self_device(64);
    b = self_device(64);
    plain = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    self_close_gate(CU_STREAM_LEGACY); /* each of these would hang if it waited */
    OK(cuMemcpyDtoD(a, b, 64));
    OK(cuMemcpy(a, b, 64));
    OK(cuMemsetD8(a, 1, 64));
    OK(cuMemAlloc(&more, 64));
    OK(cuMemHostAlloc(&host, 64, 0));
    OK(cuMemHostRegister(plain, 4096, 0));
    OK(cuEventCreate(&e, CU_EVENT_DEFAULT));
    CHECK_EQ_INT(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);

    CHECK(self_waits("cuMemHostUnregister", unregister, plain)); /* and these wait */
    self_close_gate(CU_STREAM_LEGACY);
    CHECK(self_waits("cuMemFree_v2", free_device, &more));
    OK(cuMemFreeHost(host));
    OK(cuEventDestroy(e));
    OK(cuMemFree(a));
    OK(cuMemFree(b));
    munmap(plain, 4096);
}

TEST(copies, sync_memops_make_all_of_them_wait)
{
    struct copy c = {.bytes = 4};
    unsigned on = 1;

    self_setup();
    c.s = self_stream(CU_STREAM_NON_BLOCKING);
    c.d = self_device(4);
    c.h = self_pinned(4);
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, c.d));
    self_close_gate(c.s);
    CHECK(self_waits("cuMemcpyHtoDAsync_v2", h2d_async, &c));
    OK(cuMemFreeHost(c.h));
    OK(cuMemFree(c.d));
    OK(cuStreamDestroy(c.s));
}

/* A thread in a synchronous copy behind the gate, another one that launches. */
static void *copy_behind_gate(void *arg)
{
    CUcontext context;

    if (cuDevicePrimaryCtxRetain(&context, 0) == 0 && cuCtxSetCurrent(context) == 0)
        d2h(arg);
    cuDevicePrimaryCtxRelease(0);
    return NULL;
}

static CUresult launch(void *stream)
{
    CUfunction f;
    CUmodule m;
    CUresult r = cuModuleLoadData(&m, "");

    if (r == CUDA_SUCCESS)
        r = cuModuleGetFunction(&f, m, "empty");
    return r ? r : cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, (CUstream)stream, NULL, NULL);
}

TEST(copies, a_sync_one_holds_the_launches_of_other_threads)
{
    struct copy c = {.bytes = 4};
    unsigned long before = 0;
    pthread_t copier;
    CUstream nb;
    CUevent e;

    self_setup();
    nb = self_stream(CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    c.d = self_device(4);
    c.h = self_pinned(4);
    before = simgpu_count("cuMemcpyDtoH_v2");
    self_close_gate(CU_STREAM_LEGACY);
    CHECK_EQ_INT(pthread_create(&copier, NULL, copy_behind_gate, &c), 0);
    while (simgpu_count("cuMemcpyDtoH_v2") == before) /* counted and then in its wait */
        sched_yield();
    OK(cuEventQuery(e)); /* not held */
    OK(cuStreamWaitEvent(nb, e, 0));
    OK(cuStreamSynchronize(nb));
    CHECK(self_waits("cuLaunchKernel", launch, nb));
    pthread_join(copier, NULL);
    OK(cuEventDestroy(e));
    OK(cuMemFreeHost(c.h));
    OK(cuMemFree(c.d));
    OK(cuStreamDestroy(nb));
}

TEST(copies, planes_and_boxes)
{
    enum { WIDTH = 24, ROWS = 3, PLANES = 2, PITCH = 32 };
    char host[PLANES][4][PITCH], back[PLANES][ROWS][WIDTH];
    CUDA_MEMCPY3D in = {0}, out = {0};
    CUDA_MEMCPY2D flat = {0};
    CUdeviceptr d;

    self_setup();
    d = self_device(PLANES * ROWS * 64);
    for (size_t i = 0; i < sizeof host; i++)
        ((char *)host)[i] = (char)(i * 7);
    in.srcMemoryType = CU_MEMORYTYPE_HOST;
    in.srcHost = host;
    in.srcPitch = PITCH;
    in.srcHeight = 4;
    in.srcXInBytes = 1;
    in.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    in.dstDevice = d;
    in.dstPitch = 64;
    in.dstHeight = ROWS;
    in.WidthInBytes = WIDTH;
    in.Height = ROWS;
    in.Depth = PLANES;
    OK(cuMemcpy3DAsync(&in, CU_STREAM_LEGACY));
    memset(host[0][0], 0, 1); /* outside the box */
    out.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    out.srcDevice = d;
    out.srcPitch = 64;
    out.srcHeight = ROWS;
    out.dstMemoryType = CU_MEMORYTYPE_HOST;
    out.dstHost = back;
    out.dstPitch = WIDTH;
    out.dstHeight = ROWS;
    out.WidthInBytes = WIDTH;
    out.Height = ROWS;
    out.Depth = PLANES;
    OK(cuMemcpy3D(&out));
    for (int z = 0; z < PLANES; z++)
        for (int y = 0; y < ROWS; y++)
            CHECK_EQ_MEM(back[z][y], host[z][y] + 1, WIDTH);

    flat.srcMemoryType = CU_MEMORYTYPE_DEVICE; /* the second plane, one row down, four bytes in */
    flat.srcDevice = d + ROWS * 64;
    flat.srcPitch = 64;
    flat.srcXInBytes = 4;
    flat.srcY = 1;
    flat.dstMemoryType = CU_MEMORYTYPE_HOST;
    flat.dstHost = back;
    flat.dstPitch = WIDTH;
    flat.WidthInBytes = 8;
    flat.Height = 2;
    OK(cuMemcpy2D(&flat));
    CHECK_EQ_MEM(back[0][0], host[1][1] + 5, 8);
    CHECK_EQ_MEM(back[0][1], host[1][2] + 5, 8);
    OK(cuMemFree(d));
}

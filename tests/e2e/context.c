/* SPDX-License-Identifier: MIT */
/* Contexts: staging memory belongs to one, and ends with it. */
#include "tests/e2e/e2e.h"

#include <stdlib.h>
#include <string.h>

enum { N = 3 << 20 };

/* The form that every driver has: the newest one is missing from those before CUDA 12.5. */
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);

static CUresult e2e_context(CUcontext *context, CUdevice device)
{
    return cuCtxCreate_v2(context, 0, device);
}

/* Another device where there is one. */
static CUdevice other_device(void)
{
    int devices = 1;

    OK(cuDeviceGetCount(&devices));
    return devices > 1 ? 1 : 0;
}

static void round_trip(uint32_t seed)
{
    CUdeviceptr d = e2e_device_alloc(N);
    void *src = e2e_filled(N, seed), *dst = calloc(1, N);

    OK(cuMemcpyHtoD(d, src, N));
    OK(cuMemcpyDtoH(dst, d, N));
    CHECK(e2e_is_filled(dst, N, seed));
    OK(cuMemFree(d));
    free(src);
    free(dst);
}

TEST(context, case_28_two_contexts_and_the_current_one_stays)
{
    CUcontext a, b, now;

    e2e_setup();
    OK(cuCtxGetCurrent(&a));
    round_trip(1);
    OK(e2e_context(&b, other_device()));
    round_trip(2);
    OK(cuCtxGetCurrent(&now));
    CHECK(now == b);
    OK(cuCtxPopCurrent(&now));
    OK(cuCtxGetCurrent(&now));
    CHECK(now == a);
    round_trip(3);
    OK(cuCtxDestroy(b));
    round_trip(4);
}

/* A stream of one context used while another is current. */
TEST(context, case_28_a_stream_of_another_context)
{
    CUcontext a, b, now;
    CUstream s;
    CUdeviceptr d;
    void *src, *dst;

    e2e_setup();
    src = e2e_filled(N, 5);
    dst = calloc(1, N);
    OK(cuCtxGetCurrent(&a));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    d = e2e_device_alloc(N);
    OK(e2e_context(&b, other_device()));
    OK(cuMemcpyHtoDAsync(d, src, N, s));
    OK(cuMemcpyDtoHAsync(dst, d, N, s));
    CHECK(e2e_is_filled(dst, N, 5));
    OK(cuCtxGetCurrent(&now));
    CHECK(now == b);
    OK(cuCtxDestroy(b));
    OK(cuCtxGetCurrent(&now));
    CHECK(now == a);
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
    free(src);
    free(dst);
}

TEST(context, contexts_come_and_go)
{
    e2e_setup();
    for (uint32_t i = 0; i < 20; i++) {
        CUcontext c;

        OK(e2e_context(&c, 0));
        round_trip(i);
        OK(cuCtxDestroy(c));
    }
    round_trip(99);
}

TEST(context, case_32_reset_and_copy_again)
{
    CUcontext c;

    e2e_setup();
    round_trip(1);
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuDevicePrimaryCtxRetain(&c, 0));
    OK(cuCtxSetCurrent(c));
    round_trip(2);
    round_trip(3);
}

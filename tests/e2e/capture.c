/* SPDX-License-Identifier: MIT */
/* Stream captures: the shim leaves a copy alone while one is open (case 23), and what it asks of
 * the driver on its own account never breaks one. */
#include "tests/e2e/e2e.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4 << 20 };

static size_t nodes_of(CUgraph graph)
{
    size_t n = 0;

    OK(cuGraphGetNodes(graph, NULL, &n));
    return n;
}

TEST(capture, a_captured_copy_is_a_node_and_reads_its_source_at_launch)
{
    CUstream s;
    CUdeviceptr d;
    CUgraph graph;
    CUgraphExec exec;
    char *src;

    e2e_setup();
    src = e2e_filled(N, 1);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    d = e2e_device_alloc(N);
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuMemcpyHtoDAsync(d, src, N, s));
    OK(cuStreamEndCapture(s, &graph));
    CHECK_EQ_U64(nodes_of(graph), 1);
    OK(cuGraphInstantiate(&exec, graph, 0));
    for (uint32_t seed = 2; seed < 4; seed++) {
        e2e_fill(src, N, seed);
        OK(cuGraphLaunch(exec, s));
        OK(cuStreamSynchronize(s));
        CHECK(e2e_device_is_filled(d, N, seed));
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
    free(src);
}

TEST(capture, case_23_a_sync_copy_during_it_fails_as_natively)
{
    CUstream s;
    CUdeviceptr d;
    CUgraph graph = NULL;
    char *src;

    e2e_setup();
    src = e2e_filled(N, 1);
    OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    d = e2e_device_alloc(N);
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemsetD8Async(d, 0, N, s));
    CHECK_EQ_INT(cuMemcpyHtoD(d, src, N), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK_EQ_INT(cuStreamEndCapture(s, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    /* Afterwards copies work again, and may be rewritten again. */
    OK(cuMemcpyHtoD(d, src, N));
    CHECK(e2e_device_is_filled(d, N, 1));
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
    free(src);
}

struct other {
    CUdeviceptr d;
    char *src;
    CUresult result;
};

static void *copy_elsewhere(void *arg)
{
    struct other *o = arg;
    CUcontext context;
    CUstream s;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    o->result = cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    cuThreadExchangeStreamCaptureMode(&mode); /* so that this copy is allowed natively */
    if (o->result == CUDA_SUCCESS)
        o->result = cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
    if (o->result == CUDA_SUCCESS)
        o->result = cuMemcpyHtoDAsync(o->d, o->src, N, s);
    if (o->result == CUDA_SUCCESS)
        o->result = cuStreamSynchronize(s);
    cuDevicePrimaryCtxRelease(0);
    return NULL;
}

TEST(capture, case_23_it_survives_copies_of_another_thread)
{
    static const CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                                CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                                CU_STREAM_CAPTURE_MODE_RELAXED};
    CUstream s;
    CUdeviceptr d;

    e2e_setup();
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    d = e2e_device_alloc(N);
    for (int m = 0; m < 3; m++) {
        struct other o = {e2e_device_alloc(N), e2e_filled(N, (uint32_t)m + 7), CUDA_SUCCESS};
        pthread_t thread;
        CUgraph graph;

        OK(cuStreamBeginCapture(s, modes[m]));
        OK(cuMemsetD8Async(d, 1, N, s));
        CHECK_EQ_INT(pthread_create(&thread, NULL, copy_elsewhere, &o), 0);
        pthread_join(thread, NULL);
        OK(o.result);
        OK(cuMemsetD8Async(d, 2, N, s));
        OK(cuStreamEndCapture(s, &graph));
        CHECK_EQ_U64(nodes_of(graph), 2);
        OK(cuGraphDestroy(graph));
        CHECK(e2e_device_is_filled(o.d, N, (uint32_t)m + 7));
        free(o.src);
        OK(cuMemFree(o.d));
    }
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
}

TEST(capture, a_stream_destroyed_in_it_ends_it)
{
    CUstream s;
    CUdeviceptr d;
    char *src;
    long before;

    e2e_setup();
    src = e2e_filled(N, 5);
    d = e2e_device_alloc(N);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    cuStreamDestroy(s);
    before = e2e_driver_calls("cuMemcpyHtoD_v2");
    OK(cuMemcpyHtoD(d, src, N));
    if (before >= 0 && e2e_is_rewritten())
        CHECK_EQ_INT(e2e_driver_calls("cuMemcpyHtoD_v2") - before, 0); /* staged again */
    OK(cuMemFree(d));
    free(src);
}

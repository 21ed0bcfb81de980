/* SPDX-License-Identifier: MIT */
/* What makes copies stay where they are: whoever uses it might tell, or orders what cannot be
 * followed. Each holds for the rest of the process, so each test is a process (meson.build): first
 * a copy leaves queued work behind, then the program does what gives doubt, then a copy waits
 * again. No test may have host memory that the device can access. */
#include "tests/e2e/e2e.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 20000, BYTES = WORDS * 4 };

static CUdeviceptr busy; /* the later work's memory */

static void begin(void)
{
    e2e_setup_without_pinned();
    busy = e2e_device_alloc(BYTES);
    e2e_fill_words(CU_STREAM_LEGACY, busy, WORDS, 0);
    OK(cuCtxSynchronize());
}

static long done_before;

static void queue_work(void)
{
    done_before = e2e_later_work_done();
    e2e_queue_later_work(CU_STREAM_LEGACY, busy, WORDS);
}

/* A plain copy. True: the queued work was waited for. The simulated GPU that runs nothing unless it
 * must can tell; elsewhere it is told as expected. */
static bool waits(CUdeviceptr target, bool expected)
{
    void *source = e2e_filled(BYTES, 3), *back = malloc(BYTES);
    long done;

    OK(cuMemcpyHtoD(target, source, BYTES));
    done = e2e_later_work_done() - done_before;
    memset(source, 0, BYTES);
    OK(cuMemcpyDtoH(back, target, BYTES));
    CHECK(e2e_is_filled(back, BYTES, 3));
    free(source);
    free(back);
    return e2e_runs_only_what_it_must() ? done == E2E_LATER : expected;
}

/* To memory that is younger than the work. */
static bool waits_with_new_memory(bool expected)
{
    CUdeviceptr target;
    bool waited;

    queue_work();
    target = e2e_device_alloc(BYTES);
    waited = waits(target, expected);
    OK(cuMemFree(target));
    return waited;
}

#define LEAVES() CHECK(!waits_with_new_memory(false))
#define STAYS()  CHECK(waits_with_new_memory(true))

static CUgraphExec captured(CUstream s, CUdeviceptr d, void *host,
                            CUresult (*copy)(CUdeviceptr, void *, CUstream))
{
    CUgraphExec exec;
    CUgraph graph;

    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(copy(d, host, s));
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    return exec;
}

static CUresult to_device(CUdeviceptr d, void *host, CUstream s)
{
    return cuMemcpyHtoDAsync(d, host, BYTES, s);
}

static CUresult to_host(CUdeviceptr d, void *host, CUstream s)
{
    return cuMemcpyDtoHAsync(host, d, BYTES, s);
}

TEST(unsure, case_23_a_capture)
{
    CUgraph graph;
    CUstream s;

    begin();
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    LEAVES();
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamEndCapture(s, &graph));
    STAYS();
    OK(cuGraphDestroy(graph));
    OK(cuStreamDestroy(s));
}

TEST(unsure, case_24_a_graph_reads_its_source_at_each_launch)
{
    CUgraphExec exec;
    CUdeviceptr d;
    CUstream s;
    void *host;

    begin();
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    d = e2e_device_alloc(BYTES);
    host = e2e_filled(BYTES, 4);
    LEAVES();
    exec = captured(s, d, host, to_device);
    for (uint32_t seed = 5; seed < 8; seed++) {
        void *back = malloc(BYTES);

        e2e_fill(host, BYTES, seed);
        OK(cuGraphLaunch(exec, s));
        OK(cuStreamSynchronize(s));
        OK(cuMemcpyDtoH(back, d, BYTES));
        CHECK(e2e_is_filled(back, BYTES, seed));
        free(back);
        STAYS();
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
    free(host);
}

/* Plain copies wait for a graph that brings their source. */
TEST(unsure, case_44_a_graph_writes_the_source_of_a_plain_copy)
{
    CUdeviceptr from, to;
    CUgraphExec exec;
    CUstream s;
    void *host, *back;

    begin();
    OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
    from = e2e_device_alloc(BYTES);
    to = e2e_device_alloc(BYTES);
    host = e2e_filled(BYTES, 9);
    back = malloc(BYTES);
    OK(cuMemcpyHtoD(from, host, BYTES));
    exec = captured(s, from, host, to_host);
    memset(host, 0, BYTES);
    e2e_queue_later_work(s, busy, WORDS);
    OK(cuGraphLaunch(exec, s));
    OK(cuMemcpyHtoD(to, host, BYTES));
    OK(cuMemcpyDtoH(back, to, BYTES));
    CHECK(e2e_is_filled(back, BYTES, 9));
    OK(cuGraphExecDestroy(exec));
    OK(cuMemFree(from));
    OK(cuMemFree(to));
    OK(cuStreamDestroy(s));
    free(host);
    free(back);
}

/* This one is about the memory: other copies still leave. */
TEST(unsure, case_25_memory_that_is_always_copied_synchronously)
{
    unsigned on = 1;
    CUdeviceptr d;

    begin();
    LEAVES();
    queue_work();
    d = e2e_device_alloc(BYTES);
    OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, d));
    CHECK(waits(d, true));
    LEAVES();
    OK(cuMemFree(d));
}

TEST(unsure, case_25_a_context_that_always_copies_synchronously)
{
    begin();
    LEAVES();
    if (cuCtxSetFlags(CU_CTX_SYNC_MEMOPS) != CUDA_SUCCESS)
        SKIP("the driver does not let that be set now");
    STAYS();
}

TEST(unsure, case_25_memory_that_another_process_may_read)
{
    CUipcMemHandle handle;
    CUdeviceptr d;

    begin();
    LEAVES();
    queue_work();
    d = e2e_device_alloc(BYTES);
    OK(cuIpcGetMemHandle(&handle, d));
    CHECK(waits(d, true));
    STAYS();
    OK(cuMemFree(d));
}

/* The form that every driver has. */
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);

TEST(unsure, case_28_a_second_context)
{
    CUcontext other;

    begin();
    LEAVES();
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuCtxPopCurrent(&other));
    STAYS();
    OK(cuCtxDestroy(other));
    STAYS();
}

TEST(unsure, case_28_a_second_device_and_a_copy_between_them)
{
    CUcontext first, second;
    CUdeviceptr here, there;
    int devices = 1;

    begin();
    OK(cuDeviceGetCount(&devices));
    if (devices < 2)
        SKIP("there is one device");
    LEAVES();
    here = e2e_device_alloc(BYTES);
    e2e_fill_words(CU_STREAM_LEGACY, here, WORDS, 11);
    OK(cuCtxGetCurrent(&first));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    STAYS();
    OK(cuCtxPushCurrent(second));
    there = e2e_device_alloc(BYTES);
    OK(cuMemcpyPeer(there, second, here, first, BYTES));
    OK(cuCtxSynchronize());
    OK(cuCtxPopCurrent(&second));
    STAYS();
    OK(cuMemcpyPeer(here, first, there, second, BYTES));
    STAYS();
    OK(cuCtxSynchronize());
    OK(cuMemFree(here));
    OK(cuDevicePrimaryCtxRelease(1));
}

/* A launch that does not say what it touches, though others' arguments are gone by. */
TEST(unsure, case_29_arguments_in_one_block)
{
    struct {
        CUdeviceptr p;
        uint64_t n;
        uint32_t value;
    } args = {busy, WORDS, 7};
    size_t bytes = sizeof args;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &args, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    CUdeviceptr d;

    begin();
    d = args.p = e2e_device_alloc(BYTES);
    LEAVES();
    for (int i = 0; i < 3; i++) {
        OK(cuLaunchKernel(e2e_kernel("fill_u32"), 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY, NULL,
                          extra));
        queue_work();
        CHECK(waits(d, true));
    }
    LEAVES(); /* younger memory cannot have been meant */
    OK(cuMemFree(d));
}

TEST(unsure, case_29_a_kernel_that_all_blocks_run_at_once)
{
    uint64_t n = WORDS;
    uint32_t value = 8;
    CUdeviceptr d;

    begin();
    d = e2e_device_alloc(BYTES);
    LEAVES();
    for (int i = 0; i < 3; i++) {
        void *params[] = {&d, &n, &value};

        OK(cuLaunchCooperativeKernel(e2e_kernel("fill_u32"), 1, 1, 1, 1, 1, 1, 0, CU_STREAM_LEGACY,
                                     params));
        queue_work();
        CHECK(waits(d, true));
    }
    LEAVES();
    OK(cuMemFree(d));
}

/* Run with CUDA_DEVICE_MAX_CONNECTIONS=1: streams may wait for each other in the hardware. */
TEST(unsure, case_51_streams_that_share_a_queue)
{
    begin();
    STAYS();
}

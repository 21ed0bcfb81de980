/* SPDX-License-Identifier: MIT */
/* What a capture takes in, what it forbids, and what a graph's launch does. */
#include "tests/simgpu/selftest/self.h"

#include <stdlib.h>

static const CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL,
                                 relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

TEST(capture, a_fork_and_its_join_are_edges)
{
    CUstreamCaptureStatus status;
    const CUgraphNode *tail;
    CUgraphNode nodes[4], from[4], to[4];
    CUgraphNodeType type;
    cuuint64_t id;
    CUgraph graph, live;
    CUevent fork, join;
    CUstream a, b;
    CUdeviceptr x;
    size_t n;

    self_setup();
    a = self_stream(CU_STREAM_NON_BLOCKING);
    b = self_stream(CU_STREAM_NON_BLOCKING);
    x = self_device(16);
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture(a, global));
    OK(cuMemsetD8Async(x, 1, 4, a));
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    OK(cuStreamIsCapturing(b, &status));
    CHECK_EQ_INT(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    self_fill(b, x + 4, 2);
    self_fill(a, x + 8, 3);
    OK(cuEventRecord(join, b));
    OK(cuStreamWaitEvent(a, join, 0));
    OK(cuStreamGetCaptureInfo(a, &status, &id, &live, &tail, NULL, &n));
    CHECK(id != 0 && n == 2 && tail[0] != tail[1]);
    OK(cuMemsetD8Async(x + 12, 4, 4, a));
    OK(cuStreamEndCapture(a, &graph));
    CHECK(live == graph);
    n = 4;
    OK(cuGraphGetNodes(graph, nodes, &n));
    CHECK_EQ_U64(n, 4);
    OK(cuGraphNodeGetType(nodes[0], &type));
    CHECK_EQ_INT(type, CU_GRAPH_NODE_TYPE_MEMSET);
    n = 4;
    OK(cuGraphGetEdges(graph, from, to, NULL, &n));
    CHECK_EQ_U64(n, 4); /* a diamond */
    CHECK(from[0] == nodes[0] && to[3] == nodes[3]);
    OK(cuStreamIsCapturing(b, &status));
    CHECK_EQ_INT(status, CU_STREAM_CAPTURE_STATUS_NONE);
    CHECK_EQ_INT(cuEventQuery(join), CUDA_ERROR_CAPTURED_EVENT);
    OK(cuGraphDestroy(graph));
    OK(cuEventDestroy(fork));
    OK(cuEventDestroy(join));
    OK(cuMemFree(x));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

TEST(capture, branches_of_a_graph_are_not_ordered_by_the_order_of_their_capture)
{
    CUstream a, b;
    CUevent fork, join;
    CUdeviceptr flag, x;
    CUgraph graph;
    CUgraphExec exec;
    uint32_t one = 1;

    self_setup();
    a = self_stream(CU_STREAM_NON_BLOCKING);
    b = self_stream(CU_STREAM_NON_BLOCKING);
    flag = self_device(4);
    x = self_device(4);
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture(a, relaxed));
    OK(cuMemsetD32Async(flag, 0, 1, a));
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    LAUNCH(a, "gate_wait", &flag, &one); /* captured first, opened by the other branch */
    LAUNCH(b, "gate_set", &flag, &one);
    OK(cuEventRecord(join, b));
    OK(cuStreamWaitEvent(a, join, 0));
    self_fill(a, x, 5);
    OK(cuStreamEndCapture(a, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++)
        OK(cuGraphLaunch(exec, i == 1 ? b : a));
    OK(cuStreamSynchronize(a));
    OK(cuStreamSynchronize(b));
    CHECK_EQ_U64(self_word(x), 5);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuEventDestroy(fork));
    OK(cuEventDestroy(join));
    OK(cuMemFree(flag));
    OK(cuMemFree(x));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

TEST(capture, nodes_come_after_their_own_and_an_instance_after_its_last_launch)
{
    CUstream a, b;
    CUevent fork, join;
    CUdeviceptr x;
    CUgraph graph;
    CUgraphExec exec;

    self_setup();
    a = self_stream(CU_STREAM_NON_BLOCKING);
    b = self_stream(CU_STREAM_NON_BLOCKING);
    x = self_device(4);
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuStreamBeginCapture(a, relaxed));
    self_close_gate(a);
    self_fill(a, x, 1);
    OK(cuEventRecord(fork, a));
    OK(cuStreamWaitEvent(b, fork, 0));
    self_fill(b, x, 2); /* another stream's, and after the first */
    OK(cuEventRecord(join, b));
    OK(cuStreamWaitEvent(a, join, 0));
    OK(cuStreamEndCapture(a, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    OK(cuMemsetD32Async(x, 0, 1, a));
    OK(cuGraphLaunch(exec, a));
    for (int i = 0; i < 10; i++)
        CHECK_EQ_INT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    CHECK_EQ_U64(self_word(x), 0); /* neither has run */
    self_open_gate();
    OK(cuStreamSynchronize(a));
    CHECK_EQ_U64(self_word(x), 2);

    /* The gate inside stays open; before the first launch there is a wait for a value. */
    OK(cuMemsetD32Async(x, 0, 1, b));
    OK(cuStreamSynchronize(b));
    OK(cuStreamWaitValue32(a, x, 9, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuGraphLaunch(exec, a));
    OK(cuGraphLaunch(exec, b));
    for (int i = 0; i < 10; i++)
        CHECK_EQ_INT(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    CHECK_EQ_U64(self_word(x), 0);
    OK(cuStreamWriteValue32(CU_STREAM_PER_THREAD, x, 9, 0));
    OK(cuStreamSynchronize(b));
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuEventDestroy(fork));
    OK(cuEventDestroy(join));
    OK(cuMemFree(x));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

TEST(capture, a_captured_copy_reads_its_source_at_each_launch)
{
    CUgraphExec exec;
    CUgraph graph;
    CUdeviceptr d;
    uint32_t word = 1;
    CUstream s;

    self_setup();
    s = self_stream(CU_STREAM_NON_BLOCKING);
    d = self_device(4);
    OK(cuStreamBeginCapture(s, relaxed));
    OK(cuMemcpyHtoDAsync(d, &word, 4, s));
    OK(cuStreamEndCapture(s, &graph));
    OK(cuGraphInstantiate(&exec, graph, 0));
    for (word = 2; word < 5; word++) {
        OK(cuGraphLaunch(exec, s));
        OK(cuStreamSynchronize(s));
        CHECK_EQ_U64(self_word(d), word);
    }
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
}

static CUgraph ended(CUstream s, CUresult want)
{
    CUgraph graph = NULL;

    CHECK_EQ_INT(cuStreamEndCapture(s, &graph), want);
    if (graph)
        OK(cuGraphDestroy(graph));
    return graph;
}

TEST(capture, what_breaks_one)
{
    CUstream blocking, nb;
    CUevent outside, inside;
    CUdeviceptr d, other;
    uint32_t word = 1;

    self_setup();
    blocking = self_stream(CU_STREAM_DEFAULT);
    nb = self_stream(CU_STREAM_NON_BLOCKING);
    d = self_device(4);
    OK(cuEventCreate(&outside, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&inside, CU_EVENT_DISABLE_TIMING));
    OK(cuEventRecord(outside, nb));

    OK(cuStreamBeginCapture(blocking, relaxed)); /* the legacy stream beside it */
    CHECK_EQ_INT(cuMemcpyHtoD(d, &word, 4), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(!ended(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));

    OK(cuStreamBeginCapture(nb, global)); /* an unsafe call */
    CHECK_EQ_INT(cuMemAlloc(&other, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK_EQ_INT(cuMemsetD8Async(d, 0, 4, nb), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(!ended(nb, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));

    OK(cuStreamBeginCapture(nb, relaxed)); /* work from outside */
    CHECK_EQ_INT(cuStreamWaitEvent(nb, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    CHECK(!ended(nb, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));

    OK(cuStreamBeginCapture(nb, relaxed)); /* a question that has no answer */
    CHECK_EQ_INT(cuStreamQuery(nb), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(!ended(nb, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));

    OK(cuStreamBeginCapture(nb, relaxed)); /* a stream that does not come back */
    OK(cuEventRecord(inside, nb));
    OK(cuStreamWaitEvent(blocking, inside, 0));
    self_fill(blocking, d, 3);
    CHECK_EQ_INT(cuStreamEndCapture(blocking, &(CUgraph){NULL}),
                 CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK(!ended(nb, CUDA_ERROR_STREAM_CAPTURE_UNJOINED));

    OK(cuMemcpyHtoD(d, &word, 4)); /* and all is well again */
    CHECK_EQ_U64(self_word(d), 1);
    OK(cuEventDestroy(outside));
    OK(cuEventDestroy(inside));
    OK(cuMemFree(d));
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(nb));
}

struct attempt {
    CUstreamCaptureMode mode;
    CUresult result;
};

static void *allocate_elsewhere(void *arg)
{
    struct attempt *a = arg;
    CUcontext context;
    void *p;

    a->result = cuDevicePrimaryCtxRetain(&context, 0);
    if (a->result == CUDA_SUCCESS)
        a->result = cuCtxSetCurrent(context);
    if (a->result == CUDA_SUCCESS)
        a->result = cuThreadExchangeStreamCaptureMode(&a->mode);
    if (a->result == CUDA_SUCCESS)
        a->result = cuMemHostAlloc(&p, 4096, 0);
    cuDevicePrimaryCtxRelease(0);
    return NULL;
}

TEST(capture, a_global_one_forbids_to_other_threads_unless_they_are_relaxed)
{
    static const struct {
        CUstreamCaptureMode capture, thread;
        bool allowed;
    } rows[] = {
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL, false},
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true},
        {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_RELAXED, true},
        {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL, true},
        {CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_GLOBAL, true},
    };
    CUstream s;

    self_setup();
    s = self_stream(CU_STREAM_NON_BLOCKING);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct attempt a = {rows[i].thread, CUDA_SUCCESS};
        pthread_t thread;

        OK(cuStreamBeginCapture(s, rows[i].capture));
        CHECK_EQ_INT(pthread_create(&thread, NULL, allocate_elsewhere, &a), 0);
        pthread_join(thread, NULL);
        CHECK_EQ_INT(a.result,
                     rows[i].allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        ended(s, rows[i].allowed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    OK(cuStreamDestroy(s));
}

// SPDX-License-Identifier: MIT
// Asks the real driver about order: who is held while a thread waits, what a wait orders, what a capture
// forbids. Prints the answers; README.md keeps what they were. Each line is a measurement, not a test.
#include <cstring>
#include <cuda.h>
#include <pthread.h>

#include "measure.h"

static void pause_ms(long ms)
{
    timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

__global__ void say()
{
    printf("    printed by the kernel\n");
}

static volatile uint32_t *flag;
static const uint32_t *flag_on_device;
static cudaStream_t nb, nb2, blocking;
static char *device, *pageable, *pinned;
enum { BYTES = 32 << 20 };

// What thread A does for 300 ms while thread B makes a call.
static void sync_copy()
{
    spin<<<1, 1>>>(300000000);
    OK(cudaMemcpy(pageable, device, 1 << 20, cudaMemcpyDeviceToHost));
}

static void async_h2d()
{
    spin<<<1, 1, 0, nb>>>(300000000);
    OK(cudaMemcpyAsync(device, pageable, BYTES, cudaMemcpyHostToDevice, nb));
}

static void async_and_event()
{
    cudaEvent_t e;

    spin<<<1, 1>>>(300000000);
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaMemcpyAsync(pinned, device, 1 << 20, cudaMemcpyDeviceToHost, 0));
    OK(cudaEventRecord(e, 0));
    OK(cudaEventSynchronize(e));
}

static void async_pageable_d2h()
{
    spin<<<1, 1>>>(300000000);
    OK(cudaMemcpyAsync(pageable, device, 1 << 20, cudaMemcpyDeviceToHost, 0));
}

static void *run_a(void *work)
{
    ((void (*)())work)();
    return NULL;
}

template <typename Call> static void held(void (*work)(), const char *what, Call call)
{
    pthread_t a;
    double t;

    pthread_create(&a, NULL, run_a, (void *)work);
    pause_ms(60); // A is in its call by then
    t = now_ms();
    call();
    t = now_ms() - t;
    pthread_join(a, NULL);
    OK(cudaDeviceSynchronize());
    printf("  %s %.2f", what, t);
    fflush(stdout);
}

static void who_is_held()
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t e, t0, t1;
    cudaStream_t made;
    void *p;
    float ms;

    OK(cudaStreamBeginCapture(nb, cudaStreamCaptureModeRelaxed));
    empty<<<1, 1, 0, nb>>>();
    OK(cudaStreamEndCapture(nb, &graph));
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphLaunch(exec, nb));
    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaEventCreate(&t0));
    OK(cudaEventCreate(&t1));
    OK(cudaEventRecord(t0, nb));
    OK(cudaEventRecord(t1, nb));
    OK(cudaMallocAsync(&p, 1 << 20, nb));
    OK(cudaFreeAsync(p, nb));
    OK(cudaDeviceSynchronize());
    printf("A in a synchronous copy; B's calls on a non-blocking stream, ms:");
    held(sync_copy, "launch", [&] { empty<<<1, 1, 0, nb>>>(); });
    held(sync_copy, "graph launch", [&] { OK(cudaGraphLaunch(exec, nb)); });
    held(sync_copy, "host function", [&] { OK(cudaLaunchHostFunc(nb, [](void *) {}, NULL)); });
    held(sync_copy, "malloc async", [&] { OK(cudaMallocAsync(&p, 1 << 20, nb)); });
    held(sync_copy, "free async", [&] { OK(cudaFreeAsync(p, nb)); });
    held(sync_copy, "wait value", [&] { OK(cuStreamWaitValue32(nb, (CUdeviceptr)flag_on_device, 1, CU_STREAM_WAIT_VALUE_EQ)); });
    held(sync_copy, "write value", [&] { OK(cuStreamWriteValue32(nb, (CUdeviceptr)device, 1, 0)); });
    held(sync_copy, "D2D", [&] { OK(cudaMemcpyAsync(device, device + BYTES / 2, 4096, cudaMemcpyDeviceToDevice, nb)); });
    held(sync_copy, "2D H2D", [&] { OK(cudaMemcpy2DAsync(device, 512, pageable, 512, 256, 8, cudaMemcpyHostToDevice, nb)); });
    held(sync_copy, "elapsed time", [&] { OK(cudaEventElapsedTime(&ms, t0, t1)); });
    held(sync_copy, "stream create", [&] { OK(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking)); });
    held(sync_copy, "malloc", [&] { OK(cudaMalloc(&p, 1 << 20)); });
    held(sync_copy, "pinned malloc", [&] { OK(cudaMallocHost(&p, 1 << 20)); });
    held(sync_copy, "set device", [&] { OK(cudaSetDevice(0)); });
    printf("\nthe same, A in a pageable Async H2D of 32 MiB behind a kernel on a non-blocking stream:");
    held(async_h2d, "launch there", [&] { empty<<<1, 1, 0, nb>>>(); });
    held(async_h2d, "launch elsewhere", [&] { empty<<<1, 1, 0, nb2>>>(); });
    held(async_h2d, "record there", [&] { OK(cudaEventRecord(e, nb)); });
    held(async_h2d, "pinned copy elsewhere", [&] { OK(cudaMemcpyAsync(device, pinned, 4096, cudaMemcpyHostToDevice, nb2)); });
    printf("\nthe same, A in a pageable Async D2H on the legacy stream:");
    held(async_pageable_d2h, "launch on non-blocking", [&] { empty<<<1, 1, 0, nb>>>(); });
    held(async_pageable_d2h, "launch on legacy", [&] { empty<<<1, 1>>>(); });
    printf("\nthe same, A in a pinned Async copy and event synchronize on the legacy stream:");
    held(async_and_event, "launch on non-blocking", [&] { empty<<<1, 1, 0, nb>>>(); });
    held(async_and_event, "launch on legacy", [&] { empty<<<1, 1>>>(); });
    held(async_and_event, "record", [&] { OK(cudaEventRecord(e, nb)); });
    held(async_and_event, "synchronous copy 4 B", [&] { OK(cudaMemcpy(device, pageable, 4, cudaMemcpyHostToDevice)); });
    printf("\n");
}

static const char *ready(cudaError_t r)
{
    return r == cudaSuccess ? "done" : r == cudaErrorNotReady ? "not ready" : cudaGetErrorName(r);
}

static void close_gate(cudaStream_t s)
{
    *flag = 0;
    gate<<<1, 1, 0, s>>>((const volatile uint32_t *)flag_on_device);
}

static void open_gate()
{
    *flag = 1;
    OK(cudaDeviceSynchronize());
}

static void *open_later(void *)
{
    pause_ms(200);
    *flag = 1;
    return NULL;
}

static void legacy()
{
    cudaEvent_t e, f;
    double begun;

    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&f, cudaEventDisableTiming));
    close_gate(blocking);
    OK(cudaEventRecord(e, cudaStreamLegacy));
    pause_ms(20);
    printf("a gate on a blocking stream: query of the legacy stream %s, of an event recorded there %s\n",
           ready(cudaStreamQuery(cudaStreamLegacy)), ready(cudaEventQuery(e)));
    open_gate();
    spin<<<1, 1, 0, blocking>>>(100000000);
    begun = now_ms();
    OK(cudaStreamSynchronize(cudaStreamLegacy));
    printf("a kernel of 100 ms on a blocking stream: synchronize of the legacy stream took %.1f ms\n",
           now_ms() - begun);
    close_gate(nb);
    OK(cudaEventRecord(e, nb));
    OK(cudaStreamWaitEvent(cudaStreamLegacy, e, 0));
    empty<<<1, 1, 0, blocking>>>();
    OK(cudaEventRecord(f, blocking));
    pause_ms(20);
    printf("a bare wait of the legacy stream for a gated event, then a kernel on a blocking stream: %s\n",
           ready(cudaEventQuery(f)));
    open_gate();
    close_gate(nb);
    OK(cudaEventRecord(e, nb));
    OK(cudaStreamWaitEvent(cudaStreamLegacy, e, 0));
    OK(cudaEventRecord(f, cudaStreamLegacy));
    empty<<<1, 1, 0, blocking>>>();
    pause_ms(20);
    printf("the same with a record on the legacy stream between: %s\n", ready(cudaStreamQuery(blocking)));
    open_gate();
}

static void frees()
{
    void *small, *pool;
    pthread_t t;
    double begun;

    OK(cudaMalloc(&small, 256));
    OK(cudaMallocAsync(&pool, 1 << 20, nb2));
    OK(cudaDeviceSynchronize());
    for (void *p : {small, pool}) {
        close_gate(nb);
        pthread_create(&t, NULL, open_later, NULL);
        begun = now_ms();
        OK(cudaFree(p));
        printf("cudaFree of %s behind a gate of 200 ms on a non-blocking stream: %.1f ms\n",
               p == small ? "256 B" : "1 MiB of a pool", now_ms() - begun);
        pthread_join(t, NULL);
        OK(cudaDeviceSynchronize());
    }
}

static int relaxed;
static void *copy_during_capture(void *)
{
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    int r;

    if (relaxed)
        OK(cudaThreadExchangeStreamCaptureMode(&mode));
    r = cudaMemcpy(device, pageable, 4 << 20, cudaMemcpyHostToDevice);
    printf("  copy in another thread%s: %s", relaxed ? ", relaxed" : "", cudaGetErrorName((cudaError_t)r));
    cudaGetLastError();
    return NULL;
}

static void captures()
{
    cudaStreamCaptureStatus status;
    cudaGraph_t graph;
    cudaEvent_t e;
    pthread_t t;
    int r;

    OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    OK(cudaEventRecord(e, nb));
    OK(cudaEventSynchronize(e));
    OK(cudaStreamBeginCapture(nb, cudaStreamCaptureModeGlobal));
    OK(cudaEventRecord(e, nb));
    OK(cudaStreamWaitEvent(nb2, e, 0));
    OK(cudaStreamIsCapturing(nb2, &status));
    printf("completed event, recorded again in a capture and waited for: the other stream %s\n",
           status == cudaStreamCaptureStatusActive ? "joins it" : "does not join it");
    OK(cudaEventRecord(e, nb2));
    OK(cudaStreamWaitEvent(nb, e, 0));
    OK(cudaStreamEndCapture(nb, &graph));
    for (relaxed = 0; relaxed < 2; relaxed++) {
        printf("a global capture on a non-blocking stream;");
        OK(cudaStreamBeginCapture(nb, cudaStreamCaptureModeGlobal));
        empty<<<1, 1, 0, nb>>>();
        pthread_create(&t, NULL, copy_during_capture, NULL);
        pthread_join(t, NULL);
        r = cudaStreamEndCapture(nb, &graph);
        printf("; its end: %s\n", cudaGetErrorName((cudaError_t)r));
        cudaGetLastError();
    }
}

// How many of many streams are stuck behind one gate?
static void queues()
{
    enum { STREAMS = 64 };
    static cudaStream_t s[STREAMS];
    int kernels = 0, copies = 0;

    for (int i = 0; i < STREAMS; i++)
        OK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
    for (int kind = 0; kind < 2; kind++) {
        close_gate(s[0]);
        for (int i = 1; i < STREAMS; i++) {
            if (kind == 0)
                empty<<<1, 1, 0, s[i]>>>();
            else
                OK(cudaMemcpyAsync(device, pinned, 1 << 20, cudaMemcpyHostToDevice, s[i]));
        }
        pause_ms(100);
        for (int i = 1; i < STREAMS; i++)
            *(kind ? &copies : &kernels) += cudaStreamQuery(s[i]) == cudaErrorNotReady;
        open_gate();
    }
    printf("a gate on one of 64 streams: kernels stuck on %d of the others, copies on %d\n", kernels, copies);
    for (int i = 0; i < STREAMS; i++)
        OK(cudaStreamDestroy(s[i]));
}

// What is printed by a kernel that nobody waits for, natively?
static void prints(const char *self)
{
    for (const char *how : {"sync", "async", "none"}) {
        char command[512];

        printf("a printing kernel on a non-blocking stream, %s copy of 8 MiB on another, exit:\n", how);
        fflush(stdout);
        snprintf(command, sizeof command, "%s print %s", self, how);
        if (system(command))
            printf("    failed\n");
    }
}

int main(int argc, char **argv)
{
    void *p;

    OK(cudaStreamCreateWithFlags(&nb, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&nb2, cudaStreamNonBlocking));
    OK(cudaStreamCreate(&blocking));
    OK(cudaMalloc(&device, BYTES));
    OK(cudaMallocHost(&pinned, BYTES));
    OK(cudaHostAlloc(&p, 4, cudaHostAllocMapped));
    flag = (volatile uint32_t *)p;
    OK(cudaHostGetDevicePointer(&p, p, 0));
    flag_on_device = (const uint32_t *)p;
    pageable = (char *)malloc(BYTES);
    memset(pageable, 1, BYTES);
    if (argc > 2) {
        say<<<1, 1, 0, nb>>>();
        if (strcmp(argv[2], "sync") == 0)
            OK(cudaMemcpy(device, pageable, 8 << 20, cudaMemcpyHostToDevice));
        if (strcmp(argv[2], "async") == 0)
            OK(cudaMemcpyAsync(device, pageable, 8 << 20, cudaMemcpyHostToDevice, nb2));
        exit(0);
    }
    *flag = 1; // the first launch of a kernel waits for the device: do it while nothing runs
    spin<<<1, 1, 0, nb>>>(1000);
    gate<<<1, 1, 0, nb>>>((const volatile uint32_t *)flag_on_device);
    empty<<<1, 1, 0, nb>>>();
    OK(cudaDeviceSynchronize());
    who_is_held();
    legacy();
    frees();
    captures();
    queues();
    prints(argv[0]);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Two threads. To the other thread on its stream a copy is one operation, Async or not: what it
 * launches comes before or after the whole of it. On another stream it goes on. */
#include "tests/e2e/e2e.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 4 << 20 >> 2, ROUNDS = 60 };

static struct {
    CUdeviceptr words;
    bool async;
    volatile int done;
    CUresult result;
} shared;

/* Rewrites the array with one value after another. */
static void *write_values(void *unused)
{
    uint32_t *values = malloc(WORDS * 4);
    CUcontext context;

    shared.result = cuDevicePrimaryCtxRetain(&context, 0);
    if (shared.result == CUDA_SUCCESS)
        shared.result = cuCtxSetCurrent(context);
    for (uint32_t round = 1; round <= ROUNDS && shared.result == CUDA_SUCCESS; round++) {
        for (int i = 0; i < WORDS; i++)
            values[i] = round;
        if (shared.async)
            shared.result = cuMemcpyHtoDAsync(shared.words, values, WORDS * 4, CU_STREAM_LEGACY);
        else
            shared.result = cuMemcpyHtoD(shared.words, values, WORDS * 4);
    }
    cuDevicePrimaryCtxRelease(0);
    free(values);
    __atomic_store_n(&shared.done, 1, __ATOMIC_SEQ_CST);
    return unused;
}

/* Natively true: the sum is a multiple of the count, since all words are of one round. */
static void sum_while_written(bool async)
{
    CUdeviceptr sum;
    pthread_t writer;
    uint64_t n = WORDS, got, zero = 0;
    uint32_t value = 0;

    e2e_setup();
    shared.words = e2e_device_alloc(WORDS * 4);
    sum = e2e_device_alloc(8);
    LAUNCH(CU_STREAM_LEGACY, "fill_u32", &shared.words, &n, &value);
    OK(cuMemcpyHtoD(sum, &zero, 8));
    shared.async = async;
    shared.done = 0;
    CHECK_EQ_INT(pthread_create(&writer, NULL, write_values, NULL), 0);
    while (!__atomic_load_n(&shared.done, __ATOMIC_SEQ_CST)) {
        LAUNCH(CU_STREAM_LEGACY, "checksum_u32", &shared.words, &n, &sum);
        OK(cuMemcpyDtoH(&got, sum, 8));
        CHECK_EQ_U64(got % WORDS, 0);
        CHECK(got / WORDS <= ROUNDS);
    }
    pthread_join(writer, NULL);
    OK(shared.result);
    OK(cuMemFree(shared.words));
    OK(cuMemFree(sum));
}

TEST(threads, a_sync_copy_is_one_operation)
{
    sum_while_written(false);
}

TEST(threads, an_async_copy_is_one_operation)
{
    sum_while_written(true);
}

/* Thread A's synchronous copy of case 5. */
static struct {
    bool to_device;
    void *host;
    CUdeviceptr device;
    size_t bytes;
    CUcontext context;
    volatile int begun;
    CUresult result;
} waiting;

static void *copy_behind_the_gate(void *unused)
{
    waiting.result = cuCtxSetCurrent(waiting.context);
    __atomic_store_n(&waiting.begun, 1, __ATOMIC_SEQ_CST);
    if (waiting.result == CUDA_SUCCESS)
        waiting.result = waiting.to_device
                             ? cuMemcpyHtoD(waiting.device, waiting.host, waiting.bytes)
                             : cuMemcpyDtoH(waiting.host, waiting.device, waiting.bytes);
    return unused;
}

static void launch_while_a_copy_waits(bool to_device, bool pinned, size_t bytes)
{
    struct e2e_gate gate;
    void *host = NULL;
    CUdeviceptr device;
    pthread_t a;
    CUstream s;

    if (!pinned)
        host = malloc(bytes);
    else if (cuMemHostAlloc(&host, bytes, 0) != CUDA_SUCCESS)
        return; /* the driver that pins so much in all (e2e/meson.build, "refused") */
    device = e2e_device_alloc(bytes);
    e2e_fill(host, bytes, 5);
    OK(cuMemcpyHtoD(device, host, bytes));
    if (!to_device)
        memset(host, 0, bytes);
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    LAUNCH(s, "empty", );
    OK(cuCtxSynchronize());
    e2e_gate_make(&gate);
    e2e_gate_close(&gate, CU_STREAM_LEGACY);
    waiting.to_device = to_device;
    waiting.host = host;
    waiting.device = device;
    waiting.bytes = bytes;
    waiting.begun = 0;
    OK(cuCtxGetCurrent(&waiting.context));
    CHECK_EQ_INT(pthread_create(&a, NULL, copy_behind_the_gate, NULL), 0);
    while (!__atomic_load_n(&waiting.begun, __ATOMIC_SEQ_CST))
        sched_yield();
    for (int i = 0; i < 300; i++) { /* by then A is in its copy, which natively holds these */
        LAUNCH(s, "empty", );
        sched_yield();
    }
    e2e_gate_open(&gate);
    pthread_join(a, NULL);
    OK(waiting.result);
    if (!to_device)
        CHECK(e2e_is_filled(host, bytes, 5));
    CHECK(e2e_device_is_filled(device, bytes, 5));
    e2e_gate_free(&gate);
    OK(cuMemFree(device));
    OK(cuStreamDestroy(s));
    if (pinned)
        OK(cuMemFreeHost(host));
    else
        free(host);
}

TEST(threads, case_5_a_waiting_copy_holds_nobody_elses_launches)
{
    static const size_t sizes[] = {1 << 10, 64 << 10, 1 << 20, 8 << 20};

    e2e_setup();
    if (e2e_is_native())
        SKIP("natively a launch waits for another thread's synchronous copy");
    for (int kind = 0; kind < 4; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            launch_while_a_copy_waits(kind & 1, kind & 2, sizes[i]);
}

/* SPDX-License-Identifier: MIT */
/* Two threads on one stream. To the other thread a copy is one operation, Async or not: what it
 * launches comes before or after the whole of it. */
#include "tests/e2e/e2e.h"

#include <pthread.h>
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

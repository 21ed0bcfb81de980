/* SPDX-License-Identifier: MIT */
/* Synchronous copies into new memory behind queued work. Under the shim they may return before that
 * work is done, if nobody can tell: here everybody tries to. No test of this program may have host
 * memory that the device can access, or kernels can be told of, and nothing overtakes them. */
#include "tests/e2e/e2e.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 20000 };

static CUdeviceptr filled_by_kernel(CUstream stream, uint32_t value)
{
    CUdeviceptr p = e2e_device_alloc(WORDS * 4);
    uint64_t n = WORDS;

    LAUNCH(stream, "fill_u32", &p, &n, &value);
    return p;
}

/* A plain copy to memory that is new. */
static CUdeviceptr copied_to_new_memory(uint32_t seed)
{
    void *source = e2e_filled(WORDS * 4, seed);
    CUdeviceptr p = e2e_device_alloc(WORDS * 4);

    OK(cuMemcpyHtoD(p, source, WORDS * 4));
    memset(source, 0, WORDS * 4);
    free(source);
    return p;
}

static void check_words(CUdeviceptr p, uint32_t value)
{
    uint32_t *back = malloc(WORDS * 4);

    OK(cuMemcpyDtoH(back, p, WORDS * 4));
    for (int i = 0; i < WORDS; i++)
        CHECK_EQ_U64(back[i], value);
    free(back);
}

static void check_filled(CUdeviceptr p, uint32_t seed)
{
    void *back = malloc(WORDS * 4);

    OK(cuMemcpyDtoH(back, p, WORDS * 4));
    CHECK(e2e_is_filled(back, WORDS * 4, seed));
    free(back);
}

static CUstream apart(void)
{
    CUstream s;

    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

/* On the simulated GPU that runs nothing unless it must, waiting would show. */
TEST(early, it_returns_before_the_queued_work)
{
    CUdeviceptr a, b;
    long before;

    e2e_setup_without_pinned();
    if (!e2e_runs_only_what_it_must())
        SKIP("only where copies are rewritten, and waits can be seen");
    a = filled_by_kernel(CU_STREAM_LEGACY, 1);
    before = e2e_driver_calls("cuEventSynchronize") + e2e_driver_calls("cuStreamSynchronize") +
             e2e_driver_calls("cuMemcpyHtoD_v2");
    b = copied_to_new_memory(2);
    CHECK_EQ_INT(e2e_driver_calls("cuEventSynchronize") + e2e_driver_calls("cuStreamSynchronize") +
                     e2e_driver_calls("cuMemcpyHtoD_v2"),
                 before);
    check_words(a, 1);
    check_filled(b, 2);
    OK(cuMemFree(a));
    OK(cuMemFree(b));
}

static void *query_in_another_thread(void *arg)
{
    void **of = arg;

    OK(cuCtxSetCurrent(of[2]));
    OK(cuEventQuery(of[0]));
    OK(cuStreamQuery(of[1]));
    return NULL;
}

TEST(early, case_34_queries_say_that_the_work_before_is_done)
{
    for (int way = 0; way < 4; way++) {
        CUdeviceptr a, b;
        CUcontext context;
        CUevent event;
        CUstream s;

        e2e_setup_without_pinned();
        OK(cuStreamCreate(&s, CU_STREAM_DEFAULT));
        OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        a = filled_by_kernel(s, 3);
        OK(cuEventRecord(event, s));
        b = copied_to_new_memory(4);
        if (way == 0)
            OK(cuEventQuery(event));
        if (way == 1)
            OK(cuStreamQuery(s));
        /* A real driver may return from a small copy before its own stream has it. */
        if (way == 2 && e2e_driver_calls("cuInit") >= 0)
            OK(cuStreamQuery(CU_STREAM_LEGACY));
        if (way == 3) {
            pthread_t thread;

            OK(cuCtxGetCurrent(&context));
            pthread_create(&thread, NULL, query_in_another_thread, (void *[]){event, s, context});
            pthread_join(thread, NULL);
        }
        check_words(a, 3);
        check_filled(b, 4);
        OK(cuMemFree(a));
        OK(cuMemFree(b));
        OK(cuEventDestroy(event));
        OK(cuStreamDestroy(s));
    }
}

/* init on the legacy stream; a copy; infer on a stream that knows of neither. */
TEST(early, case_36_later_work_is_ordered_after_the_work_before)
{
    CUdeviceptr w, config, out, out2;
    uint64_t n = WORDS;
    CUstream s;

    e2e_setup_without_pinned();
    s = apart();
    out = e2e_device_alloc(WORDS * 4);
    out2 = e2e_device_alloc(WORDS * 4);
    w = filled_by_kernel(CU_STREAM_LEGACY, 5);
    config = copied_to_new_memory(6);
    LAUNCH(s, "copy_u32", &w, &out, &n);
    LAUNCH(s, "copy_u32", &config, &out2, &n);
    OK(cuStreamSynchronize(s));
    check_words(out, 5);
    check_filled(out2, 6);
    OK(cuMemFree(w));
    OK(cuMemFree(config));
    OK(cuMemFree(out));
    OK(cuMemFree(out2));
    OK(cuStreamDestroy(s));
}

/* Memory of a pool is handed out again behind work that still uses it. */
TEST(early, case_42_pool_memory_is_never_new)
{
    uint32_t value = 7;
    uint64_t n = WORDS;
    CUdeviceptr a, b;
    void *source = e2e_filled(WORDS * 4, 8);

    e2e_setup_without_pinned();
    OK(cuMemAllocAsync(&a, WORDS * 4, CU_STREAM_LEGACY));
    LAUNCH(CU_STREAM_LEGACY, "fill_u32", &a, &n, &value);
    OK(cuMemFreeAsync(a, CU_STREAM_LEGACY));
    OK(cuMemAllocAsync(&b, WORDS * 4, CU_STREAM_LEGACY));
    OK(cuMemcpyHtoD(b, source, WORDS * 4));
    check_filled(b, 8);
    OK(cuMemFreeAsync(b, CU_STREAM_LEGACY));
    free(source);
}

/* Freed, and allocated again at the same place: new, but the old one's kernel was waited for. */
TEST(early, freed_memory_comes_back_clean)
{
    e2e_setup_without_pinned();
    for (uint32_t i = 0; i < 20; i++) {
        CUdeviceptr a = filled_by_kernel(CU_STREAM_LEGACY, i), b;

        OK(cuMemFree(a));
        b = copied_to_new_memory(i);
        check_filled(b, i);
        OK(cuMemFree(b));
    }
}

/* A stream that was destroyed while it was owed for, and its handle's next owner. */
TEST(early, streams_come_and_go_while_something_is_owed)
{
    e2e_setup_without_pinned();
    for (uint32_t i = 0; i < 10; i++) {
        CUdeviceptr w = filled_by_kernel(CU_STREAM_LEGACY, i), out = e2e_device_alloc(WORDS * 4);
        CUdeviceptr b = copied_to_new_memory(i);
        uint64_t n = WORDS;
        CUstream s = apart();

        LAUNCH(s, "copy_u32", &w, &out, &n);
        OK(cuStreamDestroy(s));
        s = apart();
        LAUNCH(s, "copy_u32", &w, &out, &n);
        OK(cuStreamSynchronize(s));
        check_words(out, i);
        check_filled(b, i);
        OK(cuStreamDestroy(s));
        OK(cuMemFree(w));
        OK(cuMemFree(out));
        OK(cuMemFree(b));
    }
}

/* What a timing event stands before must lie between it and the next one. */
TEST(early, zz_case_48_elapsed_time_holds_the_copy)
{
    CUevent begin, end;
    CUdeviceptr a, b;
    float ms = -1;

    e2e_setup_without_pinned();
    OK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    a = filled_by_kernel(CU_STREAM_LEGACY, 9);
    OK(cuEventRecord(begin, CU_STREAM_LEGACY));
    b = copied_to_new_memory(10);
    OK(cuEventRecord(end, CU_STREAM_LEGACY));
    OK(cuEventQuery(begin)); /* the copy has waited for it */
    OK(cuEventSynchronize(end));
    if (cuEventElapsedTime(&ms, begin, end) != CUDA_ERROR_NOT_FOUND) /* a newer one than 11.4's */
        CHECK(ms >= 0);
    check_words(a, 9);
    check_filled(b, 10);
    OK(cuMemFree(a));
    OK(cuMemFree(b));
    OK(cuEventDestroy(begin));
    OK(cuEventDestroy(end));
}

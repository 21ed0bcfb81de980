/* SPDX-License-Identifier: MIT */
/* Streams, events, host functions: what is ordered after what, and what is not. */
#include "tests/simgpu/selftest/self.h"

TEST(order, an_event_orders_two_streams)
{
    CUstream a, b;
    CUdeviceptr x, y;
    CUevent e;
    uint64_t one = 1;

    self_setup();
    a = self_stream(CU_STREAM_NON_BLOCKING);
    b = self_stream(CU_STREAM_NON_BLOCKING);
    x = self_device(4);
    y = self_device(4);
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    self_close_gate(a);
    self_fill(a, x, 7);
    OK(cuEventRecord(e, a));
    CHECK_EQ_INT(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    OK(cuStreamWaitEvent(b, e, 0));
    LAUNCH(b, "copy_u32", &x, &y, &one);
    CHECK_EQ_INT(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    self_open_gate();
    OK(cuStreamSynchronize(b));
    OK(cuEventQuery(e));
    CHECK_EQ_U64(self_word(y), 7);
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuMemFree(x));
    OK(cuMemFree(y));
}

TEST(order, without_it_the_adversary_shows_the_old_bytes)
{
    CUstream a, b;
    CUdeviceptr x, y;
    uint64_t one = 1;

    self_setup();
    if (!self_scheduler_is("lazy"))
        SKIP("only the lazy scheduler always does");
    a = self_stream(CU_STREAM_NON_BLOCKING);
    b = self_stream(CU_STREAM_NON_BLOCKING);
    x = self_device(4);
    y = self_device(4);
    self_fill(a, x, 1);
    OK(cuStreamSynchronize(a));
    self_fill(a, x, 7);
    LAUNCH(b, "copy_u32", &x, &y, &one);
    OK(cuStreamSynchronize(b));
    CHECK_EQ_U64(self_word(y), 1);
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuMemFree(x));
    OK(cuMemFree(y));
}

TEST(order, a_never_recorded_event_is_no_edge_and_a_later_record_changes_none)
{
    CUstream a, b;
    CUevent e;
    unsigned long waits;

    self_setup();
    a = self_stream(CU_STREAM_NON_BLOCKING);
    b = self_stream(CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    waits = simgpu_stream_waits();
    OK(cuStreamWaitEvent(b, e, 0)); /* none */
    CHECK_EQ_U64(simgpu_stream_waits(), waits);
    OK(cuEventRecord(e, a));
    OK(cuStreamWaitEvent(b, e, 0)); /* for nothing yet */
    CHECK_EQ_U64(simgpu_stream_waits(), waits + 1);
    self_close_gate(a);
    OK(cuEventRecord(e, a));
    LAUNCH(b, "empty");
    OK(cuStreamSynchronize(b)); /* with the gate closed */
    self_open_gate();
    OK(cuEventSynchronize(e));
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
}

TEST(order, the_legacy_stream_and_blocking_streams_wait_for_each_other)
{
    CUstream blocking, other;
    CUdeviceptr x;

    self_setup();
    blocking = self_stream(CU_STREAM_DEFAULT);
    other = self_stream(CU_STREAM_NON_BLOCKING);
    x = self_device(4);

    self_close_gate(blocking);
    self_fill(CU_STREAM_LEGACY, x, 1);
    CHECK_EQ_INT(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    self_fill(other, x, 2);
    OK(cuStreamSynchronize(other)); /* it goes by them */
    CHECK_EQ_U64(self_word(x), 2);
    self_open_gate();
    OK(cuStreamSynchronize(CU_STREAM_LEGACY));
    CHECK_EQ_U64(self_word(x), 1);

    self_close_gate(CU_STREAM_LEGACY);
    self_fill(blocking, x, 3);
    CHECK_EQ_INT(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
    self_fill(other, x, 4);
    OK(cuStreamSynchronize(other));
    self_open_gate();
    OK(cuStreamSynchronize(blocking));
    CHECK_EQ_U64(self_word(x), 3);
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(other));
    OK(cuMemFree(x));
}

TEST(order, legacy_work_comes_after_streams_that_were_destroyed)
{
    enum { STREAMS = 20 };
    CUdeviceptr x[STREAMS], y;
    uint64_t one = 1;

    self_setup();
    y = self_device(4 * STREAMS);
    for (int i = 0; i < STREAMS; i++) {
        CUstream s = self_stream(CU_STREAM_DEFAULT);

        x[i] = self_device(4);
        if (i == 0)
            self_close_gate(s);
        self_fill(s, x[i], 100 + (uint32_t)i);
        OK(cuStreamDestroy(s));
    }
    for (uint64_t i = 0; i < STREAMS; i++) {
        CUdeviceptr to = y + i * 4;

        LAUNCH(CU_STREAM_LEGACY, "copy_u32", &x[i], &to, &one);
    }
    self_open_gate();
    OK(cuStreamSynchronize(CU_STREAM_LEGACY));
    for (uint64_t i = 0; i < STREAMS; i++) {
        CHECK_EQ_U64(self_word(y + i * 4), 100 + i);
        OK(cuMemFree(x[i]));
    }
    OK(cuMemFree(y));
}

TEST(order, handles_come_back_and_ids_do_not)
{
    CUstream a, b;
    unsigned long long id_a, id_b;

    self_setup();
    a = self_stream(CU_STREAM_DEFAULT);
    OK(cuStreamGetId(a, &id_a));
    OK(cuStreamDestroy(a));
    CHECK_EQ_INT(cuStreamQuery(a), CUDA_ERROR_INVALID_HANDLE);
    b = self_stream(CU_STREAM_DEFAULT);
    OK(cuStreamGetId(b, &id_b));
    CHECK(a == b);
    CHECK(id_a != id_b);
    OK(cuStreamDestroy(b));
}

static void *per_thread_id(void *arg)
{
    CUcontext c;

    if (cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c) ||
        cuStreamGetId(CU_STREAM_PER_THREAD, arg))
        *(unsigned long long *)arg = 0;
    cuDevicePrimaryCtxRelease(0);
    return NULL;
}

TEST(order, each_thread_has_a_per_thread_stream_of_its_own)
{
    CUresult (*get_id)(CUstream, unsigned long long *);
    unsigned long long own, same, other[2];
    CUdriverProcAddressQueryResult status;
    pthread_t thread;
    void *p;

    self_setup();
    OK(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
    OK(cuGetProcAddress("cuStreamGetId", &p, 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                        &status));
    memcpy(&get_id, &p, sizeof p);
    OK(get_id(NULL, &same));
    CHECK_EQ_U64(same, own);
    for (int i = 0; i < 2; i++) { /* the second gets the first one's number from the kernel */
        CHECK_EQ_INT(pthread_create(&thread, NULL, per_thread_id, &other[i]), 0);
        pthread_join(thread, NULL);
    }
    CHECK(other[0] && other[1] && other[0] != own && other[1] != own && other[0] != other[1]);
}

/* A host function that ends only when its caller goes on. */
static void wait_for_gate(void *result)
{
    *(CUresult *)result = cuCtxSynchronize(); /* not allowed here */
    while (!self_gate_is_open())
        ;
}

TEST(order, host_functions_run_beside_the_program_and_make_no_calls)
{
    CUresult result = CUDA_SUCCESS;
    CUdeviceptr x;
    CUstream s;

    self_setup();
    s = self_stream(CU_STREAM_NON_BLOCKING);
    x = self_device(4);
    self_close_gate(CU_STREAM_PER_THREAD); /* elsewhere: only the flag matters */
    OK(cuLaunchHostFunc(s, wait_for_gate, &result));
    self_fill(s, x, 9);
    CHECK_EQ_INT(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    CHECK_EQ_INT(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
    self_open_gate();
    OK(cuStreamSynchronize(s));
    CHECK_EQ_INT(result, CUDA_ERROR_NOT_PERMITTED);
    CHECK_EQ_U64(self_word(x), 9);
    OK(cuStreamDestroy(s));
    OK(cuMemFree(x));
}

static void note_status(CUstream s, CUresult status, void *out)
{
    *(CUresult *)out = status;
}

TEST(order, a_callback_is_told_the_status)
{
    CUresult told = CUDA_ERROR_UNKNOWN;
    CUstream s;

    self_setup();
    s = self_stream(CU_STREAM_NON_BLOCKING);
    OK(cuStreamAddCallback(s, note_status, &told, 0));
    OK(cuStreamSynchronize(s));
    OK(told);
    OK(cuStreamDestroy(s));
}

TEST(order, memory_operations_wait_and_write)
{
    CUstream a, b;
    CUdeviceptr x;

    self_setup();
    a = self_stream(CU_STREAM_NON_BLOCKING);
    b = self_stream(CU_STREAM_NON_BLOCKING);
    x = self_device(16);
    OK(cuMemsetD8(x, 0, 16));
    OK(cuStreamSynchronize(CU_STREAM_LEGACY));
    OK(cuStreamWaitValue32(a, x, 5, CU_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamWaitValue64(a, x + 8, 1ull << 40, CU_STREAM_WAIT_VALUE_EQ));
    self_fill(a, x, 77);
    OK(cuStreamWriteValue32(b, x, 4, 0));
    OK(cuStreamSynchronize(b));
    CHECK_EQ_INT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(cuStreamWriteValue32(b, x, 6, 0));
    OK(cuStreamSynchronize(b));
    CHECK_EQ_INT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(cuStreamWriteValue64(b, x + 8, 1ull << 40, 0));
    OK(cuStreamSynchronize(a));
    CHECK_EQ_U64(self_word(x), 77);
    CHECK_EQ_INT(cuStreamWaitValue32(a, x + 1, 5, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuMemFree(x));
}

TEST(order, a_polling_loop_ends)
{
    CUstream a, b;
    CUdeviceptr flag;
    uint32_t one = 1;
    CUevent e;

    self_setup();
    a = self_stream(CU_STREAM_NON_BLOCKING);
    b = self_stream(CU_STREAM_NON_BLOCKING);
    flag = self_device(4);
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuMemsetD32Async(flag, 0, 1, a));
    OK(cuStreamSynchronize(a));
    LAUNCH(a, "gate_wait", &flag, &one);
    OK(cuEventRecord(e, a));
    LAUNCH(b, "gate_set", &flag, &one); /* nobody waits for b */
    while (cuEventQuery(e) == CUDA_ERROR_NOT_READY)
        ;
    OK(cuEventQuery(e));
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(a));
    OK(cuStreamDestroy(b));
    OK(cuMemFree(flag));
}

TEST(order, times_are_measured)
{
    uint64_t ns = 5000000;
    CUevent a, b;
    CUstream s;
    float ms;

    self_setup();
    s = self_stream(CU_STREAM_NON_BLOCKING);
    OK(cuEventCreate(&a, CU_EVENT_DEFAULT));
    OK(cuEventCreate(&b, CU_EVENT_DEFAULT));
    CHECK_EQ_INT(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(a, s));
    LAUNCH(s, "spin_ns", &ns);
    OK(cuEventRecord(b, s));
    OK(cuEventSynchronize(b));
    OK(cuEventElapsedTime(&ms, a, b));
    CHECK(ms >= 0);
    if (self_scheduler_is("timed"))
        CHECK(ms >= 5);
    OK(cuEventDestroy(a));
    OK(cuEventDestroy(b));
    OK(cuStreamDestroy(s));
}

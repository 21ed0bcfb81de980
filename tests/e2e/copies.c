/* SPDX-License-Identifier: MIT */
/* Copies of every size, through every form, and the cases of public reports that broke other tools:
 * the number in a test's name is the case's. */
#include "tests/e2e/e2e.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KiB = 1 << 10, MiB = 1 << 20 };

static const size_t sizes[] = {1,   4,           4 * KiB,     64 * KiB, 64 * KiB + 1,
                               MiB, 2 * MiB + 3, 33 * MiB + 5};
enum { SIZES = sizeof sizes / sizeof *sizes };

static CUstream make_stream(unsigned flags)
{
    CUstream s;

    OK(cuStreamCreate(&s, flags));
    return s;
}

TEST(copies, sync_forms_keep_every_byte)
{
    e2e_setup();
    for (int i = 0; i < SIZES; i++) {
        size_t n = sizes[i];
        CUdeviceptr d = e2e_device_alloc(n + 64);
        char *src = malloc(n + 64), *dst = malloc(n + 64);

        for (int odd = 0; odd < 2; odd++) {
            e2e_fill(src + odd, n, (uint32_t)(i * 2 + odd));
            OK(cuMemcpyHtoD(d + (odd ? 3 : 0), src + odd, n));
            CHECK(e2e_device_is_filled(d + (odd ? 3 : 0), n, (uint32_t)(i * 2 + odd)));
            memset(dst, 0xee, n + 64);
            OK(cuMemcpyDtoH(dst + odd, d + (odd ? 3 : 0), n));
            CHECK(e2e_is_filled(dst + odd, n, (uint32_t)(i * 2 + odd)));
            CHECK_EQ_INT((unsigned char)dst[odd + n], 0xee);
        }
        free(src);
        free(dst);
        OK(cuMemFree(d));
    }
}

TEST(copies, unified_forms_keep_every_byte)
{
    e2e_setup();
    for (int i = 0; i < SIZES; i++) {
        size_t n = sizes[i];
        CUdeviceptr d = e2e_device_alloc(n), e = e2e_device_alloc(n);
        void *src = e2e_filled(n, 77), *dst = calloc(1, n), *third = calloc(1, n);

        OK(cuMemcpy(d, (CUdeviceptr)(uintptr_t)src, n));
        OK(cuMemcpy(e, d, n));
        OK(cuMemcpy((CUdeviceptr)(uintptr_t)dst, e, n));
        CHECK(e2e_is_filled(dst, n, 77));
        OK(cuMemcpyAsync(d, (CUdeviceptr)(uintptr_t)dst, n, CU_STREAM_PER_THREAD));
        OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)third, d, n, CU_STREAM_PER_THREAD));
        CHECK(e2e_is_filled(third, n, 77));
        free(src);
        free(dst);
        free(third);
        OK(cuMemFree(d));
        OK(cuMemFree(e));
    }
}

TEST(copies, async_forms_on_every_stream)
{
    CUstream streams[4];

    e2e_setup();
    streams[0] = CU_STREAM_LEGACY;
    streams[1] = CU_STREAM_PER_THREAD;
    streams[2] = make_stream(CU_STREAM_DEFAULT);
    streams[3] = make_stream(CU_STREAM_NON_BLOCKING);
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < SIZES; i++) {
            size_t n = sizes[i];
            CUdeviceptr d = e2e_device_alloc(n);
            void *src = e2e_filled(n, (uint32_t)(k + i)), *dst = calloc(1, n);

            OK(cuMemcpyHtoDAsync(d, src, n, streams[k]));
            memset(src, 0, n); /* the source may be overwritten as soon as the call returns */
            OK(cuMemcpyDtoHAsync(dst, d, n, streams[k]));
            CHECK(e2e_is_filled(dst, n, (uint32_t)(k + i)));
            free(src);
            free(dst);
            OK(cuMemFree(d));
        }
    }
    OK(cuStreamDestroy(streams[2]));
    OK(cuStreamDestroy(streams[3]));
}

TEST(copies, rewritten_ones_come_from_pinned_memory)
{
    size_t n = 8 * MiB;
    CUdeviceptr d;
    void *src;
    long before;

    e2e_setup();
    before = e2e_driver_calls("cuMemcpyHtoD_v2");
    if (before < 0 || e2e_is_native() == e2e_is_rewritten())
        SKIP("needs the simulated driver's call counts, and a mode that leaves no choice");
    d = e2e_device_alloc(n);
    src = e2e_filled(n, 5);
    OK(cuMemcpyHtoD(d, src, n));
    CHECK_EQ_INT(e2e_driver_calls("cuMemcpyHtoD_v2") - before, e2e_is_rewritten() ? 0 : 1);
    free(src);
    OK(cuMemFree(d));
}

TEST(copies, case_1_async_d2h_is_there_at_return)
{
    static const size_t n[] = {4, 64 * KiB, 16 * MiB};
    CUstream s;

    e2e_setup();
    s = make_stream(CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 3; i++) {
        CUdeviceptr d = e2e_device_alloc(n[i]);
        uint64_t words = n[i] / 4, delay = 20000000;
        uint32_t value = 0xabcd0000u + (uint32_t)i, on_stack = 0, *p = &on_stack;

        if (i > 0)
            p = calloc(1, n[i]);
        OK(cuMemsetD8(d, 0, n[i]));
        OK(cuCtxSynchronize()); /* s knows nothing of the legacy stream */
        LAUNCH(s, "spin_ns", &delay);
        LAUNCH(s, "fill_u32", &d, &words, &value);
        OK(cuMemcpyDtoHAsync(p, d, n[i], s));
        CHECK_EQ_U64(p[0], value);
        CHECK_EQ_U64(p[words - 1], value);
        if (i > 0)
            free(p);
        OK(cuMemFree(d));
    }
    OK(cuStreamDestroy(s));
}

/* D2H into p, then H2D from p on the same stream, with nothing between: the bytes that the first
 * copy brings must be the ones that the second takes. */
static void there_and_back(void *p, size_t n)
{
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);
    CUdeviceptr a = e2e_device_alloc(n), b = e2e_device_alloc(n);
    void *src = e2e_filled(n, 1234);
    struct e2e_gate gate;
    CUresult there, back;

    e2e_gate_make(&gate);
    OK(cuMemcpyHtoD(a, src, n));
    memset(p, 0, n);
    e2e_gate_close(&gate, s);
    e2e_gate_open(&gate);
    there = cuMemcpyDtoHAsync(p, a, n, s);
    back = cuMemcpyHtoDAsync(b, p, n, s);
    OK(cuStreamSynchronize(s));
    CHECK_EQ_INT(there, back);
    if (there == CUDA_SUCCESS)
        CHECK(e2e_device_is_filled(b, n, 1234));
    e2e_gate_free(&gate);
    free(src);
    OK(cuMemFree(a));
    OK(cuMemFree(b));
    OK(cuStreamDestroy(s));
}

TEST(copies, case_2_pinned_is_read_in_stream_order)
{
    size_t n = 4 * MiB, page = 4096;
    CUdeviceptr managed;
    void *p;
    char *plain;

    e2e_setup();
    OK(cuMemHostAlloc(&p, n, 0));
    there_and_back(p, n);
    OK(cuMemFreeHost(p));

    plain = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(plain != MAP_FAILED);
    OK(cuMemHostRegister(plain, n, 0));
    there_and_back(plain, n);
    OK(cuMemHostUnregister(plain));

    OK(cuMemHostRegister(plain + n / 2, page, 0)); /* only in the middle */
    there_and_back(plain, n);
    OK(cuMemHostUnregister(plain + n / 2));
    munmap(plain, n);

    OK(cuMemAllocManaged(&managed, n, CU_MEM_ATTACH_GLOBAL));
    there_and_back((void *)(uintptr_t)managed, n);
    OK(cuMemFree(managed));
}

/* A gate that another thread opens once this thread waits, or has gone on: no sleep. */
static void *open_gate(void *gate)
{
    e2e_gate_open(gate);
    return NULL;
}

struct rewrite {
    char *buffer;
    size_t bytes;
    uint32_t seed;
};

static void refill(void *arg)
{
    struct rewrite *r = arg;

    e2e_fill(r->buffer, r->bytes, r->seed);
}

TEST(copies, case_3_host_function_writes_the_source)
{
    static const size_t n[] = {64 * KiB, MiB, 40 * MiB};

    e2e_setup();
    for (int i = 0; i < 3; i++) {
        struct rewrite r = {e2e_filled(n[i], 1), n[i], 2};
        CUdeviceptr d = e2e_device_alloc(n[i]);
        struct e2e_gate gate;
        pthread_t opener;

        e2e_gate_make(&gate);
        /* A sync copy always takes what the function wrote. */
        e2e_gate_close(&gate, CU_STREAM_LEGACY);
        OK(cuLaunchHostFunc(CU_STREAM_LEGACY, refill, &r));
        CHECK_EQ_INT(pthread_create(&opener, NULL, open_gate, &gate), 0);
        OK(cuMemcpyHtoD(d, r.buffer, n[i]));
        pthread_join(opener, NULL);
        CHECK(e2e_device_is_filled(d, n[i], 2));

        /* An Async one takes the old or the new, whole: the old where it returns behind the closed
         * gate, the new where it waits for its stream. (At that size a real driver may mix them:
         * its first pieces are read before it waits.) */
        r.seed = 3;
        e2e_gate_close(&gate, CU_STREAM_LEGACY);
        OK(cuLaunchHostFunc(CU_STREAM_LEGACY, refill, &r));
        if (n[i] > MiB)
            CHECK_EQ_INT(pthread_create(&opener, NULL, open_gate, &gate), 0);
        OK(cuMemcpyHtoDAsync(d, r.buffer, n[i], CU_STREAM_LEGACY));
        if (n[i] > MiB)
            pthread_join(opener, NULL);
        e2e_gate_open(&gate);
        OK(cuCtxSynchronize());
        if (n[i] <= MiB || e2e_is_rewritten() || e2e_driver_calls("cuInit") >= 0)
            CHECK(e2e_device_is_filled(d, n[i], n[i] > MiB ? 3 : 2));
        e2e_gate_free(&gate);
        free(r.buffer);
        OK(cuMemFree(d));
    }
}

TEST(copies, case_4_other_stream_sees_a_sync_copy)
{
    static const size_t n[] = {4 * KiB, 64 * KiB, 64 * KiB + 4, 16 * MiB};
    CUstream nb;

    e2e_setup();
    nb = make_stream(CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 4; i++) {
        /* A real driver returns from up to 64 KiB before the device has it, and orders no
         * non-blocking stream behind it: natively this fails there now and then. */
        if (n[i] <= 64 * KiB && e2e_driver_calls("cuInit") < 0 && !e2e_is_rewritten())
            continue;
        CUdeviceptr d = e2e_device_alloc(n[i]), sum = e2e_device_alloc(8);
        uint32_t *src = malloc(n[i]);
        uint64_t words = n[i] / 4, got, busy = 1000;
        int rounds = n[i] > MiB ? 5 : 100;

        for (int k = 0; k < rounds; k++) {
            uint64_t want = 0;

            for (uint64_t w = 0; w < words; w++)
                want += src[w] = (uint32_t)(w * 7 + (uint64_t)k);
            LAUNCH(CU_STREAM_LEGACY, "spin_ns", &busy);
            OK(cuMemcpyHtoD(d, src, n[i]));
            LAUNCH(nb, "checksum_u32", &d, &words, &sum);
            OK(cuMemcpyDtoHAsync(&got, sum, 8, nb));
            CHECK_EQ_U64(got, want);
        }
        free(src);
        OK(cuMemFree(d));
        OK(cuMemFree(sum));
    }
    OK(cuStreamDestroy(nb));
}

TEST(copies, case_6_many_copies_through_a_small_pool)
{
    enum { COPIES = 2000, MOST = 256 * KiB };
    CUstream s[2];
    CUdeviceptr d[2];
    uint64_t slow = 20000;
    char *buffer = malloc(MOST), *back = malloc(MOST);
    uint32_t random = 12345;

    e2e_setup();
    for (int k = 0; k < 2; k++) {
        s[k] = make_stream(k ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT);
        d[k] = e2e_device_alloc(MOST);
    }
    for (int i = 0; i < COPIES; i++) {
        int k = i & 1;
        size_t n;

        random = random * 1664525u + 1013904223u;
        n = random % MOST + 1;
        e2e_fill(buffer, n, (uint32_t)i);
        if (i % 16 == 0)
            LAUNCH(s[k], "spin_ns", &slow);
        OK(cuMemcpyHtoDAsync(d[k], buffer, n, s[k]));
        if (i % 8 == 0) {
            OK(cuMemcpyDtoHAsync(back, d[k], n, s[k]));
            CHECK(e2e_is_filled(back, n, (uint32_t)i));
        }
    }
    for (int k = 0; k < 2; k++) {
        OK(cuStreamSynchronize(s[k]));
        OK(cuStreamDestroy(s[k]));
        OK(cuMemFree(d[k]));
    }
    free(buffer);
    free(back);
}

/* Case 9: the source faults in slowly (a file on a slow disk). Nothing of ours may be locked
 * meanwhile: another thread launches, copies and synchronizes. The fault is a SIGSEGV whose
 * handler, on the faulting thread, waits until the other thread is through; it must be the
 * program's own thread. */
static struct {
    char *barrier;
    size_t bytes;
    pthread_t copier;
    volatile int faulted, go_on, on_own_thread;
} slow;

static void wait_for(volatile int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST))
        sched_yield();
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    char *at = info->si_addr;

    if (at < slow.barrier || at >= slow.barrier + slow.bytes)
        abort();
    slow.on_own_thread = pthread_equal(pthread_self(), slow.copier);
    __atomic_store_n(&slow.faulted, 1, __ATOMIC_SEQ_CST);
    wait_for(&slow.go_on);
    mprotect(slow.barrier, slow.bytes, PROT_READ | PROT_WRITE);
}

static void *copy_slowly(void *d)
{
    CUcontext context;
    CUresult r = cuDevicePrimaryCtxRetain(&context, 0);

    slow.copier = pthread_self();
    if (r == CUDA_SUCCESS)
        r = cuCtxSetCurrent(context);
    if (r == CUDA_SUCCESS)
        r = cuMemcpyHtoDAsync(*(CUdeviceptr *)d, slow.barrier, slow.bytes, CU_STREAM_PER_THREAD);
    if (r == CUDA_SUCCESS)
        r = cuStreamSynchronize(CU_STREAM_PER_THREAD);
    cuDevicePrimaryCtxRelease(0);
    return (void *)(uintptr_t)r;
}

TEST(copies, case_9_a_slow_source_holds_nobody_up)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, before;
    CUdeviceptr d, e;
    pthread_t thread;
    CUstream s;
    void *src, *result;

    e2e_setup();
    if (!e2e_is_rewritten())
        SKIP("about the shim's own locks");
    slow.bytes = MiB;
    slow.faulted = slow.go_on = 0;
    slow.barrier =
        mmap(NULL, slow.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(slow.barrier != MAP_FAILED);
    e2e_fill(slow.barrier, slow.bytes, 77);
    mprotect(slow.barrier, slow.bytes, PROT_NONE);
    sigaction(SIGSEGV, &action, &before);
    d = e2e_device_alloc(slow.bytes);
    e = e2e_device_alloc(MiB);
    s = make_stream(CU_STREAM_NON_BLOCKING);
    src = e2e_filled(MiB, 78);
    CHECK_EQ_INT(pthread_create(&thread, NULL, copy_slowly, &d), 0);
    wait_for(&slow.faulted);
    LAUNCH(s, "empty");
    OK(cuMemcpyHtoDAsync(e, src, MiB, s));
    OK(cuStreamSynchronize(s));
    CHECK(e2e_device_is_filled(e, MiB, 78));
    __atomic_store_n(&slow.go_on, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, &result);
    sigaction(SIGSEGV, &before, NULL);
    CHECK_EQ_INT((uintptr_t)result, CUDA_SUCCESS);
    CHECK(slow.on_own_thread);
    CHECK(e2e_device_is_filled(d, slow.bytes, 77));
    munmap(slow.barrier, slow.bytes);
    free(src);
    OK(cuMemFree(d));
    OK(cuMemFree(e));
    OK(cuStreamDestroy(s));
}

TEST(copies, case_10_host_ranges_come_and_go)
{
    size_t n = 4 * MiB;
    CUdeviceptr d;
    char *p;

    e2e_setup();
    d = e2e_device_alloc(n);
    for (int i = 0; i < 8; i++) {
        p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
        e2e_fill(p, n, (uint32_t)i);
        OK(cuMemcpyHtoD(d, p, n)); /* must leave the range unregistered */
        OK(cuMemHostRegister(p, n, 0));
        CHECK_EQ_INT(cuMemHostRegister(p, n, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        OK(cuMemcpyHtoD(d, p, n));
        OK(cuMemHostUnregister(p));
        CHECK_EQ_INT(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
        memset(p, 0, n);
        OK(cuMemcpyDtoH(p, d, n));
        CHECK(e2e_is_filled(p, n, (uint32_t)i));
        munmap(p, n);
    }
    OK(cuMemFree(d));
}

TEST(copies, case_14_bad_arguments_and_the_call_after)
{
    CUdeviceptr d;
    CUresult r;
    void *host;
    size_t n = MiB;

    e2e_setup();
    d = e2e_device_alloc(n);
    host = e2e_filled(n, 9);
    OK(cuMemcpyHtoD(d, host, 0));
    OK(cuMemcpyDtoH(host, d, 0));
    r = cuMemcpyHtoD(0, host, n);
    CHECK_EQ_INT(r, CUDA_ERROR_INVALID_VALUE);
    r = cuMemcpyHtoD(d, host, n * 1024); /* beyond the allocation */
    CHECK_EQ_INT(r, CUDA_ERROR_INVALID_VALUE);
    r = cuMemcpyHtoD((CUdeviceptr)(uintptr_t)host, host, n); /* not device memory */
    CHECK(r == CUDA_ERROR_INVALID_VALUE || r == CUDA_SUCCESS);
    OK(cuMemcpyHtoD(d, host, n));
    CHECK(e2e_device_is_filled(d, n, 9));
    free(host);
    OK(cuMemFree(d));
}

TEST(copies, case_30_managed_memory_is_left_alone)
{
    size_t n = 4 * MiB;
    uint64_t words = n / 4;
    uint32_t value = 31;
    CUdeviceptr managed, d;
    CUstream s;

    e2e_setup();
    s = make_stream(CU_STREAM_NON_BLOCKING);
    OK(cuMemAllocManaged(&managed, n, CU_MEM_ATTACH_GLOBAL));
    d = e2e_device_alloc(n);
    LAUNCH(s, "fill_u32", &managed, &words, &value);
    OK(cuMemcpyAsync(d, managed, n, s));
    OK(cuMemsetD8Async(managed, 0, n, s));
    OK(cuMemcpyAsync(managed, d, n, s));
    OK(cuStreamSynchronize(s));
    CHECK_EQ_U64(((uint32_t *)(uintptr_t)managed)[words - 1], value);
    OK(cuMemcpyHtoD(d, (void *)(uintptr_t)managed, n));
    OK(cuMemFree(managed));
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
}

TEST(copies, case_33_a_sync_copy_is_a_barrier)
{
    static const size_t n[] = {256 * KiB, 4 * MiB, 40 * MiB};

    e2e_setup();
    for (int i = 0; i < 3; i++) {
        CUdeviceptr d = e2e_device_alloc(n[i]), mapped;
        void *src = e2e_filled(n[i], 3), *p;
        uint64_t one = 1;
        uint32_t value = 0x5eed;
        struct e2e_gate gate;
        pthread_t opener;

        e2e_gate_make(&gate);
        OK(cuMemHostAlloc(&p, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
        OK(cuMemHostGetDevicePointer(&mapped, p, 0));
        *(volatile uint32_t *)p = 0;
        e2e_gate_close(&gate, CU_STREAM_LEGACY);
        LAUNCH(CU_STREAM_LEGACY, "fill_u32", &mapped, &one, &value);
        CHECK_EQ_INT(pthread_create(&opener, NULL, open_gate, &gate), 0);
        OK(cuMemcpyHtoD(d, src, n[i])); /* unrelated, and still a barrier */
        CHECK_EQ_U64(*(volatile uint32_t *)p, value);
        pthread_join(opener, NULL);
        OK(cuMemFreeHost(p));
        e2e_gate_free(&gate);
        free(src);
        OK(cuMemFree(d));
    }
}

/* Law 2: what natively returns while a gate is closed must return under the shim. */
TEST(copies, case_41_async_h2d_behind_a_gate_returns)
{
    CUstream s1, s2;
    CUdeviceptr d, flag;
    uint32_t zero = 0, open = 1;
    uint64_t one = 1;
    char *src = e2e_filled(256 * KiB, 8);

    e2e_setup();
    s1 = make_stream(CU_STREAM_NON_BLOCKING);
    s2 = make_stream(CU_STREAM_NON_BLOCKING);
    d = e2e_device_alloc(256 * KiB);
    flag = e2e_device_alloc(4);
    OK(cuMemcpyHtoD(flag, &zero, 4));
    LAUNCH(s2, "gate_wait", &flag, &zero); /* loads the kernels: that waits for the device */
    LAUNCH(s2, "fill_u32", &flag, &one, &zero);
    OK(cuStreamSynchronize(s2));
    LAUNCH(s1, "gate_wait", &flag, &open);
    OK(cuMemcpyHtoDAsync(d, src, 256 * KiB, s1));
    memset(src, 0, 256 * KiB);
    LAUNCH(s2, "fill_u32", &flag, &one, &open); /* opens the gate: no edge s1 -> s2 */
    OK(cuStreamSynchronize(s1));
    CHECK(e2e_device_is_filled(d, 256 * KiB, 8));
    free(src);
    OK(cuMemFree(d));
    OK(cuMemFree(flag));
    OK(cuStreamDestroy(s1));
    OK(cuStreamDestroy(s2));
}

/* As many as native takes: a real driver stages 4 MiB behind a gate, and waits with the next copy.
 */
TEST(copies, case_45_many_async_h2d_behind_a_gate_return)
{
    enum { COPIES = 56, N = 64 * KiB };
    CUstream s;
    CUdeviceptr d;
    struct e2e_gate gate;
    char *src = malloc(N);

    e2e_setup();
    s = make_stream(CU_STREAM_NON_BLOCKING);
    d = e2e_device_alloc((size_t)COPIES * N);
    e2e_gate_make(&gate);
    e2e_gate_close(&gate, s);
    for (uint32_t i = 0; i < COPIES; i++) {
        e2e_fill(src, N, i);
        OK(cuMemcpyHtoDAsync(d + i * N, src, N, s));
    }
    e2e_gate_open(&gate);
    OK(cuStreamSynchronize(s));
    for (uint32_t i = 0; i < COPIES; i++)
        CHECK(e2e_device_is_filled(d + i * N, N, i));
    e2e_gate_free(&gate);
    free(src);
    OK(cuMemFree(d));
    OK(cuStreamDestroy(s));
}

/* A copy that finds every chunk held behind a gate on another stream goes on without them. */
TEST(copies, chunks_held_behind_a_gate_are_not_waited_for)
{
    enum { N = 256 * KiB, HELD = 4, EACH = 128 * KiB };
    CUstream gated, idle;
    CUdeviceptr d[HELD], e;
    struct e2e_gate gate;
    char *src;

    e2e_setup();
    if (e2e_driver_calls("cuInit") < 0 && !e2e_is_rewritten())
        SKIP("a real driver's own pageable copies do wait for each other here (H200, driver 13.0)");
    src = e2e_filled(N, 21);
    gated = make_stream(CU_STREAM_NON_BLOCKING);
    idle = make_stream(CU_STREAM_NON_BLOCKING);
    e = e2e_device_alloc(4 * N);
    for (int i = 0; i < HELD; i++)
        d[i] = e2e_device_alloc(EACH);
    e2e_gate_make(&gate);
    e2e_gate_close(&gate, gated);
    for (int i = 0; i < HELD; i++)
        OK(cuMemcpyHtoDAsync(d[i], src, EACH, gated));
    for (int i = 0; i < 4; i++) {
        OK(cuMemcpyHtoDAsync(e + (size_t)i * N, src, N, idle));
        OK(cuStreamSynchronize(idle));
    }
    for (int i = 0; i < 4; i++)
        CHECK(e2e_device_is_filled(e + (size_t)i * N, N, 21));
    e2e_gate_open(&gate);
    OK(cuStreamSynchronize(gated));
    for (int i = 0; i < HELD; i++) {
        CHECK(e2e_device_is_filled(d[i], EACH, 21));
        OK(cuMemFree(d[i]));
    }
    OK(cuMemFree(e));
    e2e_gate_free(&gate);
    free(src);
    OK(cuStreamDestroy(gated));
    OK(cuStreamDestroy(idle));
}

/* Pinned memory is read and written when the stream comes to it, and the calls return at once. */
TEST(copies, pinned_copies_behind_a_gate_keep_stream_order)
{
    enum { N = 64 * KiB };
    CUdeviceptr from, to;
    struct e2e_gate gate;
    void *pinned;
    CUstream s;

    e2e_setup();
    s = make_stream(CU_STREAM_NON_BLOCKING);
    from = e2e_device_alloc(N);
    to = e2e_device_alloc(N);
    if (cuMemHostAlloc(&pinned, N, 0) != CUDA_SUCCESS)
        SKIP("no pinned memory is left");
    e2e_fill(pinned, N, 31);
    OK(cuMemcpyHtoD(from, pinned, N));
    memset(pinned, 0, N);
    OK(cuCtxSynchronize());
    e2e_gate_make(&gate);
    e2e_gate_close(&gate, s);
    OK(cuMemcpyDtoHAsync(pinned, from, N, s));
    OK(cuMemcpyHtoDAsync(to, pinned, N, s));
    e2e_gate_open(&gate);
    OK(cuStreamSynchronize(s));
    CHECK(e2e_is_filled(pinned, N, 31));
    CHECK(e2e_device_is_filled(to, N, 31));
    e2e_gate_free(&gate);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(from));
    OK(cuMemFree(to));
    OK(cuStreamDestroy(s));
}

/* One call, one answer: nothing is copied by one that fails. */
TEST(copies, beyond_the_end_of_an_allocation_nothing_is_copied)
{
    enum { N = 256 * KiB };
    CUdeviceptr d;
    void *src;

    e2e_setup();
    if (e2e_driver_calls("cuInit") < 0)
        SKIP("what a real driver has behind an allocation is its own affair");
    src = e2e_filled(4 * N, 8);
    d = e2e_device_alloc(N);
    OK(cuMemsetD8(d, 0, N));
    CHECK(cuMemcpyHtoD(d, src, 4 * N) != CUDA_SUCCESS);
    memset(src, 1, N);
    OK(cuMemcpyDtoH(src, d, N));
    for (int i = 0; i < N; i++)
        CHECK_EQ_INT(((unsigned char *)src)[i], 0);
    free(src);
    OK(cuMemFree(d));
}

/* SPDX-License-Identifier: MIT */
/* Order between streams, events and the host: programs that broke tools which moved copies. */
#include "tests/e2e/e2e.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 20000, BYTES = WORDS * 4 };

static CUstream make_stream(unsigned flags)
{
    CUstream s;

    OK(cuStreamCreate(&s, flags));
    return s;
}

static CUevent make_event(void)
{
    CUevent e;

    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    return e;
}

static void fill(CUstream s, CUdeviceptr p, uint32_t value)
{
    uint64_t n = WORDS;

    LAUNCH(s, "fill_u32", &p, &n, &value);
}

static void copy(CUstream s, CUdeviceptr from, CUdeviceptr to)
{
    uint64_t n = WORDS;

    LAUNCH(s, "copy_u32", &from, &to, &n);
}

static bool has(CUdeviceptr p, uint32_t value)
{
    uint32_t *back = malloc(BYTES);
    bool good = true;

    OK(cuMemcpyDtoH(back, p, BYTES));
    for (int i = 0; i < WORDS; i++)
        good &= back[i] == value;
    free(back);
    return good;
}

/* A wait for what is known to be done is left out; after another record it is made again. First in
 * its process: graphs, which others here make, end all knowledge of events. */
TEST(order, case_47_only_a_known_end_makes_a_wait_needless)
{
    CUstream from, to;
    CUdeviceptr d, out;
    struct e2e_gate gate;
    CUevent e;
    long before;

    e2e_setup();
    from = make_stream(CU_STREAM_NON_BLOCKING);
    to = make_stream(CU_STREAM_NON_BLOCKING);
    e = make_event();
    d = e2e_device_alloc(BYTES);
    out = e2e_device_alloc(BYTES);
    e2e_gate_make(&gate);
    fill(from, d, 1);
    OK(cuEventRecord(e, from));
    OK(cuEventSynchronize(e));
    before = e2e_driver_calls("cuStreamWaitEvent");
    OK(cuStreamWaitEvent(to, e, 0));
    OK(cuStreamWaitEvent(to, e, 0));
    if (before >= 0)
        CHECK_EQ_INT(e2e_driver_calls("cuStreamWaitEvent") - before, e2e_is_native() ? 2 : 0);
    e2e_gate_close(&gate, from);
    fill(from, d, 2);
    OK(cuEventRecord(e, from));
    OK(cuStreamWaitEvent(to, e, 0)); /* now it counts */
    copy(to, d, out);
    e2e_gate_open(&gate);
    OK(cuStreamSynchronize(to));
    CHECK(has(out, 2));
    OK(cuEventQuery(e));
    e2e_gate_free(&gate);
    OK(cuEventDestroy(e));
    OK(cuMemFree(d));
    OK(cuMemFree(out));
    OK(cuStreamDestroy(from));
    OK(cuStreamDestroy(to));
}

/* In a capture a wait for an event from outside is refused, though the event is complete. */
TEST(order, in_a_capture_a_wait_is_never_needless)
{
    CUgraph graph = NULL;
    CUevent e;
    CUstream s;

    e2e_setup();
    s = make_stream(CU_STREAM_NON_BLOCKING);
    e = make_event();
    OK(cuEventRecord(e, CU_STREAM_LEGACY));
    OK(cuEventSynchronize(e));
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK_EQ_INT(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    cuStreamEndCapture(s, &graph);
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(s));
}

/* A handle that comes back for another event brings nothing of the old one's. */
TEST(order, an_events_handle_that_comes_back_is_another_event)
{
    CUdeviceptr d, out;
    CUstream from, to;

    e2e_setup();
    from = make_stream(CU_STREAM_NON_BLOCKING);
    to = make_stream(CU_STREAM_NON_BLOCKING);
    d = e2e_device_alloc(BYTES);
    out = e2e_device_alloc(BYTES);
    for (uint32_t i = 1; i <= 20; i++) {
        CUevent e = make_event();

        fill(from, d, i);
        OK(cuEventRecord(e, from));
        OK(cuStreamWaitEvent(to, e, 0));
        copy(to, d, out);
        OK(cuEventRecord(e, to));
        OK(cuEventSynchronize(e));
        CHECK(has(out, i));
        OK(cuEventDestroy(e));
    }
    OK(cuMemFree(d));
    OK(cuMemFree(out));
    OK(cuStreamDestroy(from));
    OK(cuStreamDestroy(to));
}

/* The bytes of a D2H copy to pinned memory are there when any of these says that it is done. */
TEST(order, case_21_whoever_says_that_a_copy_is_done)
{
    enum { WAYS = 8 };
    CUstream streams[5];
    uint32_t *pinned;
    CUdeviceptr d;
    CUevent e;

    e2e_setup();
    e = make_event();
    d = e2e_device_alloc(BYTES);
    if (cuMemHostAlloc((void **)&pinned, BYTES, 0) != CUDA_SUCCESS)
        SKIP("no pinned memory is left");
    for (int i = 0; i < 5; i++)
        streams[i] = make_stream(i < 4 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
    for (uint32_t way = 0; way < WAYS; way++) {
        CUstream s = streams[way % 5];
        CUdeviceptr gone = e2e_device_alloc(4);

        memset(pinned, 0, BYTES);
        fill(s, d, way + 1);
        OK(cuMemcpyDtoHAsync(pinned, d, BYTES, s));
        OK(cuEventRecord(e, s));
        switch (way) {
        case 0:
            while (cuEventQuery(e) == CUDA_ERROR_NOT_READY)
                OK(cuStreamSynchronize(s));
            break;
        case 1:
            OK(cuEventSynchronize(e));
            break;
        case 2:
            OK(cuStreamSynchronize(s));
            OK(cuStreamQuery(s));
            break;
        case 3:
            OK(cuCtxSynchronize());
            break;
        case 4:
            OK(cuStreamWaitEvent(CU_STREAM_LEGACY, e, 0));
            OK(cuEventRecord(e, CU_STREAM_LEGACY));
            OK(cuEventSynchronize(e));
            break;
        case 5:
            OK(cuEventRecord(e, s)); /* once more */
            OK(cuEventSynchronize(e));
            break;
        case 6:
            OK(cuMemFree(gone));
            gone = 0;
            break;
        default:
            OK(cuStreamSynchronize(s));
        }
        for (int i = 0; i < WORDS; i++)
            CHECK_EQ_U64(pinned[i], way + 1);
        if (gone)
            OK(cuMemFree(gone));
    }
    for (int i = 0; i < 5; i++)
        OK(cuStreamDestroy(streams[i]));
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(d));
    OK(cuEventDestroy(e));
}

/* A stream's handle comes back for another one. */
TEST(order, case_22_a_handle_that_comes_back_is_another_stream)
{
    CUdeviceptr a, b;
    uint32_t *source = malloc(BYTES);

    e2e_setup();
    a = e2e_device_alloc(BYTES);
    b = e2e_device_alloc(BYTES);
    for (uint32_t i = 1; i <= 20; i++) {
        CUstream first = make_stream(i & 1 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT), second;

        fill(first, a, i);
        OK(cuStreamDestroy(first)); /* its work goes on */
        second = make_stream(i & 1 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
        for (int w = 0; w < WORDS; w++)
            source[w] = i + 100;
        OK(cuMemcpyHtoDAsync(b, source, BYTES, second));
        OK(cuStreamSynchronize(second));
        OK(cuCtxSynchronize());
        CHECK(has(a, i));
        CHECK(has(b, i + 100));
        OK(cuStreamDestroy(second));
    }
    free(source);
    OK(cuMemFree(a));
    OK(cuMemFree(b));
}

static struct {
    CUcontext context;
    CUdeviceptr buffer;
    CUevent event;
} handed;

static void *write_and_record(void *unused)
{
    OK(cuCtxSetCurrent(handed.context));
    fill(CU_STREAM_PER_THREAD, handed.buffer, 77);
    OK(cuEventRecord(handed.event, CU_STREAM_PER_THREAD));
    return unused;
}

/* One handle, a stream in each thread. */
TEST(order, case_22_per_thread_streams_are_apart)
{
    CUdeviceptr to;
    pthread_t thread;

    e2e_setup();
    OK(cuCtxGetCurrent(&handed.context));
    handed.buffer = e2e_device_alloc(BYTES);
    handed.event = make_event();
    to = e2e_device_alloc(BYTES);
    fill(CU_STREAM_PER_THREAD, to, 1);
    pthread_create(&thread, NULL, write_and_record, NULL);
    pthread_join(thread, NULL);
    OK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, handed.event, 0));
    copy(CU_STREAM_PER_THREAD, handed.buffer, to);
    OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CHECK(has(to, 77));
    OK(cuMemFree(to));
    OK(cuMemFree(handed.buffer));
    OK(cuEventDestroy(handed.event));
}

/* A kernel polls a flag in device memory; the copy that sets it must not wait for that kernel. */
TEST(order, case_26_a_flag_for_a_persistent_kernel)
{
    CUstream polls, sets;
    CUdeviceptr flag;
    uint32_t *pinned, one = 1;

    e2e_setup();
    polls = make_stream(CU_STREAM_NON_BLOCKING);
    sets = make_stream(CU_STREAM_NON_BLOCKING);
    flag = e2e_device_alloc(4);
    if (cuMemHostAlloc((void **)&pinned, 4, 0) != CUDA_SUCCESS)
        SKIP("no pinned memory is left");
    *pinned = 1;
    for (int way = 0; way < 3; way++) {
        OK(cuMemsetD32(flag, 0, 1));
        OK(cuCtxSynchronize());
        LAUNCH(polls, "gate_wait", &flag, &one);
        if (way == 0)
            OK(cuMemcpyHtoDAsync(flag, pinned, 4, sets));
        else if (way == 1)
            OK(cuMemcpyHtoDAsync(flag, &one, 4, sets));
        else
            OK(cuMemcpyHtoD(flag, &one, 4));
        OK(cuStreamSynchronize(polls));
    }
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(flag));
    OK(cuStreamDestroy(polls));
    OK(cuStreamDestroy(sets));
}

/* An event recorded twice: each wait is for the record before it; an event never recorded is none.
 */
TEST(order, case_27_a_wait_is_for_the_record_before_it)
{
    CUstream s[5];
    CUdeviceptr a, b, out;
    CUevent e, never;
    struct e2e_gate gate;

    e2e_setup();
    for (int i = 1; i < 5; i++)
        s[i] = make_stream(CU_STREAM_NON_BLOCKING);
    e = make_event();
    never = make_event();
    a = e2e_device_alloc(BYTES);
    b = e2e_device_alloc(BYTES);
    out = e2e_device_alloc(BYTES);
    e2e_gate_make(&gate);
    fill(s[1], a, 1);
    OK(cuEventRecord(e, s[1]));
    OK(cuStreamWaitEvent(s[2], e, 0));
    e2e_gate_close(&gate, s[3]);
    fill(s[3], b, 2);
    OK(cuEventRecord(e, s[3]));
    OK(cuStreamWaitEvent(s[4], e, 0));
    OK(cuStreamWaitEvent(s[2], never, 0));
    copy(s[2], a, out); /* does not wait for the gate */
    OK(cuStreamSynchronize(s[2]));
    CHECK(has(out, 1));
    e2e_gate_open(&gate);
    copy(s[4], b, out);
    OK(cuStreamSynchronize(s[4]));
    CHECK(has(out, 2));
    e2e_gate_free(&gate);
    for (int i = 1; i < 5; i++)
        OK(cuStreamDestroy(s[i]));
    OK(cuEventDestroy(e));
    OK(cuEventDestroy(never));
    OK(cuMemFree(a));
    OK(cuMemFree(b));
    OK(cuMemFree(out));
}

/* One stream, and nothing to order: no wait between streams is added. */
TEST(order, case_31_one_stream_is_never_made_to_wait)
{
    long before;
    void *host = malloc(BYTES);
    CUdeviceptr d;

    e2e_setup();
    before = e2e_driver_calls("cuStreamWaitEvent");
    if (before < 0)
        SKIP("needs the simulated driver's call counts");
    d = e2e_device_alloc(BYTES);
    for (uint32_t i = 0; i < 10; i++) {
        e2e_fill(host, BYTES, i);
        OK(cuMemcpyHtoD(d, host, BYTES));
        fill(CU_STREAM_LEGACY, d, i);
        OK(cuMemcpyDtoH(host, d, BYTES));
        CHECK_EQ_U64(*(uint32_t *)host, i);
    }
    CHECK_EQ_INT(e2e_driver_calls("cuStreamWaitEvent"), before);
    free(host);
    OK(cuMemFree(d));
}

/* A queued copy reads pinned memory; a plain copy to new memory is its barrier; then it is
 * refilled. */
TEST(order, case_35_a_refill_after_a_plain_copy)
{
    CUdeviceptr d, other;
    void *plain = NULL;
    uint32_t *pinned;

    e2e_setup();
    plain = e2e_filled(BYTES, 3);
    if (cuMemHostAlloc((void **)&pinned, BYTES, 0) != CUDA_SUCCESS)
        SKIP("no pinned memory is left");
    d = e2e_device_alloc(BYTES);
    e2e_fill(pinned, BYTES, 1);
    fill(CU_STREAM_LEGACY, d, 9);
    OK(cuMemcpyHtoDAsync(d, pinned, BYTES, CU_STREAM_LEGACY));
    other = e2e_device_alloc(BYTES);
    OK(cuMemcpyHtoD(other, plain, BYTES));
    e2e_fill(pinned, BYTES, 2);
    CHECK(e2e_device_is_filled(d, BYTES, 1));
    CHECK(e2e_device_is_filled(other, BYTES, 3));
    free(plain);
    OK(cuMemFreeHost(pinned));
    OK(cuMemFree(d));
    OK(cuMemFree(other));
}

/* A wait for an event behind a plain copy may not be dropped because the copy "waited" for it. */
TEST(order, case_37_a_wait_after_a_plain_copy_still_waits)
{
    CUdeviceptr shared, fresh, out;
    void *plain;
    CUstream s, nb;
    CUevent e;

    e2e_setup_without_pinned();
    plain = e2e_filled(BYTES, 4);
    s = make_stream(CU_STREAM_DEFAULT);
    nb = make_stream(CU_STREAM_NON_BLOCKING);
    e = make_event();
    shared = e2e_device_alloc(BYTES);
    out = e2e_device_alloc(BYTES);
    fill(s, shared, 11);
    OK(cuEventRecord(e, s));
    fresh = e2e_device_alloc(BYTES);
    OK(cuMemcpyHtoD(fresh, plain, BYTES));
    OK(cuStreamWaitEvent(nb, e, 0));
    copy(nb, shared, out);
    fill(nb, shared, 12);
    OK(cuStreamSynchronize(nb));
    CHECK(has(out, 11));
    CHECK(has(shared, 12));
    free(plain);
    OK(cuMemFree(shared));
    OK(cuMemFree(fresh));
    OK(cuMemFree(out));
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(s));
    OK(cuStreamDestroy(nb));
}

/* A kernel polls a flag and then reads a payload; both come on one stream, the payload first. */
TEST(order, case_38_the_flag_does_not_overtake_the_payload)
{
    static const size_t sizes[] = {BYTES, 8 << 20};
    uint32_t one = 1;
    CUstream polls, sends;
    CUdeviceptr flag;

    e2e_setup();
    polls = make_stream(CU_STREAM_NON_BLOCKING);
    sends = make_stream(CU_STREAM_NON_BLOCKING);
    flag = e2e_device_alloc(4);
    for (int i = 0; i < 2; i++) {
        CUdeviceptr payload = e2e_device_alloc(sizes[i]), out = e2e_device_alloc(sizes[i]);
        void *source = e2e_filled(sizes[i], 21);
        uint64_t n = sizes[i] / 4;

        OK(cuMemsetD32(flag, 0, 1));
        OK(cuMemsetD8(payload, 0, sizes[i]));
        OK(cuCtxSynchronize());
        LAUNCH(polls, "gate_wait", &flag, &one);
        LAUNCH(polls, "copy_u32", &payload, &out, &n);
        OK(cuMemcpyHtoDAsync(payload, source, sizes[i], sends));
        OK(cuMemcpyHtoDAsync(flag, &one, 4, sends));
        OK(cuStreamSynchronize(polls));
        CHECK(e2e_device_is_filled(out, sizes[i], 21));
        free(source);
        OK(cuMemFree(payload));
        OK(cuMemFree(out));
    }
    OK(cuMemFree(flag));
    OK(cuStreamDestroy(polls));
    OK(cuStreamDestroy(sends));
}

/* A wait in a capture is a fork of it, though its event was completed long ago. */
TEST(order, case_39_a_wait_forks_a_capture)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUstream s1, s2;
    CUgraph graph = NULL;
    CUevent e, back;

    e2e_setup();
    s1 = make_stream(CU_STREAM_NON_BLOCKING);
    s2 = make_stream(CU_STREAM_NON_BLOCKING);
    e = make_event();
    back = make_event();
    OK(cuEventRecord(e, s1));
    OK(cuEventSynchronize(e));
    OK(cuStreamBeginCapture(s1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuEventRecord(e, s1));
    OK(cuStreamWaitEvent(s2, e, 0));
    OK(cuStreamIsCapturing(s2, &status));
    CHECK_EQ_INT(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    LAUNCH(s2, "empty", );
    OK(cuEventRecord(back, s2));
    OK(cuStreamWaitEvent(s1, back, 0));
    OK(cuStreamEndCapture(s1, &graph));
    CHECK(graph != NULL);
    OK(cuGraphDestroy(graph));
    OK(cuEventDestroy(e));
    OK(cuEventDestroy(back));
    OK(cuStreamDestroy(s1));
    OK(cuStreamDestroy(s2));
}

/* Work behind a wait for a word of memory: a copy on that stream may not overtake it. */
TEST(order, case_43_a_copy_stays_behind_a_memory_wait)
{
    CUdeviceptr word, slot, seen;
    void *source;
    CUstream s, other;

    e2e_setup();
    source = e2e_filled(BYTES, 31);
    s = make_stream(CU_STREAM_NON_BLOCKING);
    other = make_stream(CU_STREAM_NON_BLOCKING);
    word = e2e_device_alloc(4);
    seen = e2e_device_alloc(BYTES);
    OK(cuMemsetD32(word, 0, 1));
    slot = e2e_device_alloc(BYTES);
    fill(CU_STREAM_LEGACY, slot, 5);
    OK(cuCtxSynchronize());
    if (cuStreamWaitValue32(s, word, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS) {
        OK(cuMemcpyHtoDAsync(slot, source, BYTES, s));
        copy(other, slot, seen); /* before the slot is free */
        OK(cuStreamSynchronize(other));
        OK(cuStreamWriteValue32(other, word, 1, 0));
        OK(cuStreamSynchronize(s));
        CHECK(has(seen, 5));
        CHECK(e2e_device_is_filled(slot, BYTES, 31));
    }
    free(source);
    OK(cuMemFree(word));
    OK(cuMemFree(slot));
    OK(cuMemFree(seen));
    OK(cuStreamDestroy(s));
    OK(cuStreamDestroy(other));
}

/* One physical allocation at two addresses: a kernel writes by one, a copy reads by the other. */
TEST(order, case_46_memory_with_two_addresses)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = prop.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    size_t granularity = 0;
    CUdeviceptr at[2];

    e2e_setup();
    if (cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ||
        cuMemCreate(&handle, granularity, &prop, 0))
        SKIP("no virtual memory management here");
    for (int i = 0; i < 2; i++) {
        OK(cuMemAddressReserve(&at[i], granularity, 0, 0, 0));
        OK(cuMemMap(at[i], granularity, 0, handle, 0));
        OK(cuMemSetAccess(at[i], granularity, &access, 1));
    }
    for (uint32_t i = 1; i <= 10; i++) {
        void *source = e2e_filled(BYTES, i);

        fill(CU_STREAM_LEGACY, at[0], i);
        CHECK(has(at[1], i));
        fill(CU_STREAM_LEGACY, at[0], 0);
        OK(cuMemcpyHtoD(at[1], source, BYTES));
        CHECK(e2e_device_is_filled(at[0], BYTES, i));
        free(source);
    }
    for (int i = 0; i < 2; i++) {
        OK(cuMemUnmap(at[i], granularity));
        OK(cuMemAddressFree(at[i], granularity));
    }
    OK(cuMemRelease(handle));
}

static void *copy_while_capturing(void *unused)
{
    void *source = e2e_filled(BYTES, 41);

    OK(cuCtxSetCurrent(handed.context));
    /* Async, on a stream of its own: a synchronous one may be forbidden. */
    CUstream s = make_stream(CU_STREAM_NON_BLOCKING);

    OK(cuMemcpyHtoDAsync(handed.buffer, source, BYTES, s));
    OK(cuStreamDestroy(s));
    free(source);
    return unused;
}

TEST(order, case_49_a_global_capture_survives_another_threads_copy)
{
    CUgraph graph = NULL;
    pthread_t thread;
    CUstream s;

    e2e_setup();
    OK(cuCtxGetCurrent(&handed.context));
    handed.buffer = e2e_device_alloc(BYTES);
    s = make_stream(CU_STREAM_NON_BLOCKING);
    OK(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    LAUNCH(s, "empty", );
    pthread_create(&thread, NULL, copy_while_capturing, NULL);
    pthread_join(thread, NULL);
    OK(cuStreamEndCapture(s, &graph));
    CHECK(graph != NULL);
    OK(cuCtxSynchronize());
    CHECK(e2e_device_is_filled(handed.buffer, BYTES, 41));
    OK(cuGraphDestroy(graph));
    OK(cuMemFree(handed.buffer));
    OK(cuStreamDestroy(s));
}

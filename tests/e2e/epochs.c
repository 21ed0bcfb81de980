/* SPDX-License-Identifier: MIT */
/* Memory that moves between streams and to the host while other work is queued behind its last use.
 * Each program holds natively; under the shim it shows besides, on the simulated GPU that runs
 * nothing unless it must ("lazy"), which queued work was not waited for: kernels that have not run.
 * No test may have host memory that the device can access. */
#include "tests/e2e/e2e.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 20000 };

static uint64_t words = WORDS;
static uint32_t *host;

static void begin(void)
{
    e2e_setup_without_pinned();
    if (!host)
        host = malloc(WORDS * 4);
}

/* Whether the later work was waited for. That GPU takes a step whenever it is asked, too. */
static bool was_waited_for(long before)
{
    return e2e_later_work_done() - before == E2E_LATER;
}

static void check_host(uint32_t value)
{
    for (int i = 0; i < WORDS; i++)
        if (host[i] != value) {
            CHECK_EQ_U64(host[i], value);
            return;
        }
}

static void check_words(CUdeviceptr p, uint32_t value)
{
    OK(cuMemcpyDtoH(host, p, WORDS * 4));
    check_host(value);
}

static void copy_in(CUdeviceptr p, uint32_t value)
{
    for (int i = 0; i < WORDS; i++)
        host[i] = value;
    OK(cuMemcpyHtoD(p, host, WORDS * 4));
    memset(host, 0, WORDS * 4);
}

/* The epochs of CUDA.jl: a parent task computes A, and queues more; its child reads A. */
TEST(epochs, a_child_reads_what_its_parent_wrote_before_going_on)
{
    CUdeviceptr a, b;
    CUstream parent;
    CUevent written;
    long before;

    begin();
    OK(cuStreamCreate(&parent, CU_STREAM_DEFAULT));
    OK(cuEventCreate(&written, CU_EVENT_DISABLE_TIMING));
    a = e2e_device_alloc(WORDS * 4);
    b = e2e_device_alloc(WORDS * 4);
    e2e_fill_words(CU_STREAM_LEGACY, b, words, 0);
    OK(cuCtxSynchronize());
    before = e2e_later_work_done();
    e2e_fill_words(parent, a, words, 77);
    OK(cuEventRecord(written, parent));
    e2e_queue_later_work(parent, b, words);
    OK(cuMemcpyDtoH(host, a, WORDS * 4));
    check_host(77);
    if (e2e_runs_only_what_it_must()) /* under opaque the later kernels might write A */
        CHECK_EQ_INT(was_waited_for(before), !e2e_is_by_args());
    OK(cuStreamQuery(parent)); /* natively all of it is done */
    if (e2e_driver_calls("cuInit") >= 0)
        CHECK(was_waited_for(before));
    OK(cuEventDestroy(written));
    OK(cuStreamDestroy(parent));
    OK(cuMemFree(a));
    OK(cuMemFree(b));
}

/* What the copy did not wait for comes before all that the thread does later. */
TEST(epochs, work_that_was_left_behind_comes_before_later_work)
{
    CUdeviceptr a, b, c;
    CUstream parent, apart;
    CUevent written;

    begin();
    OK(cuStreamCreate(&parent, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&written, CU_EVENT_DISABLE_TIMING));
    a = e2e_device_alloc(WORDS * 4);
    b = e2e_device_alloc(WORDS * 4);
    c = e2e_device_alloc(WORDS * 4);
    e2e_fill_words(parent, a, words, 5);
    OK(cuEventRecord(written, parent));
    e2e_fill_words(parent, b, words, 6); /* after the event */
    OK(cuMemcpyDtoH(host, a, WORDS * 4));
    check_host(5);
    LAUNCH(apart, "copy_u32", &b, &c, &words);
    e2e_fill_words(apart, a, words, 7);
    OK(cuStreamSynchronize(apart));
    check_words(c, 6);
    check_words(a, 7);
    OK(cuEventDestroy(written));
    OK(cuStreamDestroy(parent));
    OK(cuStreamDestroy(apart));
    OK(cuMemFree(a));
    OK(cuMemFree(b));
    OK(cuMemFree(c));
}

/* An event of a non-blocking stream is waited for only if the legacy stream waits for it, too. */
TEST(epochs, a_non_blocking_stream_is_ordered_by_its_event_alone)
{
    CUdeviceptr a, b;
    CUstream apart;
    CUevent written;
    long before;

    begin();
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&written, CU_EVENT_DISABLE_TIMING));
    a = e2e_device_alloc(WORDS * 4);
    b = e2e_device_alloc(WORDS * 4);
    e2e_fill_words(CU_STREAM_LEGACY, b, words, 0);
    OK(cuCtxSynchronize());
    before = e2e_later_work_done();
    e2e_fill_words(apart, a, words, 8);
    OK(cuEventRecord(written, apart));
    OK(cuStreamWaitEvent(CU_STREAM_LEGACY, written, 0));
    e2e_queue_later_work(CU_STREAM_LEGACY, b, words);
    OK(cuMemcpyDtoH(host, a, WORDS * 4));
    check_host(8);
    if (e2e_runs_only_what_it_must())
        CHECK_EQ_INT(was_waited_for(before), !e2e_is_by_args());
    OK(cuEventDestroy(written));
    OK(cuStreamDestroy(apart));
    OK(cuMemFree(a));
    OK(cuMemFree(b));
}

/* Several allocations first, then their copies. */
TEST(epochs, new_memory_is_new_until_it_is_touched)
{
    CUdeviceptr b, news[3];
    long before;

    begin();
    b = e2e_device_alloc(WORDS * 4);
    e2e_fill_words(CU_STREAM_LEGACY, b, words, 0);
    OK(cuCtxSynchronize());
    before = e2e_later_work_done();
    e2e_queue_later_work(CU_STREAM_LEGACY, b, words);
    for (int i = 0; i < 3; i++)
        news[i] = e2e_device_alloc(WORDS * 4);
    for (uint32_t i = 0; i < 3; i++)
        copy_in(news[i], i + 20);
    copy_in(news[0], 30); /* once more */
    OK(cuMemcpyDtoH(host, news[1], WORDS * 4));
    check_host(21);
    if (e2e_runs_only_what_it_must())
        CHECK(!was_waited_for(before));
    check_words(news[2], 22);
    check_words(news[0], 30);
    for (int i = 0; i < 3; i++)
        OK(cuMemFree(news[i]));
    OK(cuMemFree(b));
}

/* Old memory, of which no queued kernel was told. Under opaque one might know it all the same. */
TEST(epochs, kernels_touch_what_they_are_given)
{
    CUdeviceptr a, b;
    long before;

    begin();
    a = e2e_device_alloc(WORDS * 4);
    b = e2e_device_alloc(WORDS * 4);
    e2e_fill_words(CU_STREAM_LEGACY, a, words, 1);
    e2e_fill_words(CU_STREAM_LEGACY, b, words, 0);
    OK(cuCtxSynchronize());
    before = e2e_later_work_done();
    e2e_queue_later_work(CU_STREAM_LEGACY, b, words);
    copy_in(a, 40);
    if (e2e_runs_only_what_it_must())
        CHECK_EQ_INT(was_waited_for(before), !e2e_is_by_args());
    copy_in(b, 41); /* this one must wait */
    if (e2e_driver_calls("cuInit") >= 0)
        CHECK(was_waited_for(before));
    check_words(a, 40);
    check_words(b, 41);
    OK(cuMemFree(a));
    OK(cuMemFree(b));
}

/* Case 29: an address in device memory. What the user would have to vouch for under args. */
TEST(epochs, case_29_a_kernel_follows_an_address_in_memory)
{
    CUdeviceptr a, table;
    uint32_t value = 50;

    begin();
    if (e2e_is_by_args())
        SKIP("the kernel touches more than its arguments say");
    a = e2e_device_alloc(WORDS * 4);
    table = e2e_device_alloc(8);
    OK(cuMemcpyHtoD(table, &a, 8));
    LAUNCH(CU_STREAM_LEGACY, "fill_behind_u32", &table, &words, &value);
    copy_in(a, 51);
    check_words(a, 51);
    LAUNCH(CU_STREAM_LEGACY, "fill_behind_u32", &table, &words, &value);
    check_words(a, 50);
    OK(cuMemFree(a));
    OK(cuMemFree(table));
}

/* A chain of events orders, a later record does not. */
TEST(epochs, waits_that_were_made_are_not_made_again)
{
    CUdeviceptr a, out;
    CUstream s[3];
    CUevent e[2];
    long before;

    begin();
    for (int i = 0; i < 3; i++)
        OK(cuStreamCreate(&s[i], i ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    for (int i = 0; i < 2; i++)
        OK(cuEventCreate(&e[i], CU_EVENT_DISABLE_TIMING));
    a = e2e_device_alloc(WORDS * 4);
    out = e2e_device_alloc(WORDS * 4);
    before = e2e_driver_calls("cuStreamWaitEvent");
    e2e_fill_words(s[0], a, words, 60);
    OK(cuEventRecord(e[0], s[0]));
    OK(cuStreamWaitEvent(s[1], e[0], 0));
    OK(cuEventRecord(e[1], s[1]));
    OK(cuStreamWaitEvent(s[2], e[1], 0));
    OK(cuStreamWaitEvent(s[2], e[0], 0)); /* it waited for what waited for it */
    OK(cuStreamWaitEvent(s[1], e[0], 0)); /* again */
    if (e2e_driver_calls("cuInit") >= 0)
        CHECK_EQ_INT(e2e_driver_calls("cuStreamWaitEvent") - before, !e2e_is_native() ? 2 : 4);
    LAUNCH(s[2], "copy_u32", &a, &out, &words);
    OK(cuEventRecord(e[1], s[2])); /* all that used A */
    OK(cuStreamWaitEvent(s[0], e[1], 0));
    e2e_fill_words(s[0], a, words, 61);
    OK(cuEventRecord(e[0], s[0]));
    OK(cuStreamWaitEvent(s[2], e[0], 0)); /* not the record that it waited for */
    LAUNCH(s[2], "copy_u32", &a, &out, &words);
    OK(cuStreamSynchronize(s[2]));
    check_words(out, 61);
    for (int i = 0; i < 3; i++)
        OK(cuStreamDestroy(s[i]));
    for (int i = 0; i < 2; i++)
        OK(cuEventDestroy(e[i]));
    OK(cuMemFree(a));
    OK(cuMemFree(out));
}

/* A blocking stream's record also covers what the legacy stream was given before: that is no edge
 * that an earlier wait has made. */
TEST(epochs, the_legacy_streams_edges_are_not_taken_for_granted)
{
    CUdeviceptr a, out;
    CUstream blocking, apart;
    CUevent e;

    begin();
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    a = e2e_device_alloc(WORDS * 4);
    out = e2e_device_alloc(WORDS * 4);
    e2e_fill_words(blocking, a, words, 70);
    OK(cuEventRecord(e, blocking));
    OK(cuStreamWaitEvent(apart, e, 0));
    e2e_fill_words(CU_STREAM_LEGACY, a, words, 71);
    e2e_fill_words(
        blocking, out, words,
        0); /* whatever the record covers by itself: this comes after the legacy stream */
    OK(cuEventRecord(e, blocking));
    OK(cuStreamWaitEvent(apart, e, 0));
    LAUNCH(apart, "copy_u32", &a, &out, &words);
    OK(cuStreamSynchronize(apart));
    check_words(out, 71);
    OK(cuEventDestroy(e));
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(apart));
    OK(cuMemFree(a));
    OK(cuMemFree(out));
}

/* Many of everything: what is remembered must not grow, nor be mixed up. */
TEST(epochs, streams_and_events_come_and_go)
{
    CUdeviceptr a, out;
    CUstream kept;

    begin();
    OK(cuStreamCreate(&kept, CU_STREAM_NON_BLOCKING));
    a = e2e_device_alloc(WORDS * 4);
    out = e2e_device_alloc(WORDS * 4);
    for (uint32_t i = 0; i < 300; i++) {
        CUstream s;
        CUevent e;

        OK(cuStreamCreate(&s, i % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
        OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
        e2e_fill_words(s, a, words, i);
        OK(cuEventRecord(e, s));
        OK(cuStreamWaitEvent(kept, e, 0));
        LAUNCH(kept, "copy_u32", &a, &out, &words);
        OK(cuStreamDestroy(s)); /* before its work is done */
        OK(cuEventRecord(e, kept));
        if (i % 3 == 0)
            OK(cuStreamSynchronize(kept));
        else
            OK(cuStreamWaitEvent(CU_STREAM_LEGACY, e, 0));
        check_words(out, i);
        OK(cuEventDestroy(e));
    }
    OK(cuStreamDestroy(kept));
    OK(cuMemFree(a));
    OK(cuMemFree(out));
}

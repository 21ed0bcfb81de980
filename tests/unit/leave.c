/* SPDX-License-Identifier: MIT */
#include "shim/leave.h"

#include <pthread.h>
#include <sched.h>

#include "shim/count.h"
#include "shim/event.h"
#include "shim/stream.h"
#include "shim/touch.h"
#include "shim/turn.h"
#include "tests/harness/test.h"

#define STREAM(n) ((CUstream)(uintptr_t)(0x1000 * (n)))
enum { SIZE = 0x1000 };
static const uint64_t A = 0x7f0000000000;

static unsigned asked, asked_per_thread;
static CUresult said;

static CUresult context_id(CUcontext context, unsigned long long *id)
{
    (void)context;
    *id = 1;
    return CUDA_SUCCESS;
}

static CUresult stream_query(CUstream stream)
{
    asked++;
    asked_per_thread += stream == CU_STREAM_PER_THREAD;
    return stream == CU_STREAM_LEGACY ? CUDA_ERROR_NOT_READY : said;
}

static CUresult context_device(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

static CUresult device_attribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)which, (void)device;
    *value = 0;
    return CUDA_SUCCESS;
}

static bool past_us(void)
{
    return false;
}

static const struct es_port port = {.context_id = context_id,
                                    .stream_query = stream_query,
                                    .context_device = context_device,
                                    .device_attribute = device_attribute,
                                    .past_us = past_us};

static struct es_stream *begin(enum es_kernels kernels)
{
    es_leave_configure(&port, kernels);
    es_count_meet_thread(true);
    es_touch_gone(A);
    es_touch_born(A, SIZE);
    asked = asked_per_thread = 0;
    said = CUDA_ERROR_NOT_READY;
    return es_stream_made(STREAM(1), CU_STREAM_DEFAULT);
}

static void *submit(void *unused)
{
    es_count(ES_SEEN_LAUNCH);
    es_turn_begin(CU_STREAM_PER_THREAD);
    es_turn_given(CU_STREAM_PER_THREAD, 0);
    return unused;
}

static void submit_in_another_thread(void)
{
    pthread_t thread;

    CHECK_EQ_INT(pthread_create(&thread, NULL, submit, NULL), 0);
    pthread_join(thread, NULL);
}

static bool is_free(enum es_direction dir)
{
    bool is;

    CHECK(es_turn_hold(ES_EVERY_STREAM));
    is = es_leave_is_free(dir, A, SIZE);
    es_turn_release();
    return is;
}

/* While a copy made up its mind another thread may have been quicker. */
TEST(leave, what_was_free_is_asked_again)
{
    struct es_stream *s = begin(ES_KERNELS_ARGS);

    CHECK(is_free(ES_H2D));
    es_touch(s, es_stream_given(s, 0), A, 1, false);
    CHECK(!is_free(ES_H2D));
    CHECK(is_free(ES_D2H)); /* it is only read */
    es_touch(s, es_stream_given(s, 0), A, 1, true);
    CHECK(!is_free(ES_D2H));
    es_stream_done(s, es_stream_close(s), 0);
    CHECK(is_free(ES_H2D));
    es_stream_given(s, ES_OBSERVABLE);
    CHECK(!is_free(ES_H2D));
    es_stream_done(s, es_stream_close(s), 0);
    /* The copies of our own stream are in its order. */
    es_touch(es_stream_at(ES_STREAM_SIDE), es_stream_given(es_stream_at(ES_STREAM_SIDE), 0), A, 1,
             true);
    CHECK(is_free(ES_H2D));
}

TEST(leave, several_threads_are_followed_by_arguments_only)
{
    begin(ES_KERNELS_OPAQUE);
    es_turn_begin(CU_STREAM_LEGACY);
    es_turn_end();
    CHECK(!es_leave_is_threaded());
    CHECK(es_leave_is_followed());
    submit_in_another_thread();
    CHECK(es_leave_is_threaded());
    CHECK(!es_leave_is_ever());
    CHECK(!es_leave_is_followed());
    begin(ES_KERNELS_ARGS);
    CHECK(es_leave_is_ever());
    CHECK(es_leave_is_followed());
    es_count(ES_SEEN_MEMOP);
    CHECK(!es_leave_is_followed());
    es_count_reset();
}

/* The handle names a stream of each thread: the answer would be for the one that asks. */
TEST(leave, the_per_thread_stream_is_asked_about_by_one_thread_alone)
{
    struct es_copy_facts f = {.dir = ES_H2D, .bytes = SIZE};

    begin(ES_KERNELS_ARGS);
    submit_in_another_thread();
    es_turn_begin(CU_STREAM_LEGACY);
    es_turn_given(CU_STREAM_LEGACY, ES_LONG);
    es_leave_look_around(A, &f);
    CHECK(f.behind);
    CHECK(f.clear);
    es_turn_begin(CU_STREAM_LEGACY);
    es_turn_given(CU_STREAM_LEGACY, ES_OPAQUE);
    es_leave_look_around(A, &f);
    CHECK(!f.clear);
    CHECK(asked > 2); /* the legacy stream twice, and what may touch the memory */
    CHECK_EQ_U64(asked_per_thread, 0);
}

struct submitter {
    atomic_int begun, may_end;
};

static void *submit_for_long(void *arg)
{
    struct submitter *s = arg;

    es_turn_begin(STREAM(7));
    atomic_store(&s->begun, 1);
    while (!atomic_load(&s->may_end))
        sched_yield();
    es_turn_end();
    return NULL;
}

/* Another thread may be about to destroy a stream, or to begin a capture. */
TEST(leave, no_stream_is_asked_while_another_thread_is_at_one)
{
    struct es_copy_facts f = {.dir = ES_H2D, .bytes = SIZE, .behind = true};
    struct submitter s = {0};
    pthread_t thread;

    begin(ES_KERNELS_ARGS);
    CHECK_EQ_INT(pthread_create(&thread, NULL, submit_for_long, &s), 0);
    while (!atomic_load(&s.begun))
        sched_yield();
    es_leave_look_around(A, &f);
    CHECK(!f.behind);
    CHECK_EQ_U64(asked, 0);
    atomic_store(&s.may_end, 1);
    pthread_join(thread, NULL);
    es_leave_look_around(A, &f);
    CHECK(f.behind);
}

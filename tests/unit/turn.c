/* SPDX-License-Identifier: MIT */
#include "shim/turn.h"

#include <pthread.h>
#include <sched.h>

#include "tests/harness/test.h"

#define STREAM(n) ((CUstream)(uintptr_t)(0x1000 * (n)))

enum { BLOCKING = 1, OTHER = 2, APART = 3 }; /* APART: made non-blocking */

static CUstream stream_of(int n)
{
    return n == 0    ? CU_STREAM_LEGACY
           : n == 4  ? CU_STREAM_PER_THREAD
           : n == -1 ? ES_EVERY_STREAM
                     : STREAM(n);
}

static struct {
    CUstream stream;
    atomic_int stage;
    int seen;
} shared;

/* Submits until it is told to be done. */
static void *submit(void *unused)
{
    es_turn_begin(shared.stream);
    atomic_store(&shared.stage, 1);
    while (atomic_load(&shared.stage) != 2)
        sched_yield();
    es_turn_end();
    return unused;
}

/* Whether a hold of one stream is had while another thread submits to another one. */
static bool is_had(CUstream hold, CUstream submitting)
{
    pthread_t thread;
    bool had;

    shared.stream = submitting;
    atomic_store(&shared.stage, 0);
    pthread_create(&thread, NULL, submit, NULL);
    while (atomic_load(&shared.stage) != 1)
        sched_yield();
    had = es_turn_hold(hold);
    if (had)
        es_turn_release();
    atomic_store(&shared.stage, 2);
    pthread_join(thread, NULL);
    return had;
}

TEST(turn, which_streams_stand_in_each_others_way)
{
    static const struct {
        int a, b;
        bool apart;
    } table[] = {
        {BLOCKING, BLOCKING, false},
        {BLOCKING, OTHER, true},
        {BLOCKING, 0, false},
        {APART, APART, false},
        {APART, BLOCKING, true},
        {APART, 0, true},
        {0, 0, false},
        {0, 4, false},
        {4, 4, true},
        {APART, -1, false},
        {0, -1, false},
        {APART, 4, true},
    };

    es_stream_made(stream_of(APART), CU_STREAM_NON_BLOCKING);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        CHECK_EQ_INT(is_had(stream_of(table[i].a), stream_of(table[i].b)), table[i].apart);
        CHECK_EQ_INT(is_had(stream_of(table[i].b), stream_of(table[i].a)), table[i].apart);
    }
    es_stream_forget(stream_of(APART)); /* its handle may be a blocking stream's from now on */
    CHECK(!is_had(stream_of(APART), CU_STREAM_LEGACY));
}

static void *enter(void *unused)
{
    atomic_store(&shared.stage, 1);
    es_turn_begin(shared.stream);
    shared.seen = atomic_load(&shared.stage);
    es_turn_end();
    return unused;
}

static void *enter_by_hold(void *unused)
{
    atomic_store(&shared.stage, 1);
    if (es_turn_hold(shared.stream)) {
        shared.seen = atomic_load(&shared.stage);
        es_turn_release();
    }
    return unused;
}

TEST(turn, a_held_stream_is_waited_for)
{
    for (int way = 0; way < 2; way++) {
        pthread_t thread;

        shared.stream = CU_STREAM_LEGACY;
        shared.seen = 0;
        atomic_store(&shared.stage, 0);
        CHECK(es_turn_hold(CU_STREAM_LEGACY));
        pthread_create(&thread, NULL, way ? enter_by_hold : enter, NULL);
        while (atomic_load(&shared.stage) != 1)
            sched_yield();
        for (int i = 0; i < 1000; i++) /* a chance to go on where it may not */
            sched_yield();
        atomic_store(&shared.stage, 2);
        es_turn_release();
        pthread_join(thread, NULL);
        CHECK_EQ_INT(shared.seen, 2);
    }
}

TEST(turn, the_holder_itself_goes_on)
{
    CHECK(es_turn_hold(STREAM(BLOCKING)));
    es_turn_begin(STREAM(BLOCKING));
    es_turn_end();
    es_turn_release();
}

static void *once(void *unused)
{
    es_turn_begin(CU_STREAM_LEGACY);
    es_turn_end();
    return unused;
}

/* More threads than there are slots, one after another. */
TEST(turn, threads_that_ended_leave_no_trace)
{
    uint64_t before = es_turn_on_legacy();

    for (int i = 0; i < 1500; i++) {
        pthread_t thread;

        CHECK_EQ_INT(pthread_create(&thread, NULL, once, NULL), 0);
        pthread_join(thread, NULL);
    }
    CHECK_EQ_U64(es_turn_on_legacy() - before, 1500);
    CHECK(es_turn_hold(CU_STREAM_LEGACY));
    es_turn_release();
}

/* SPDX-License-Identifier: MIT */
/* Which waits change nothing: a table of what happened before, and the rules one by one. */
#include "shim/event.h"

#include <pthread.h>

#include "shim/capture.h"
#include "shim/turn.h"
#include "tests/harness/test.h"

#define STREAM(n) ((CUstream)(uintptr_t)(0x1000 * (n)))
#define EVENT(n)  ((CUevent)(uintptr_t)(0x700000 + 0x100 * (n)))

static void begin(void)
{
    es_event_configure(true, true);
    for (int i = 1; i <= 4; i++) {
        es_event_stream_made(es_stream_made(STREAM(i), i > 2 ? CU_STREAM_NON_BLOCKING : 0));
        es_event_made(EVENT(i), CU_EVENT_DISABLE_TIMING);
        es_event_gone(EVENT(i));
        es_event_made(EVENT(i), CU_EVENT_DISABLE_TIMING);
    }
}

static void record(int event, int stream)
{
    es_event_record_begin(EVENT(event), STREAM(stream), true);
    es_event_record_end(EVENT(event), STREAM(stream), true);
}

static void work(int stream)
{
    es_stream_given(es_stream_of(STREAM(stream)), ES_OPAQUE);
}

static void wait(int stream, int event)
{
    enum es_needless needless;
    struct es_asked asked = es_event_wait_begin(EVENT(event), STREAM(stream), false, &needless);

    es_event_wait_end(&asked, STREAM(stream), true);
}

static enum es_needless asked_whether(CUstream stream, int event)
{
    enum es_needless needless;
    struct es_asked asked = es_event_wait_begin(EVENT(event), stream, true, &needless);

    if (needless == ES_NEEDED)
        es_event_wait_end(&asked, stream, false);
    return needless;
}

static void learn(int event)
{
    struct es_asked asked = es_event_ask(EVENT(event));

    es_event_answered(&asked, true);
}

static void learn_stream(int stream)
{
    struct es_asked asked = es_event_ask_stream(STREAM(stream));

    es_event_answered(&asked, true);
}

#define NEEDS_NO_WAIT(stream, event) asked_whether(STREAM(stream), event)

TEST(event, a_wait_is_needed_until_it_was_made)
{
    begin();
    work(1);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_NEEDED); /* never recorded: the driver's affair */
    record(1, 1);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_NEEDED);
    CHECK_EQ_INT(NEEDS_NO_WAIT(1, 1), ES_ORDERED); /* its own stream */
    wait(3, 1);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_ORDERED);
    CHECK_EQ_INT(NEEDS_NO_WAIT(4, 1), ES_NEEDED);
    CHECK_EQ_INT(asked_whether(CU_STREAM_LEGACY, 1), ES_NEEDED);
    CHECK_EQ_INT(NEEDS_NO_WAIT(9, 1), ES_NEEDED); /* nobody made it */
}

TEST(event, order_is_transitive)
{
    begin();
    work(1);
    record(1, 1);
    wait(2, 1);
    record(2, 2);
    wait(3, 2);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_ORDERED);
    record(3, 3);
    wait(4, 3);
    CHECK_EQ_INT(NEEDS_NO_WAIT(4, 1), ES_ORDERED);
    CHECK_EQ_INT(NEEDS_NO_WAIT(4, 2), ES_ORDERED);
}

TEST(event, a_later_record_is_not_what_was_waited_for)
{
    begin();
    work(1);
    record(1, 1);
    wait(3, 1);
    work(1);
    record(1, 1);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_NEEDED);
    learn(1);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_COMPLETED);
    record(1, 1); /* also where no work came between: the stream may have waited for something */
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_NEEDED);
}

TEST(event, what_the_host_saw_done_is_transitive)
{
    begin();
    work(1);
    record(1, 1);
    wait(2, 1);
    work(2);
    record(2, 2);
    learn(2);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_ORDERED); /* by what is done */
    CHECK(!es_stream_is_busy(es_stream_of(STREAM(1))));
    work(1);
    CHECK(es_stream_is_busy(es_stream_of(STREAM(1))));
    record(1, 1);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_NEEDED);
    learn_stream(1);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_ORDERED);
}

TEST(event, what_runs_during_a_record_proves_nothing)
{
    begin();
    work(1);
    es_event_record_begin(EVENT(1), STREAM(1), true);
    learn_stream(1); /* by another thread, before the driver has the record */
    es_event_record_end(EVENT(1), STREAM(1), true);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_NEEDED);

    es_event_record_begin(EVENT(2), STREAM(1), true);
    record(3, 1); /* which of them comes first? */
    es_event_record_end(EVENT(2), STREAM(1), true);
    wait(3, 3);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 2), ES_NEEDED);
    wait(4, 2);
    CHECK_EQ_INT(NEEDS_NO_WAIT(4, 3), ES_NEEDED);

    struct es_asked asked = es_event_ask(EVENT(4));
    record(4, 1);
    es_event_answered(&asked, true); /* of the record before */
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 4), ES_NEEDED);
}

TEST(event, what_was_not_recorded_as_usual_tells_nothing)
{
    begin();
    work(1);
    es_event_record_begin(EVENT(1), STREAM(1), false); /* by a launch's attribute */
    es_event_record_end(EVENT(1), STREAM(1), true);
    learn(1);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_NEEDED);
    record(1, 1);
    learn(1);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_NEEDED);

    es_event_record_begin(EVENT(2), STREAM(1), true);
    es_event_record_end(EVENT(2), STREAM(1), false); /* the driver refused */
    wait(3, 2);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 2), ES_NEEDED);

    record(3, 1);
    learn(3);
    es_capture_begin(STREAM(3));
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 3), ES_NEEDED); /* a fork of the capture */
    es_capture_end(STREAM(3));
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 3), ES_COMPLETED);
}

/* A record is used again: what was known of its stream must not be said of the next. */
TEST(event, another_stream_at_the_same_handle)
{
    begin();
    work(3);
    record(1, 3);
    wait(4, 1);
    es_stream_forget(STREAM(3));
    es_event_stream_made(es_stream_made(STREAM(3), CU_STREAM_NON_BLOCKING));
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1),
                 ES_NEEDED); /* the old one's work is not before the new one's */
    record(2, 3);
    wait(2, 2);
    CHECK_EQ_INT(NEEDS_NO_WAIT(2, 1), ES_NEEDED);
}

static void *record_on_its_own_stream(void *unused)
{
    es_turn_begin(CU_STREAM_PER_THREAD);
    es_turn_given(CU_STREAM_PER_THREAD, ES_OPAQUE);
    es_event_record_begin(EVENT(1), CU_STREAM_PER_THREAD, true);
    es_event_record_end(EVENT(1), CU_STREAM_PER_THREAD, true);
    return unused;
}

/* One handle, a stream in each thread; the work goes on when its thread has ended. */
TEST(event, the_per_thread_stream_of_a_thread_that_ended)
{
    struct es_asked asked;
    pthread_t thread;

    begin();
    CHECK_EQ_INT(pthread_create(&thread, NULL, record_on_its_own_stream, NULL), 0);
    pthread_join(thread, NULL);
    es_turn_begin(CU_STREAM_PER_THREAD);
    es_turn_given(CU_STREAM_PER_THREAD, ES_OPAQUE);
    asked = es_event_ask_stream(CU_STREAM_PER_THREAD);
    es_event_answered(&asked, true);
    CHECK_EQ_INT(NEEDS_NO_WAIT(3, 1), ES_NEEDED);
}

static CUevent waited_for;

static CUresult note_wait(CUstream stream, CUevent event, unsigned flags)
{
    waited_for = event;
    return CUDA_SUCCESS;
}

TEST(event, the_oldest_event_that_covers)
{
    const struct es_port port = {.stream_wait_event = note_wait};
    struct es_stream *s, *apart;
    uint64_t epoch, given;

    begin();
    s = es_stream_of(STREAM(1));
    apart = es_stream_of(STREAM(3));
    record(1, 1);
    epoch = es_stream_given(s, ES_OPAQUE);
    CHECK(!es_event_covers((struct es_tick){es_stream_number(s), epoch}));
    record(2, 1);
    work(1);
    record(3, 1);
    CHECK(es_event_make_wait(&port, STREAM(9), &(struct es_tick){es_stream_number(s), epoch},
                             &given));
    CHECK(waited_for == EVENT(2));
    record(2, 1); /* no more */
    CHECK(es_event_make_wait(&port, STREAM(9), &(struct es_tick){es_stream_number(s), epoch},
                             &given));
    CHECK(waited_for == EVENT(3));
    es_event_gone(EVENT(3));
    CHECK(es_event_make_wait(&port, STREAM(9), &(struct es_tick){es_stream_number(s), epoch},
                             &given));
    CHECK(waited_for == EVENT(2));

    /* A non-blocking stream's, only where the legacy stream waits for it anyhow. */
    epoch = es_stream_given(apart, ES_OPAQUE);
    record(1, 3);
    CHECK(!es_event_covers((struct es_tick){es_stream_number(apart), epoch}));
    enum es_needless needless;
    struct es_asked asked = es_event_wait_begin(EVENT(1), CU_STREAM_LEGACY, true, &needless);
    es_event_wait_end(&asked, CU_STREAM_LEGACY, true);
    CHECK(es_event_covers((struct es_tick){es_stream_number(apart), epoch}));
    record(1, 3); /* a later one, for which it does not wait */
    CHECK(!es_event_covers((struct es_tick){es_stream_number(apart), epoch}));
}

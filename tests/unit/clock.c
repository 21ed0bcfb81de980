/* SPDX-License-Identifier: MIT */
#include "shim/clock.h"

#include <stddef.h>

#include "tests/harness/test.h"

static uint64_t done[1000]; /* by stream */

static bool is_done(struct es_tick t)
{
    return t.epoch <= done[t.stream];
}

static struct es_clock *with(struct es_clock *c, unsigned stream, uint64_t epoch)
{
    struct es_clock *more = es_clock_join(c, NULL, (struct es_tick){stream, epoch}, is_done);

    es_clock_drop(c);
    return more;
}

TEST(clock, a_join_has_the_later_of_each)
{
    struct es_clock *a = with(with(NULL, 3, 5), 1, 2), *b = with(with(NULL, 3, 4), 7, 1), *c;

    CHECK_EQ_U64(es_clock_get(NULL, 3), 0);
    CHECK_EQ_U64(es_clock_get(a, 3), 5);
    CHECK_EQ_U64(es_clock_get(a, 2), 0);
    c = es_clock_join(a, b, (struct es_tick){2, 9}, is_done);
    CHECK_EQ_INT(c->count, 4);
    CHECK_EQ_U64(es_clock_get(c, 1), 2);
    CHECK_EQ_U64(es_clock_get(c, 2), 9);
    CHECK_EQ_U64(es_clock_get(c, 3), 5);
    CHECK_EQ_U64(es_clock_get(c, 7), 1);
    CHECK_EQ_U64(es_clock_get(a, 2), 0); /* those it was made of stay as they are */
    es_clock_drop(es_clock_hold(c));
    CHECK_EQ_U64(es_clock_get(c, 7), 1);
    es_clock_drop(a);
    es_clock_drop(b);
    es_clock_drop(c);
}

TEST(clock, what_is_done_is_left_out)
{
    struct es_clock *a = with(with(NULL, 3, 5), 4, 6);

    done[3] = 5;
    a = with(a, 5, 1);
    CHECK_EQ_INT(a->count, 2);
    CHECK_EQ_U64(es_clock_get(a, 3), 0);
    done[4] = 6;
    done[5] = 1;
    CHECK(!with(a, 5, 1)); /* the empty clock */
    done[3] = done[4] = done[5] = 0;
}

/* It never grows without bound, and never says what is not so. */
TEST(clock, ticks_too_many_are_left_out)
{
    struct es_clock *a = NULL;

    for (unsigned s = 0; s < 1000; s++)
        a = with(a, s, s + 1);
    CHECK(a->count <= ES_CLOCK_TICKS);
    for (unsigned s = 0; s < 1000; s++)
        CHECK(es_clock_get(a, s) == 0 || es_clock_get(a, s) == s + 1);
    es_clock_drop(a);
}

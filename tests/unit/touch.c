/* SPDX-License-Identifier: MIT */
#include "shim/touch.h"

#include "tests/harness/test.h"

#define STREAM(n) ((CUstream)(uintptr_t)(0x1000 * (n)))
enum { SIZE = 0x1000 };
static const uint64_t A = 0x7f0000000000, B = 0x7f0000001000;

static struct es_tick who[ES_TOUCHERS];

static struct es_stream *made(int n)
{
    return es_stream_made(STREAM(n), CU_STREAM_NON_BLOCKING);
}

static bool is_live(uint64_t start, uint64_t bytes)
{
    struct es_tick touchers[ES_TOUCHERS];

    return es_touch_who(start, bytes, true, touchers) >= 0;
}

TEST(touch, only_live_allocations_are_known)
{
    CHECK_EQ_INT(es_touch_who(A, 1, false, who), -1);
    es_touch_born(A, SIZE);
    es_touch_born(B, SIZE);
    CHECK(is_live(A, SIZE));
    CHECK(is_live(A + SIZE - 1, 1));
    CHECK(!is_live(A, SIZE + 1)); /* into the next one */
    CHECK(!is_live(A - 1, 1));
    CHECK_EQ_INT(es_touch_who(A + 5, 10, false, who), 0);
    es_touch_gone(A);
    CHECK(!is_live(A, 1));
    es_touch_born(A + 0x800, SIZE); /* B went without a word */
    CHECK(is_live(B, 1));
    CHECK(!is_live(B + 0x800, 1));
    es_touch_gone(A + 0x800);
    es_touch_born(0x100000, SIZE); /* a kernel's arguments are not looked at for such addresses */
    CHECK(!is_live(0x100000, SIZE));
}

/* Look-ups by the same addresses, while allocations go and come back at the same place. */
TEST(touch, an_address_that_comes_back_is_new_memory)
{
    struct es_stream *s = made(1);

    for (int i = 0; i < 3; i++) {
        uint64_t addresses[] = {A + 8, B, A};

        es_touch_born(A, SIZE);
        CHECK_EQ_INT(es_touch_all(s, es_stream_given(s, 0), addresses, 3), 1);
        CHECK(addresses[0] == B);
        CHECK_EQ_INT(es_touch_who(A, SIZE, true, who), 1);
        es_touch_gone(A);
        CHECK(!es_touch(s, es_stream_given(s, 0), A + 8, 1, true));
        es_touch_born(A, SIZE);
        CHECK_EQ_INT(es_touch_who(A, SIZE, true, who), 0);
        es_touch_gone(A);
    }
    es_stream_done(s, es_stream_close(s), 0);
}

TEST(touch, opaque_work_touches_what_lived_before_it)
{
    struct es_stream *s = made(1);

    es_touch_born(A, SIZE);
    es_stream_given(s, ES_OPAQUE);
    es_touch_born(B, SIZE);
    CHECK_EQ_INT(es_touch_who(A, 1, false, who), 1);
    CHECK_EQ_INT(who[0].stream, es_stream_number(s));
    CHECK_EQ_INT(es_touch_who(B, 1, false, who), 0);
    es_stream_given(s, ES_OPAQUE);
    CHECK_EQ_INT(es_touch_who(B, 1, false, who), 1);
    es_touch_gone(B);
    es_touch_born(B, SIZE); /* at the same address: new memory */
    CHECK_EQ_INT(es_touch_who(B, 1, false, who), 0);
    es_stream_done(s, es_stream_close(s), 0);
    CHECK_EQ_INT(es_touch_who(A, 1, false, who), 0);
    es_touch_gone(A);
    es_touch_gone(B);
}

TEST(touch, ranges_reads_and_writes)
{
    struct es_stream *s = made(1), *t = made(2);
    uint64_t first;

    es_touch_born(A, SIZE);
    first = es_stream_given(s, 0);
    CHECK(es_touch(s, first, A + 100, 100, true));
    es_stream_close(s);
    CHECK(es_touch(s, es_stream_given(s, 0), A + 300, 100, true));
    CHECK(es_touch(t, es_stream_given(t, 0), A + 500, 100, false));
    CHECK_EQ_INT(es_touch_who(A, 100, false, who), 0);
    CHECK_EQ_INT(es_touch_who(A + 400, 100, false, who), 0);
    CHECK_EQ_INT(es_touch_who(A + 100, 1, false, who), 1);
    CHECK_EQ_U64(who[0].epoch, first + 1);                 /* of each stream the newest */
    CHECK_EQ_INT(es_touch_who(A + 250, 1, false, who), 1); /* between them: too careful */
    CHECK_EQ_INT(es_touch_who(A + 599, 1, false, who), 1);
    CHECK_EQ_INT(es_touch_who(A + 599, 1, true, who), 0);
    CHECK_EQ_INT(es_touch_who(A, SIZE, false, who), 2);
    es_stream_done(s, first, 0);
    CHECK_EQ_INT(es_touch_who(A + 100, 1, false, who), 1);
    CHECK_EQ_U64(es_stream_close(s), first + 1);
    es_stream_done(s, first + 1, 0);
    CHECK_EQ_INT(es_touch_who(A, SIZE, true, who), 0);
    CHECK(!es_touch(s, 1, A + SIZE - 1, 2, true));
    es_stream_done(t, es_stream_close(t), 0);
    es_touch_gone(A);
}

TEST(touch, more_streams_than_are_noted)
{
    struct es_stream *s;

    es_touch_born(A, SIZE);
    for (int i = 1; i <= 4; i++) {
        s = made(i);
        es_touch(s, es_stream_given(s, 0), A, SIZE, true);
        CHECK_EQ_INT(es_touch_who(A, 1, false, who), i);
    }
    s = made(5);
    es_touch(s, es_stream_given(s, 0), A, SIZE, true);
    CHECK_EQ_INT(es_touch_who(A, 1, false, who), -1);
    for (unsigned i = 0; (s = es_stream_used(i)); i++)
        es_stream_done(s, es_stream_close(s), 0);
    CHECK_EQ_INT(es_touch_who(A, 1, false, who), 0);
    es_touch_gone(A);
}

TEST(touch, a_million_allocations)
{
    for (uint64_t i = 0; i < 1000000; i++)
        es_touch_born(A + (i * 7919 % 1000000 << 9), 512);
    for (uint64_t i = 0; i < 1000000; i += 997)
        CHECK(is_live(A + (i << 9) + 511, 1));
    for (uint64_t i = 0; i < 1000000; i++)
        es_touch_gone(A + (i << 9));
    CHECK(!is_live(A, 1));
}

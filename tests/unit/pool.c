/* SPDX-License-Identifier: MIT */
#include "shim/pool.h"

#include <string.h>

#include "tests/harness/test.h"
#include "tests/unit/fake_port.h"

enum { CHUNK = 64 << 10 };

static CUcontext context(uintptr_t n)
{
    return (CUcontext)(n * 64);
}

TEST(pool, pins_on_demand_and_keeps_what_it_pinned)
{
    struct fake *fake = fake_reset();
    struct es_pool *p = es_pool_of(fake_port(), context(1), 1, CHUNK, 16 * CHUNK);
    struct es_chunk *c[8];

    CHECK(p != NULL);
    CHECK_EQ_INT(fake->pins, 0); /* nothing before the first lease */
    CHECK_EQ_INT(es_pool_lease(p, 4, c), 4);
    CHECK_EQ_INT(fake->pins, 1);
    memset(c[3]->memory, 1, CHUNK);
    es_pool_return(p, c, 4);
    CHECK(es_pool_of(fake_port(), context(1), 1, CHUNK, 16 * CHUNK) == p);
    CHECK_EQ_INT(es_pool_lease(p, 4, c), 4);
    CHECK_EQ_INT(fake->pins, 1);
    es_pool_return(p, c, 4);
    es_pool_end(es_pool_detach(context(1)));
}

TEST(pool, never_above_its_cap)
{
    fake_reset();
    struct es_pool *p = es_pool_of(fake_port(), context(2), 1, CHUNK, 4 * CHUNK + 100);
    struct es_pool *again = es_pool_of(fake_port(), context(2), 1, CHUNK, 4 * CHUNK + 100);
    struct es_chunk *c[8], *d[8];

    CHECK_EQ_INT(es_pool_lease(p, 8, c), 4);
    CHECK_EQ_INT(es_pool_lease(again, 1, d), 0); /* at once, without waiting */
    es_pool_return(again, d, 0);
    es_pool_return(p, c, 4);
    es_pool_end(es_pool_detach(context(2)));
}

/* "A chunk is reused after its own event". */
TEST(pool, a_pending_chunk_is_leased_to_nobody)
{
    struct fake *fake = fake_reset();
    struct es_pool *p = es_pool_of(fake_port(), context(3), 1, CHUNK, 2 * CHUNK);
    struct es_chunk *c[2], *d[2];

    CHECK_EQ_INT(es_pool_lease(p, 2, c), 2);
    fake_port()->copy_h2d((CUdeviceptr)(uintptr_t)c[1]->memory, c[0]->memory, 16, NULL);
    fake_port()->event_record(c[0]->event, NULL);
    c[0]->pending = true;
    fake->hold = true;
    es_pool_return(p, c, 2);
    es_pool_of(fake_port(), context(3), 1, CHUNK, 2 * CHUNK);
    CHECK_EQ_INT(es_pool_lease(p, 2, d), 1);
    CHECK(d[0] != c[0]);
    CHECK(!fake->waited_while_held);
    es_pool_return(p, d, 1);
    fake->hold = false;
    es_pool_of(fake_port(), context(3), 1, CHUNK, 2 * CHUNK);
    CHECK_EQ_INT(es_pool_lease(p, 2, d), 2);
    es_pool_return(p, d, 2);
    es_pool_end(es_pool_detach(context(3)));
}

/* Case 7: pinned allocation refused after N bytes. */
TEST(pool, case_7_refused_once_is_not_asked_again)
{
    struct fake *fake = fake_reset();
    struct es_pool *p = es_pool_of(fake_port(), context(4), 1, CHUNK, 64 * CHUNK);
    struct es_chunk *c[16];
    uint64_t before = es_pool_totals().pinned;

    fake->pin_limit = 4 * CHUNK;
    CHECK_EQ_INT(es_pool_lease(p, 4, c), 4);
    CHECK_EQ_INT(es_pool_lease(p, 8, c + 4), 0);
    CHECK_EQ_INT(fake->pins, 2);
    CHECK_EQ_INT(es_pool_lease(p, 8, c + 4), 0);
    CHECK_EQ_INT(fake->pins, 2);
    CHECK_EQ_U64(es_pool_totals().pinned - before, 4 * CHUNK);
    CHECK(es_pool_totals().refused_at != 0);
    es_pool_return(p, c, 4);
    es_pool_end(es_pool_detach(context(4)));
    CHECK_EQ_U64(es_pool_totals().pinned, before);
}

/* Case 32: a context that came back under the same handle gets none of the old one's chunks. */
TEST(pool, case_32_a_new_context_under_an_old_handle)
{
    struct fake *fake = fake_reset();
    struct es_pool *old = es_pool_of(fake_port(), context(5), 1, CHUNK, 4 * CHUNK), *new;
    struct es_chunk *c[4];

    CHECK_EQ_INT(es_pool_lease(old, 4, c), 4);
    new = es_pool_of(fake_port(), context(5), 2, CHUNK, 4 * CHUNK);
    CHECK(new != old);
    memset(c[0]->memory, 2, CHUNK); /* a lease outlives the context */
    es_pool_return(old, c, 4);
    CHECK_EQ_INT(es_pool_lease(new, 4, c), 4);
    CHECK_EQ_INT(fake->pins, 2);
    es_pool_return(new, c, 4);
    es_pool_end(es_pool_detach(context(5)));
    CHECK(es_pool_detach(context(5)) == NULL);
}

/* SPDX-License-Identifier: MIT */
/* The table of placements: a row for every reason, and one for each pair of rules whose order
 * shows. */
#include "policy/place.h"

#include "tests/harness/test.h"

#define GOOD                                                                                       \
    .dir = ES_H2D, .bytes = 64 << 20, .host = ES_MEM_PAGEABLE, .device = ES_MEM_DEVICE, .threads = 8

static const struct {
    struct es_copy_facts facts;
    enum es_mode mode;
    uint64_t min_bytes, limit;
    enum es_reason why;
} table[] = {
    {{GOOD}, ES_MODE_REWRITE, 0, 9, ES_WHY_NONE},
    {{GOOD, .async = true}, ES_MODE_REWRITE, 0, 9, ES_WHY_NONE},
    {{GOOD}, ES_MODE_OBSERVE, 0, 9, ES_WHY_MODE},
    {{GOOD}, ES_MODE_OFF, 0, 9, ES_WHY_MODE},
    {{GOOD, .unfit = true}, ES_MODE_REWRITE, 0, 9, ES_WHY_UNFIT},
    {{GOOD, .capturing = true}, ES_MODE_REWRITE, 0, 9, ES_WHY_CAPTURE},
    {{GOOD, .launch_blocking = true}, ES_MODE_REWRITE, 0, 9, ES_WHY_LAUNCH_BLOCKING},
    {{.dir = ES_H2D, .bytes = 64 << 20, .host = ES_MEM_PINNED, .device = ES_MEM_DEVICE},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_PINNED},
    {{.dir = ES_H2D, .bytes = 64 << 20, .host = ES_MEM_MANAGED, .device = ES_MEM_DEVICE},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_MANAGED},
    {{.dir = ES_H2D, .bytes = 64 << 20, .host = ES_MEM_PAGEABLE, .device = ES_MEM_MANAGED},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_MANAGED},
    {{.dir = ES_H2D, .bytes = 64 << 20, .host = ES_MEM_UNKNOWN, .device = ES_MEM_DEVICE},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_NOT_PAGEABLE},
    {{.dir = ES_H2D, .bytes = 64 << 20, .host = ES_MEM_DEVICE, .device = ES_MEM_DEVICE},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_NOT_PAGEABLE},
    {{.dir = ES_H2D, .bytes = 64 << 20, .host = ES_MEM_PAGEABLE, .device = ES_MEM_PEER},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_PEER},
    {{.dir = ES_H2D, .bytes = 64 << 20, .host = ES_MEM_PAGEABLE, .device = ES_MEM_FOREIGN},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_FOREIGN},
    {{.dir = ES_H2D, .bytes = 64 << 20, .host = ES_MEM_PAGEABLE, .device = ES_MEM_UNKNOWN},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_UNKNOWN},
    {{GOOD, .sync_memops = true}, ES_MODE_REWRITE, 0, 9, ES_WHY_SYNC_MEMOPS},
    {{GOOD, .rewritten = 9}, ES_MODE_REWRITE, 0, 9, ES_WHY_LIMIT},
    {{GOOD, .rewritten = 8}, ES_MODE_REWRITE, 0, 9, ES_WHY_NONE},
    /* sizes */
    {{GOOD}, ES_MODE_REWRITE, 128 << 20, 9, ES_WHY_SMALL},
    {{.bytes = 0, .host = ES_MEM_PAGEABLE, .device = ES_MEM_DEVICE},
     ES_MODE_REWRITE,
     1,
     9,
     ES_WHY_SMALL},
    {{.bytes = 1, .host = ES_MEM_PAGEABLE, .device = ES_MEM_DEVICE},
     ES_MODE_REWRITE,
     1,
     9,
     ES_WHY_NONE},
    {{.bytes = 1, .host = ES_MEM_PAGEABLE, .device = ES_MEM_DEVICE, .threads = 8},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_SMALL},
    {{.dir = ES_D2H,
      .bytes = 1 << 30,
      .host = ES_MEM_PAGEABLE,
      .device = ES_MEM_DEVICE,
      .threads = 1},
     ES_MODE_REWRITE,
     0,
     9,
     ES_WHY_SMALL}, /* one thread never beats native there */
    /* order: what forbids comes before what makes it pointless */
    {{GOOD, .capturing = true, .sync_memops = true}, ES_MODE_REWRITE, 0, 0, ES_WHY_CAPTURE},
    {{GOOD, .unfit = true, .capturing = true}, ES_MODE_REWRITE, 0, 9, ES_WHY_UNFIT},
    {{GOOD, .sync_memops = true}, ES_MODE_REWRITE, 0, 0, ES_WHY_SYNC_MEMOPS},
};
enum { ROWS = sizeof table / sizeof *table };

TEST(place, table)
{
    for (int i = 0; i < ROWS; i++) {
        struct es_options o = {
            .mode = table[i].mode, .min_bytes = table[i].min_bytes, .limit = table[i].limit};
        struct es_place got = es_place(&table[i].facts, &o);

        CHECK_EQ_STR(es_reason_text(got.why), es_reason_text(table[i].why));
        CHECK_EQ_INT(got.where, table[i].why == ES_WHY_NONE ? ES_HOME : ES_NATIVE);
    }
}

TEST(place, every_reason_has_a_row)
{
    for (enum es_reason w = 0; w < ES_REASON_COUNT; w++) {
        bool found = w == ES_WHY_NO_STAGING; /* found out later, by the engine */

        for (int i = 0; i < ROWS; i++)
            found |= table[i].why == w;
        CHECK(found);
    }
}

/* SPDX-License-Identifier: MIT */
/* The table of placements: a row for every reason, and one for each pair of rules whose order
 * shows. */
#include "policy/place.h"

#include "tests/harness/test.h"

#define REWRITE ES_MODE_REWRITE
enum { MiB = 1 << 20 };

/* A copy that nothing speaks against; DIR, BYTES, host and device memory. */
#define COPY(dir_, bytes_, host_, device_)                                                         \
    .dir = ES_##dir_, .bytes = (uint64_t)(bytes_), .host = ES_MEM_##host_,                         \
    .device = ES_MEM_##device_
#define GOOD COPY(H2D, 64 * MiB, PAGEABLE, DEVICE), .threads = 8

/* clang-format off */
static const struct {
    struct es_copy_facts facts;
    enum es_mode mode;
    uint64_t min_bytes, limit;
    enum es_reason why;
} table[] = {
    {{GOOD},                                          REWRITE, 0, 9, ES_WHY_NONE},
    {{GOOD, .async = true},                           REWRITE, 0, 9, ES_WHY_NONE},
    {{GOOD},                                          ES_MODE_OBSERVE, 0, 9, ES_WHY_MODE},
    {{GOOD},                                          ES_MODE_OFF, 0, 9, ES_WHY_MODE},
    {{GOOD, .unfit = true},                           REWRITE, 0, 9, ES_WHY_UNFIT},
    {{GOOD, .capturing = true},                       REWRITE, 0, 9, ES_WHY_CAPTURE},
    {{GOOD, .launch_blocking = true},                 REWRITE, 0, 9, ES_WHY_LAUNCH_BLOCKING},
    {{COPY(H2D, 64 * MiB, PINNED, DEVICE)},           REWRITE, 0, 9, ES_WHY_PINNED},
    {{COPY(H2D, 64 * MiB, MANAGED, DEVICE)},          REWRITE, 0, 9, ES_WHY_MANAGED},
    {{COPY(H2D, 64 * MiB, PAGEABLE, MANAGED)},        REWRITE, 0, 9, ES_WHY_MANAGED},
    {{COPY(H2D, 64 * MiB, UNKNOWN, DEVICE)},          REWRITE, 0, 9, ES_WHY_NOT_PAGEABLE},
    {{COPY(H2D, 64 * MiB, DEVICE, DEVICE)},           REWRITE, 0, 9, ES_WHY_NOT_PAGEABLE},
    {{COPY(H2D, 64 * MiB, PAGEABLE, PEER)},           REWRITE, 0, 9, ES_WHY_PEER},
    {{COPY(H2D, 64 * MiB, PAGEABLE, FOREIGN)},        REWRITE, 0, 9, ES_WHY_FOREIGN},
    {{COPY(H2D, 64 * MiB, PAGEABLE, UNKNOWN)},        REWRITE, 0, 9, ES_WHY_UNKNOWN},
    {{GOOD, .sync_memops = true},                     REWRITE, 0, 9, ES_WHY_SYNC_MEMOPS},
    {{GOOD, .several = true},                         REWRITE, 0, 9, ES_WHY_SEVERAL},
    {{GOOD, .rewritten = 9},                          REWRITE, 0, 9, ES_WHY_LIMIT},
    {{GOOD, .rewritten = 8},                          REWRITE, 0, 9, ES_WHY_NONE},
    /* sizes */
    {{GOOD},                                          REWRITE, 128 * MiB, 9, ES_WHY_BELOW_MIN},
    {{COPY(H2D, 0, PAGEABLE, DEVICE)},                REWRITE, 1, 9, ES_WHY_SMALL},
    {{COPY(H2D, 1, PAGEABLE, DEVICE), .eligible = 64 * MiB},
                                                      REWRITE, 1, 9, ES_WHY_NONE},
    {{COPY(H2D, 1, PAGEABLE, DEVICE), .threads = 8},  REWRITE, 0, 9, ES_WHY_SMALL},
    /* one thread never beats native there */
    {{COPY(D2H, 1 << 30, PAGEABLE, DEVICE), .threads = 1},
                                                      REWRITE, 0, 9, ES_WHY_FEW_THREADS},
    /* the warm-up of 64 MiB: all at once, or little by little */
    {{GOOD, .eligible = 1},                           REWRITE, 0, 9, ES_WHY_NONE},
    {{COPY(H2D, 8 * MiB, PAGEABLE, DEVICE), .threads = 8},
                                                      REWRITE, 0, 9, ES_WHY_WARMUP},
    {{COPY(H2D, 8 * MiB, PAGEABLE, DEVICE), .threads = 8, .eligible = 56 * MiB - 1},
                                                      REWRITE, 0, 9, ES_WHY_WARMUP},
    {{COPY(H2D, 8 * MiB, PAGEABLE, DEVICE), .threads = 8, .eligible = 56 * MiB},
                                                      REWRITE, 0, 9, ES_WHY_NONE},
    /* order: what forbids comes before what makes it pointless */
    {{GOOD, .capturing = true, .sync_memops = true},  REWRITE, 0, 0, ES_WHY_CAPTURE},
    {{GOOD, .unfit = true, .capturing = true},        REWRITE, 0, 9, ES_WHY_UNFIT},
    {{GOOD, .sync_memops = true},                     REWRITE, 0, 0, ES_WHY_SYNC_MEMOPS},
};
/* clang-format on */
enum { ROWS = sizeof table / sizeof *table };

TEST(place, table)
{
    for (int i = 0; i < ROWS; i++) {
        struct es_options o = {.mode = table[i].mode,
                               .min_bytes = table[i].min_bytes,
                               .limit = table[i].limit,
                               .warmup = 64 << 20};
        struct es_place got = es_place(&table[i].facts, &o);

        CHECK_EQ_STR(es_reason_text(got.why), es_reason_text(table[i].why));
        CHECK_EQ_INT(got.where, table[i].why == ES_WHY_NONE ? ES_HOME : ES_NATIVE);
    }
}

/* A copy that leaves its place: one thing less, and it is staged there, or native. */
TEST(place, leaves_only_what_cannot_be_told)
{
    const struct es_copy_facts good = {.dir = ES_H2D,
                                       .bytes = 64 * MiB,
                                       .host = ES_MEM_PAGEABLE,
                                       .device = ES_MEM_DEVICE,
                                       .threads = 8,
                                       .legacy = true,
                                       .clear = true,
                                       .behind = true};
    const struct es_options o = {.mode = REWRITE, .limit = 9, .side = true},
                            never = {.mode = REWRITE,
                                     .limit = 9,
                                     .side = true,
                                     .defer = ES_DEFER_NEVER},
                            at_home = {.mode = REWRITE, .limit = 9};
    struct es_copy_facts f = good;

    for (enum es_direction dir = 0; dir < ES_DIRECTIONS; dir++) {
        f = good;
        f.dir = dir;
        CHECK_EQ_INT(es_place(&f, &o).where, ES_SIDE);
        CHECK(es_place(&f, &o).early);
        /* H2D: beside the queue, and waits for both */
        CHECK_EQ_INT(es_place(&f, &never).where, dir == ES_H2D ? ES_SIDE : ES_HOME);
        CHECK(!es_place(&f, &never).early);
        CHECK_EQ_INT(es_place(&f, &at_home).where, ES_HOME);
        f.bytes = 4; /* behind a queue none is too small */
        CHECK_EQ_INT(es_place(&f, &o).where, ES_SIDE);
        CHECK_EQ_INT(es_place(&f, &at_home).where, ES_NATIVE);
#define WITHOUT(change, expected)                                                                  \
    f = good;                                                                                      \
    f.dir = dir;                                                                                   \
    change;                                                                                        \
    CHECK_EQ_INT(es_place(&f, &o).where, expected)
        WITHOUT(f.async = true, ES_HOME);
        WITHOUT(f.legacy = false, ES_HOME);
        WITHOUT(f.clear = false, ES_HOME);
        WITHOUT(f.behind = false, ES_HOME);
        WITHOUT(f.observable = true, ES_HOME);
        WITHOUT(f.capturing = true, ES_NATIVE);
        WITHOUT(f.host = ES_MEM_PINNED, ES_NATIVE);
        WITHOUT(f.device = ES_MEM_FOREIGN, ES_NATIVE);
        WITHOUT(f.sync_memops = true, ES_NATIVE);
        WITHOUT(f.rewritten = 9, ES_NATIVE);
#undef WITHOUT
    }
}

TEST(place, every_reason_has_a_row)
{
    for (enum es_reason w = 0; w < ES_REASON_COUNT; w++) {
        bool found = w == ES_WHY_NO_STAGING || w == ES_WHY_REFUSED; /* the engine finds out */

        for (int i = 0; i < ROWS; i++)
            found |= table[i].why == w;
        CHECK(found);
    }
}

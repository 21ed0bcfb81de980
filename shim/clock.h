/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_CLOCK_H
#define ES_SHIM_CLOCK_H
/* Vector clocks: of each stream an epoch (shim/stream.h), up to which all its work is ordered
 * before whatever the clock belongs to. A clock may leave ticks out, never make one up: to be
 * surely ordered is what it tells. Clocks are shared and never change; NULL is the empty one. The
 * caller's lock guards the counts of those who share them. */

#include <stdbool.h>
#include <stdint.h>

struct es_tick {
    unsigned stream; /* its record's number */
    uint64_t epoch;  /* 0: none */
};

struct es_clock {
    unsigned holders, count;
    struct es_tick at[]; /* by stream */
};

/* More streams than these that one waited for, and all still at work, are left out. */
enum { ES_CLOCK_TICKS = 64 };

struct es_clock *es_clock_hold(struct es_clock *c);
void es_clock_drop(struct es_clock *c);

/* 0: nothing of that stream. */
uint64_t es_clock_get(const struct es_clock *c, unsigned stream);

/* A clock, held by the caller, of all that a, b and one tick more
 * say, but for what `is_done`. Without memory: what a says. */
struct es_clock *es_clock_join(struct es_clock *a, const struct es_clock *b, struct es_tick more,
                               bool (*is_done)(struct es_tick));

#endif

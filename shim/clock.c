/* SPDX-License-Identifier: MIT */
#include "shim/clock.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct es_clock *es_clock_hold(struct es_clock *c)
{
    if (c)
        c->holders++;
    return c;
}

void es_clock_drop(struct es_clock *c)
{
    if (c && --c->holders == 0)
        free(c);
}

uint64_t es_clock_get(const struct es_clock *c, unsigned stream)
{
    unsigned lo = 0, hi = c ? c->count : 0;

    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (c->at[mid].stream < stream)
            lo = mid + 1;
        else
            hi = mid;
    }
    return c && lo < c->count && c->at[lo].stream == stream ? c->at[lo].epoch : 0;
}

/* The smallest tick at or behind the three places, and all of its stream stepped over. */
static bool next(const struct es_clock *a, unsigned *i, const struct es_clock *b, unsigned *j,
                 struct es_tick *more, struct es_tick *t)
{
    const struct es_tick *x = a && *i < a->count ? &a->at[*i] : NULL;
    const struct es_tick *y = b && *j < b->count ? &b->at[*j] : NULL;

    *t = (struct es_tick){0};
    if (!x && !y && !more->epoch)
        return false;
    t->stream = x ? x->stream : y ? y->stream : more->stream;
    if (y && y->stream < t->stream)
        t->stream = y->stream;
    if (more->epoch && more->stream < t->stream)
        t->stream = more->stream;
    if (x && x->stream == t->stream) {
        t->epoch = x->epoch;
        ++*i;
    }
    if (y && y->stream == t->stream) {
        t->epoch = y->epoch > t->epoch ? y->epoch : t->epoch;
        ++*j;
    }
    if (more->epoch && more->stream == t->stream) {
        t->epoch = more->epoch > t->epoch ? more->epoch : t->epoch;
        more->epoch = 0;
    }
    return true;
}

struct es_clock *es_clock_join(struct es_clock *a, const struct es_clock *b, struct es_tick more,
                               bool (*is_done)(struct es_tick))
{
    struct es_tick all[ES_CLOCK_TICKS], t;
    unsigned count = 0, i = 0, j = 0;
    struct es_clock *c;

    while (count < ES_CLOCK_TICKS && next(a, &i, b, &j, &more, &t))
        if (!is_done(t))
            all[count++] = t;
    if (count == 0)
        return NULL;
    c = malloc(sizeof *c + count * sizeof *all);
    if (!c)
        return es_clock_hold(a);
    c->holders = 1;
    c->count = count;
    memcpy(c->at, all, count * sizeof *all);
    return c;
}

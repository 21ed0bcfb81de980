/* SPDX-License-Identifier: MIT */
/* The allocations are in glibc's balanced tree (tsearch), by address; to it two that overlap are
 * the same, so that a look-up by any address inside finds one. */
#include "shim/touch.h"

#include <errno.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "shim/event.h"
#include "shim/handoff.h"
#include "shim/mutant.h"

struct span {
    uint64_t epoch; /* of the newest; 0: none */
    uint64_t lo, hi;
};

enum { STREAMS_EACH = 4 };
struct allocation {
    uint64_t start, end;
    uint64_t born; /* es_stream_birth() */
    bool crowded;  /* touched by more streams than are noted */
    struct es_tick last;
    struct touch {
        unsigned stream;
        struct span reads, writes;
    } by[STREAMS_EACH];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static void *tree;
enum { AT_HAND = 256 };
static struct allocation *at_hand[AT_HAND]; /* found last, by address; never one that is gone */

static int order(const void *a, const void *b)
{
    const struct allocation *x = a, *y = b;

    return x->end <= y->start ? -1 : y->end <= x->start;
}

/* The one that overlaps the range; NULL: none, or the first of several. */
static struct allocation *find(uint64_t start, uint64_t bytes)
{
    struct allocation range = {.start = start, .end = start + bytes};
    struct allocation *const *found = tfind(&range, &tree, order);

    return found ? *found : NULL;
}

/* The one around an address. Programs use the same ones over and over: those are at hand. */
static struct allocation *find_at(uint64_t address)
{
    struct allocation **slot = &at_hand[(address >> 9) % AT_HAND];

    if (!*slot || address < (*slot)->start || address >= (*slot)->end)
        *slot = find(address, 1);
    return *slot;
}

static struct allocation *find_around(uint64_t start, uint64_t bytes)
{
    struct allocation *a = find_at(start);

    return a && a->end - start >= bytes ? a : NULL;
}

static void drop(struct allocation *a)
{
    tdelete(a, &tree, order);
    memset(at_hand, 0, sizeof at_hand);
    free(a);
}

void es_touch_born(uint64_t start, uint64_t bytes)
{
    int saved = errno;
    struct allocation *a;

    if (!es_touch_may_be(start) || !bytes)
        return;
    pthread_mutex_lock(&lock);
    while ((a = find(start, bytes))) /* it went with its context */
        drop(a);
    a = malloc(sizeof *a);
    if (a)
        *a = (struct allocation){.start = start, .end = start + bytes, .born = es_stream_birth()};
    if (a && !tsearch(a, &tree, order))
        free(a);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

void es_touch_gone(uint64_t start)
{
    int saved = errno;
    struct allocation *a;

    pthread_mutex_lock(&lock);
    a = find(start, 1);
    if (a)
        drop(a);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

static uint64_t done_of(unsigned stream)
{
    return atomic_load_explicit(&es_stream_at(stream)->done, memory_order_relaxed);
}

static bool is_over(const struct touch *t)
{
    return t->reads.epoch <= done_of(t->stream) && t->writes.epoch <= done_of(t->stream);
}

/* The notes of a stream; NULL: there is no place. */
static struct touch *by(struct allocation *a, unsigned stream)
{
    struct touch *place = NULL;

    for (unsigned i = 0; i < STREAMS_EACH; i++) {
        if (a->by[i].stream == stream)
            return &a->by[i];
        if (is_over(&a->by[i]))
            place = &a->by[i];
    }
    if (place)
        *place = (struct touch){.stream = stream};
    return place;
}

static void widen(struct span *s, uint64_t done, uint64_t epoch, uint64_t lo, uint64_t hi)
{
    if (s->epoch <= done || ES_BROKEN(SPAN)) {
        *s = (struct span){epoch, lo, hi};
        return;
    }
    s->epoch = epoch > s->epoch ? epoch : s->epoch;
    s->lo = lo < s->lo ? lo : s->lo;
    s->hi = hi > s->hi ? hi : s->hi;
}

static void note(struct allocation *a, unsigned stream, uint64_t epoch, uint64_t lo, uint64_t hi,
                 bool write)
{
    struct touch *t = by(a, stream);

    if (!t)
        a->crowded = true;
    else
        widen(write ? &t->writes : &t->reads, done_of(stream), epoch, lo, hi);
}

/* For the log: memory that was last used on another of the program's streams. */
static void hand_off(struct es_tick from, const struct es_stream *s, uint64_t epoch, uint64_t bytes)
{
    struct es_handoff h = {.from = from, .to = {es_stream_number(s), epoch}, .bytes = bytes};
    enum es_needless order;

    if (!from.epoch || from.stream == h.to.stream || from.stream == ES_STREAM_SIDE ||
        h.to.stream == ES_STREAM_SIDE)
        return;
    order = es_event_order(from, s);
    h.verdict = order == ES_COMPLETED ? ES_VERDICT_COMPLETED
                : order == ES_ORDERED ? ES_VERDICT_ORDERED
                                      : ES_VERDICT_OTHERWISE;
    es_handoff_add(&h);
}

/* Returns who touched the allocation before. pre: lock is held. */
static struct es_tick touch(struct allocation *a, const struct es_stream *s, uint64_t epoch,
                            uint64_t start, uint64_t bytes, bool write)
{
    struct es_tick last = a->last;

    if (ES_BROKEN(TOUCH))
        return (struct es_tick){0};
    note(a, es_stream_number(s), epoch, start, start + bytes, write);
    a->last = (struct es_tick){es_stream_number(s), epoch};
    return last;
}

bool es_touch(const struct es_stream *s, uint64_t epoch, uint64_t start, uint64_t bytes, bool write)
{
    struct es_tick last = {0};
    struct allocation *a;

    pthread_mutex_lock(&lock);
    a = find_around(start, bytes);
    if (a)
        last = touch(a, s, epoch, start, bytes, write);
    pthread_mutex_unlock(&lock);
    hand_off(last, s, epoch, bytes);
    return a != NULL;
}

unsigned es_touch_all(const struct es_stream *s, uint64_t epoch, uint64_t *addresses, unsigned n)
{
    struct es_tick last[ES_TOUCH_MOST];
    uint64_t bytes[ES_TOUCH_MOST];
    unsigned found = 0, strangers = 0;

    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < n; i++) {
        struct allocation *a = find_at(addresses[i]);

        if (a) {
            bytes[found] = a->end - a->start;
            last[found++] = touch(a, s, epoch, a->start, a->end - a->start, true);
        } else {
            addresses[strangers++] = addresses[i];
        }
    }
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < found; i++)
        hand_off(last[i], s, epoch, bytes[i]);
    return strangers;
}

static bool meets(const struct span *s, uint64_t done, uint64_t start, uint64_t bytes)
{
    return s->epoch > done && s->lo < start + bytes && start < s->hi;
}

/* The newest epoch of a stream that may touch the range; 0: none. */
static uint64_t newest(const struct allocation *a, struct es_stream *s, uint64_t start,
                       uint64_t bytes, bool only_writes)
{
    uint64_t done = atomic_load(&s->done), opaque = atomic_load(&s->opaque), epoch = 0;

    if (opaque > done && atomic_load(&s->opaque_at) >= a->born && !ES_BROKEN(FRESH))
        epoch = opaque;
    for (unsigned i = 0; i < STREAMS_EACH; i++) {
        const struct touch *t = &a->by[i];

        if (t->stream != es_stream_number(s))
            continue;
        if (meets(&t->writes, done, start, bytes) && t->writes.epoch > epoch)
            epoch = t->writes.epoch;
        if (!only_writes && meets(&t->reads, done, start, bytes) && t->reads.epoch > epoch)
            epoch = t->reads.epoch;
    }
    return epoch;
}

static bool is_any_busy(void)
{
    struct es_stream *s;

    for (unsigned i = 0; (s = es_stream_used(i)); i++)
        if (es_stream_is_busy(s))
            return true;
    return false;
}

int es_touch_who(uint64_t start, uint64_t bytes, bool only_writes, struct es_tick who[ES_TOUCHERS])
{
    struct allocation *a;
    struct es_stream *s;
    int count = 0;

    pthread_mutex_lock(&lock);
    a = find_around(start, bytes);
    if (a && a->crowded)
        a->crowded = is_any_busy();
    if (!a || a->crowded)
        count = -1;
    for (unsigned i = 0; count >= 0 && (s = es_stream_used(i)); i++) {
        uint64_t epoch = newest(a, s, start, bytes, only_writes);

        if (epoch && count == ES_TOUCHERS)
            count = -1;
        else if (epoch)
            who[count++] = (struct es_tick){es_stream_number(s), epoch};
    }
    pthread_mutex_unlock(&lock);
    return count;
}

void es_touch_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

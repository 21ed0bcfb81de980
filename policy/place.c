/* SPDX-License-Identifier: MIT */
/* Where a copy goes. The rules stand in the order of their reasons: first what forbids a rewrite at
 * all (law 6: when unsure, native), then what makes it pointless. */
#include "policy/place.h"

/* From so many on staging wins in both directions. */
enum { ES_MANY_THREADS = 4 };

const char *es_reason_text(enum es_reason why)
{
    static const char *const text[] = {
#define X(id, t) [ES_WHY_##id] = t,
        ES_REASONS(X)
#undef X
    };
    return why < ES_REASON_COUNT ? text[why] : "?";
}

uint64_t es_crossover(enum es_direction dir, unsigned threads)
{
    const uint64_t MiB = 1 << 20;

    /* One thread copies at 6.5 to 8.9 GB/s: native beats that in D2H at every size, and in H2D as
     * long as its source sits in the cache. */
    if (threads < 2)
        return dir == ES_H2D ? 64 * MiB : UINT64_MAX;
    if (threads < ES_MANY_THREADS)
        return dir == ES_H2D ? 32 * MiB : UINT64_MAX;
    return 4 * MiB;
}

enum es_reason es_place_early(enum es_direction dir, uint64_t bytes, unsigned threads,
                              const struct es_options *o)
{
    if (o->mode != ES_MODE_REWRITE)
        return ES_WHY_MODE;
    if (bytes == 0)
        return ES_WHY_SMALL;
    if (o->min_bytes)
        return bytes < o->min_bytes ? ES_WHY_BELOW_MIN : ES_WHY_NONE;
    if (bytes < es_crossover(dir, threads))
        return bytes < es_crossover(dir, ES_MANY_THREADS) ? ES_WHY_SMALL : ES_WHY_FEW_THREADS;
    return ES_WHY_NONE;
}

bool es_place_may_leave(const struct es_copy_facts *f, const struct es_options *o)
{
    return o->mode == ES_MODE_REWRITE && o->side && !f->async && f->legacy && f->bytes > 0 &&
           (f->dir == ES_H2D || o->defer == ES_DEFER_SAFE);
}

/* There must be something to leave behind, and nobody who can tell. */
static bool leaves(const struct es_copy_facts *f, const struct es_options *o)
{
    return es_place_may_leave(f, o) && f->clear && f->behind && !f->observable;
}

static enum es_reason why_native(const struct es_copy_facts *f, const struct es_options *o)
{
    enum es_reason early = es_place_early(f->dir, f->bytes, f->threads, o);

    /* Behind a queue no copy is too small. */
    if (early != ES_WHY_NONE && !leaves(f, o))
        return early;
    if (f->unfit)
        return ES_WHY_UNFIT;
    if (f->capturing)
        return ES_WHY_CAPTURE;
    if (f->launch_blocking)
        return ES_WHY_LAUNCH_BLOCKING;
    if (f->host == ES_MEM_PINNED)
        return ES_WHY_PINNED;
    if (f->host == ES_MEM_MANAGED || f->device == ES_MEM_MANAGED)
        return ES_WHY_MANAGED;
    if (f->host != ES_MEM_PAGEABLE)
        return ES_WHY_NOT_PAGEABLE;
    if (f->device == ES_MEM_PEER)
        return ES_WHY_PEER;
    if (f->device == ES_MEM_FOREIGN)
        return ES_WHY_FOREIGN;
    if (f->device != ES_MEM_DEVICE)
        return ES_WHY_UNKNOWN;
    if (f->sync_memops)
        return ES_WHY_SYNC_MEMOPS;
    if (f->several)
        return ES_WHY_SEVERAL;
    if (f->rewritten >= o->limit)
        return ES_WHY_LIMIT;
    /* Pinning and starting threads takes as long as copying some 64 MiB natively. Waiting until
     * that much was copied bounds the loss of a program that ends soon: at most what it would have
     * saved had it gone on (the ski-rental rule). */
    if (o->warmup > f->bytes && f->eligible < o->warmup - f->bytes)
        return ES_WHY_WARMUP;
    return ES_WHY_NONE;
}

struct es_place es_place(const struct es_copy_facts *f, const struct es_options *o)
{
    enum es_reason why = why_native(f, o);

    if (why != ES_WHY_NONE)
        return (struct es_place){ES_NATIVE, why, false};
    if (leaves(f, o))
        return (struct es_place){ES_SIDE, why, o->defer == ES_DEFER_SAFE};
    return (struct es_place){ES_HOME, why, false};
}

/* SPDX-License-Identifier: MIT */
#include "shim/stream.h"

#include <stddef.h>

#include "shim/mutant.h"

/* Open addressing behind the four fixed records. GONE: destroyed; look-ups go on behind. */
enum { PROBES = 64 };
#define GONE ((CUstream)-3) /* not ES_EVERY_STREAM */
static struct es_stream streams[ES_STREAMS] = {
    [ES_STREAM_LEGACY] = {.handle = CU_STREAM_LEGACY},
    [ES_STREAM_PER_THREAD] = {.handle = CU_STREAM_PER_THREAD},
};
static _Atomic uint16_t used[ES_STREAMS - ES_STREAM_FIRST]; /* their numbers, as they came */
static atomic_uint used_count;
static _Atomic uint64_t time_now = 1;
static atomic_flag syncing = ATOMIC_FLAG_INIT;

/* Nothing that was ever said of it is left to come true. */
static bool is_over(struct es_stream *s)
{
    uint64_t done = atomic_load(&s->done);

    return atomic_load(&s->last) <= done && atomic_load(&s->closed) <= done;
}

static struct es_stream *probe(CUstream handle, unsigned i)
{
    unsigned at = (unsigned)((uintptr_t)handle >> 4) * 0x9E3779B1u >> 8;

    return &streams[ES_STREAM_FIRST + (at + i) % (ES_STREAMS - ES_STREAM_FIRST)];
}

struct es_stream *es_stream_of(CUstream handle)
{
    if (handle == CU_STREAM_LEGACY)
        return &streams[ES_STREAM_LEGACY];
    if (handle == CU_STREAM_PER_THREAD)
        return &streams[ES_STREAM_PER_THREAD];
    for (unsigned i = 0; i < PROBES; i++) {
        struct es_stream *s = probe(handle, i);
        CUstream held = atomic_load_explicit(&s->handle, memory_order_acquire);

        if (held == handle)
            return s;
        if (!held)
            break;
    }
    return &streams[ES_STREAM_OTHERS];
}

struct es_stream *es_stream_at(unsigned number)
{
    return &streams[number];
}

unsigned es_stream_number(const struct es_stream *s)
{
    return (unsigned)(s - streams);
}

bool es_stream_is_one(const struct es_stream *s, bool one_thread, bool one_context)
{
    unsigned number = es_stream_number(s);

    if (number == ES_STREAM_LEGACY)
        return one_context;
    if (number == ES_STREAM_PER_THREAD)
        return one_context && one_thread;
    return number != ES_STREAM_OTHERS;
}

bool es_stream_has_handle(const struct es_stream *s)
{
    CUstream handle = atomic_load(&s->handle);

    return handle && handle != GONE;
}

void es_stream_made_side(CUstream handle)
{
    atomic_store(&streams[ES_STREAM_SIDE].handle, handle);
    atomic_store(&streams[ES_STREAM_SIDE].nonblocking, true);
}

bool es_stream_is_nonblocking(CUstream handle)
{
    return atomic_load_explicit(&es_stream_of(handle)->nonblocking, memory_order_relaxed);
}

bool es_stream_is_busy(struct es_stream *s)
{
    return atomic_load(&s->last) > atomic_load(&s->done);
}

struct es_stream *es_stream_made(CUstream handle, unsigned flags)
{
    es_stream_forget(handle); /* its end may have come with its context's */
    for (unsigned i = 0; i < PROBES; i++) {
        struct es_stream *s = probe(handle, i);
        CUstream held = atomic_load(&s->handle);

        /* What is known of a stream by number may be about the one before, as long as that runs. */
        if ((held && held != GONE) || (!is_over(s) && !ES_BROKEN(REUSED)))
            continue;
        if (!atomic_compare_exchange_strong(&s->handle, &held, handle))
            continue;
        atomic_store(&s->nonblocking, flags & CU_STREAM_NON_BLOCKING);
        if (!held)
            atomic_store(&used[atomic_fetch_add(&used_count, 1)], (uint16_t)es_stream_number(s));
        return s;
    }
    return &streams[ES_STREAM_OTHERS];
}

void es_stream_forget(CUstream handle)
{
    struct es_stream *s = es_stream_of(handle);

    if (es_stream_is_made(s) && !ES_BROKEN(FORGET)) {
        atomic_store(&s->nonblocking, false);
        atomic_store(&s->handle, GONE);
    }
}

void es_stream_forget_all(void)
{
    struct es_stream *s;

    for (unsigned i = ES_STREAM_SIDE; (s = es_stream_used(i)); i++) {
        CUstream handle = atomic_load(&s->handle);

        if (handle && handle != GONE) {
            atomic_store(&s->nonblocking, false);
            atomic_store(&s->handle, GONE);
        }
    }
}

static void raise_to(_Atomic uint64_t *value, uint64_t to)
{
    uint64_t was = atomic_load_explicit(value, memory_order_relaxed);

    while (was < to && !atomic_compare_exchange_weak(value, &was, to))
        ;
}

uint64_t es_stream_given(struct es_stream *s, unsigned effects)
{
    uint64_t epoch = es_stream_open_epoch(s);

    if (ES_BROKEN(STAMP))
        return epoch;
    atomic_fetch_add_explicit(&s->given, 1, memory_order_relaxed);
    raise_to(&s->last, epoch);
    if (effects & ES_OPAQUE) {
        raise_to(&s->opaque_at, atomic_load(&time_now));
        raise_to(&s->opaque, epoch);
    }
    if (effects & ES_OBSERVABLE)
        raise_to(&s->observable, epoch);
    if (effects & ES_LONG)
        raise_to(&s->slow, epoch);
    return epoch;
}

uint64_t es_stream_close(struct es_stream *s)
{
    return atomic_fetch_add(&s->closed, 1) + 1;
}

void es_stream_done(struct es_stream *s, uint64_t epoch, uint64_t given)
{
    raise_to(&s->done, epoch);
    raise_to(&s->over, given);
}

bool es_stream_sync_begin(void)
{
    struct es_stream *s;

    if (atomic_flag_test_and_set(&syncing))
        return false;
    for (unsigned i = 0; (s = es_stream_used(i)); i++) {
        s->given_at_sync = atomic_load(&s->given);
        s->at_sync = es_stream_close(s);
    }
    return true;
}

void es_stream_sync_end(bool done)
{
    struct es_stream *s;

    for (unsigned i = 0; done && (s = es_stream_used(i)); i++)
        es_stream_done(s, s->at_sync, s->given_at_sync);
    atomic_flag_clear(&syncing);
}

struct es_stream *es_stream_used(unsigned i)
{
    if (i < ES_STREAM_FIRST)
        return &streams[i];
    i -= ES_STREAM_FIRST;
    return i < atomic_load(&used_count) ? &streams[atomic_load(&used[i])] : NULL;
}

uint64_t es_stream_birth(void)
{
    return atomic_fetch_add(&time_now, 1) + 1;
}

void es_stream_after_fork(void)
{
    atomic_flag_clear(&syncing);
}

/* SPDX-License-Identifier: MIT */
#include "shim/event.h"

#include <stdatomic.h>
#include <stddef.h>

#include "shim/capture.h"
#include "shim/mutant.h"
#include "shim/turn.h"
#include "shim/unknown.h"

/* state: how often it was recorded, how many records are under way, and two flags. */
enum { SLOTS = 8192, PROBES = 16 };
enum { COMPLETE = 1, NEVER = 2, UNDER_WAY = 1 << 8, RECORD = 1 << 16 };
static struct slot {
    _Atomic(CUevent) event;
    _Atomic uint64_t state;
} slots[SLOTS];
#define DROPPED ((CUevent)-1)

static atomic_bool on;

void es_event_configure(bool yes)
{
    atomic_store(&on, yes);
}

void es_event_stop(void)
{
    if (atomic_load_explicit(&on, memory_order_relaxed))
        atomic_store(&on, false);
}

static struct slot *slot_of(CUevent event, unsigned i)
{
    uint64_t hash = ((uintptr_t)event >> 4) * 0x9E3779B97F4A7C15u >> 40;

    return &slots[(hash + i) % SLOTS];
}

static struct slot *find(CUevent event)
{
    for (unsigned i = 0; event && i < PROBES; i++) {
        struct slot *s = slot_of(event, i);
        CUevent held = atomic_load_explicit(&s->event, memory_order_acquire);

        if (held == event)
            return s;
        if (!held)
            break;
    }
    return NULL;
}

void es_event_made(CUevent event, unsigned flags)
{
    for (unsigned i = 0; !(flags & CU_EVENT_INTERPROCESS) && i < PROBES; i++) {
        struct slot *s = slot_of(event, i);
        CUevent held = atomic_load(&s->event);

        if (held && held != DROPPED)
            continue;
        atomic_fetch_add(&s->state, RECORD); /* whatever was learnt of the one before */
        atomic_fetch_and(&s->state, ~(uint64_t)(COMPLETE | NEVER));
        if (atomic_compare_exchange_strong(&s->event, &held, event))
            return;
    }
}

void es_event_gone(CUevent event)
{
    struct slot *s = find(event);

    if (s)
        atomic_store(&s->event, DROPPED);
}

void es_event_record_begin(CUevent event, bool plain)
{
    struct slot *s = find(event);
    uint64_t was, will;

    if (!s)
        return;
    was = atomic_load(&s->state);
    do {
        will = was + RECORD + UNDER_WAY;
        if (!ES_BROKEN(RECORDED))
            will &= ~(uint64_t)COMPLETE;
        if (!plain || es_capture_open())
            will |= NEVER;
    } while (!atomic_compare_exchange_weak(&s->state, &was, will));
}

void es_event_record_end(CUevent event)
{
    struct slot *s = find(event);

    if (s)
        atomic_fetch_sub(&s->state, UNDER_WAY);
}

static bool is_under_way(uint64_t state)
{
    return (state & (RECORD - 1)) >= UNDER_WAY;
}

uint64_t es_event_ask(CUevent event)
{
    struct slot *s = find(event);

    return s ? atomic_load(&s->state) : UNDER_WAY;
}

void es_event_complete(CUevent event, uint64_t asked)
{
    struct slot *s = find(event);

    if (s && !is_under_way(asked))
        atomic_compare_exchange_strong(&s->state, &asked, asked | COMPLETE);
}

bool es_event_needs_no_wait(CUevent event, CUstream stream)
{
    struct slot *s;
    uint64_t state;

    /* A stream that is known, so that a wrong one is the driver's to refuse. In a capture a wait is
     * a fork, whatever it waits for. */
    if (!atomic_load_explicit(&on, memory_order_relaxed) || !es_turn_is_nonblocking(stream) ||
        (es_capture_open() && !ES_BROKEN(FORK)) || es_unknown_any())
        return false;
    s = find(event);
    if (!s)
        return false;
    state = atomic_load(&s->state);
    return (state & COMPLETE) && (!(state & NEVER) || ES_BROKEN(FORK)) && !is_under_way(state);
}

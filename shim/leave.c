/* SPDX-License-Identifier: MIT */
#include "shim/leave.h"

#include <stdlib.h>

#include "shim/count.h"
#include "shim/debt.h"
#include "shim/event.h"
#include "shim/mutant.h"
#include "shim/stream.h"
#include "shim/touch.h"
#include "shim/turn.h"
#include "shim/unknown.h"

static const struct es_port *port;
static bool several;       /* threads may give work */
static bool shared_queues; /* streams may wait for each other in the hardware */

void es_leave_configure(const struct es_port *p, enum es_kernels kernels)
{
    const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");

    port = p;
    several = kernels == ES_KERNELS_ARGS;
    shared_queues = connections && atoi(connections) < 8;
}

bool es_leave_is_threaded(void)
{
    return es_count_submitters() > 1 || !es_turn_alone();
}

/* A stream memory operation of another thread may end what natively it is not held behind: what
 * spins on device memory (tests/hardware/README.md). Work that native holds cannot. */
bool es_leave_is_ever(void)
{
    return !es_leave_is_threaded() || (several && !es_count_total(ES_SEEN_MEMOP));
}

/* Whether copies may leave their places in this process, here and now: our records hold for one
 * context, and the calls we know; and streams must not wait for each other in the hardware. Of what
 * others may do behind our backs it asks the whole past: too careful, never wrong. */
bool es_leave_is_followed(void)
{
    static const enum es_seen groups[] = {ES_SEEN_CONTEXT_MADE, ES_SEEN_FOREIGN, ES_SEEN_EXTERNAL,
                                          ES_SEEN_CAPTURE};

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (es_count_total(groups[i]))
            return false;
    return es_leave_is_ever() && !es_unknown_any() && !shared_queues && port->context_id &&
           port->past_us && !port->past_us();
}

/* Whether something was queued that a copy might not want to wait for. */
bool es_leave_is_worth(void)
{
    struct es_stream *s;

    for (unsigned i = 0; (s = es_stream_used(i)); i++)
        if (atomic_load_explicit(&s->slow, memory_order_relaxed) >
            atomic_load_explicit(&s->done, memory_order_relaxed))
            return true;
    return false;
}

/* Whether a synchronous copy on the legacy stream natively waits for a stream. */
static bool is_waited_for(const struct es_stream *s)
{
    unsigned number = es_stream_number(s);

    return number == ES_STREAM_LEGACY || number == ES_STREAM_PER_THREAD ||
           (es_stream_is_made(s) && !s->nonblocking);
}

/* Whether an event of our own may tell when a stream has done what it was given so far. */
static bool has_tail(const struct es_stream *s)
{
    return es_stream_is_made(s) && (is_waited_for(s) || ES_BROKEN(WAITED_FOR)) &&
           es_stream_has_handle(s);
}

/* Whether there is anything to leave behind on a stream that is not one of these. */
static bool is_another_at_work(const struct es_tick *who, int n)
{
    struct es_stream *s;

    for (unsigned i = 0; (s = es_stream_used(i)); i++) {
        bool another = is_waited_for(s) && atomic_load(&s->slow) > atomic_load(&s->done);

        for (int k = 0; k < n; k++)
            another = another && who[k].stream != es_stream_number(s);
        if (another)
            return true;
    }
    return false;
}

/* Who may still touch the memory in a way that such a copy has to come after, as es_touch_who. What
 * a stream of our own does is in order there. */
static int who_is_before(enum es_direction dir, CUdeviceptr device, uint64_t bytes,
                         struct es_tick who[ES_TOUCHERS])
{
    int n = es_touch_who(device, bytes, dir == ES_D2H, who), others = 0;

    for (int i = 0; i < n; i++)
        if (who[i].stream != ES_STREAM_SIDE)
            who[others++] = who[i];
    return n < 0 ? n : others;
}

bool es_leave_is_clear(enum es_direction dir, CUdeviceptr device, uint64_t bytes)
{
    struct es_tick who[ES_TOUCHERS];
    int n = who_is_before(dir, device, bytes, who);
    int tails = 0;

    if (dir == ES_H2D)
        return n == 0;
    /* What follows an event on its stream is left behind; of a stream without one, nothing is. */
    for (int i = 0; i < n; i++) {
        if (es_event_covers(who[i]))
            continue;
        if (!has_tail(es_stream_at(who[i].stream)))
            return false;
        who[tails++] = who[i];
    }
    return n >= 0 && (tails == 0 || is_another_at_work(who, tails));
}

/* Whether anything that is still queued can be seen by others than the program's own streams. */
static bool is_observable(void)
{
    struct es_stream *s;

    for (unsigned i = 0; (s = es_stream_used(i)) && !ES_BROKEN(OBSERVABLE); i++)
        if (atomic_load(&s->observable) > atomic_load(&s->done))
            return true;
    return false;
}

/* The handle of the per-thread stream asks about one of several, where there are several threads.
 */
static bool is_askable(const struct es_stream *s)
{
    return es_stream_has_handle(s) &&
           (es_stream_number(s) != ES_STREAM_PER_THREAD || es_turn_alone());
}

/* Asks the streams that may be at work whether they are. pre: they are held, so that none is
 * destroyed, or begins a capture, which a question would break. */
static void ask_streams(void)
{
    enum { MOST = 32 };
    struct es_stream *s;
    unsigned asked = 0;

    for (unsigned i = 0; (s = es_stream_used(i)) && asked < MOST; i++) {
        CUstream handle = atomic_load(&s->handle);
        uint64_t epoch, given = atomic_load(&s->given);

        if (!es_stream_is_busy(s) || !is_askable(s))
            continue;
        asked++;
        epoch = es_stream_close(s);
        if (port->stream_query(handle) == CUDA_SUCCESS)
            es_stream_done(s, epoch, given);
    }
}

/* The device may access pageable memory (HMM, ATS): then any kernel may, and others see it. */
static bool reaches_pageable(void)
{
    CUdevice device;
    int pageable = 1;

    return port->context_device(&device) != CUDA_SUCCESS ||
           port->device_attribute(&pageable, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device) !=
               CUDA_SUCCESS ||
           pageable;
}

/* pre: the streams are held. */
static void look_around(CUdeviceptr device, struct es_copy_facts *f)
{
    f->behind =
        es_leave_is_followed() && port->stream_query(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY;
    if (!f->behind)
        return;
    if (!f->clear || is_observable())
        ask_streams();
    f->clear = es_leave_is_clear(f->dir, device, f->bytes);
    f->observable = is_observable() || reaches_pageable();
}

void es_leave_look_around(CUdeviceptr device, struct es_copy_facts *f)
{
    f->behind = false;
    if (!es_turn_hold(ES_EVERY_STREAM))
        return;
    look_around(device, f);
    es_turn_release();
}

bool es_leave_is_free(enum es_direction dir, CUdeviceptr device, uint64_t bytes)
{
    struct es_tick who[ES_TOUCHERS];

    return ES_BROKEN(ASK_AGAIN) ||
           (es_leave_is_followed() && who_is_before(dir, device, bytes, who) == 0 &&
            !is_observable());
}

/* Makes the side stream wait for all that a stream was given so far: sets *t and *given. The
 * streams are held, so that none is destroyed, and all that was submitted is noted. */
static bool wait_for_tail(struct es_tick *t, uint64_t *given)
{
    struct es_stream *s = es_stream_at(t->stream);
    bool made = false;

    if (!es_turn_hold(ES_EVERY_STREAM))
        return false;
    if (has_tail(s) && es_leave_is_followed()) {
        *given = atomic_load(&s->given);
        t->epoch = es_stream_close(s);
        made = es_debt_side_waits_for(atomic_load(&s->handle));
    }
    es_turn_release();
    return made;
}

bool es_leave_wait(CUstream own, enum es_direction dir, CUdeviceptr device, uint64_t bytes,
                   struct es_handoff *h)
{
    struct es_tick who[ES_TOUCHERS];
    uint64_t given[ES_TOUCHERS];
    int n = who_is_before(dir, device, bytes, who);
    struct es_stream *s;

    h->verdict = ES_VERDICT_FRESH;
    for (unsigned i = 0; (s = es_stream_used(i)); i++)
        if (is_waited_for(s))
            h->left += atomic_load(&s->given) - atomic_load(&s->over);
    if (n <= 0 || dir == ES_H2D)
        return n == 0;
    for (int i = 0; i < n; i++) {
        bool by_event = es_event_make_wait(port, own, &who[i], &given[i]);

        if (!by_event && !wait_for_tail(&who[i], &given[i]))
            return false;
        s = es_stream_at(who[i].stream);
        if (is_waited_for(s) && given[i] > atomic_load(&s->over))
            h->left -= given[i] - atomic_load(&s->over);
        if (h->verdict != ES_VERDICT_TAIL)
            h->verdict = by_event ? ES_VERDICT_EVENT : ES_VERDICT_TAIL;
        h->from = who[i];
    }
    if (port->stream_wait(own) != CUDA_SUCCESS)
        return false;
    for (int i = 0; i < n; i++)
        es_stream_done(es_stream_at(who[i].stream), who[i].epoch, given[i]);
    return true;
}

/* SPDX-License-Identifier: MIT */
#include "shim/leave.h"

#include <stdlib.h>

#include "shim/count.h"
#include "shim/event.h"
#include "shim/mutant.h"
#include "shim/stream.h"
#include "shim/touch.h"
#include "shim/turn.h"
#include "shim/unknown.h"

static const struct es_port *port;
static bool shared_queues; /* streams may wait for each other in the hardware */

void es_leave_configure(const struct es_port *p)
{
    const char *connections = getenv("CUDA_DEVICE_MAX_CONNECTIONS");

    port = p;
    shared_queues = connections && atoi(connections) < 8;
}

/* Whether copies may leave their places in this process, here and now: our records hold for one
 * thread, one context, and the calls we know; and streams must not wait for each other in the
 * hardware. Of what others may do behind our backs it asks the whole past: too careful, never
 * wrong. */
bool es_leave_is_followed(void)
{
    static const enum es_seen groups[] = {ES_SEEN_CONTEXT_MADE, ES_SEEN_FOREIGN, ES_SEEN_EXTERNAL,
                                          ES_SEEN_CAPTURE};

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (es_count_total(groups[i]))
            return false;
    return es_count_submitters() == 1 && es_turn_alone() && !es_unknown_any() && !shared_queues &&
           port->context_id && port->past_us && !port->past_us();
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

/* What a stream of our own does is in order there. */
bool es_leave_is_clear(enum es_direction dir, CUdeviceptr device, uint64_t bytes)
{
    struct es_tick who[ES_TOUCHERS];
    int n = es_touch_who(device, bytes, dir == ES_D2H, who);

    for (int i = 0; i < n; i++)
        if (who[i].stream != ES_STREAM_SIDE && (dir == ES_H2D || !es_event_covers(who[i])))
            return false;
    return n >= 0;
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

/* Asks the streams that may be at work whether they are. */
static void ask_streams(void)
{
    enum { MOST = 32 };
    struct es_stream *s;
    unsigned asked = 0;

    for (unsigned i = 0; (s = es_stream_used(i)) && asked < MOST; i++) {
        CUstream handle = atomic_load(&s->handle);
        uint64_t epoch, given = atomic_load(&s->given);

        if (!es_stream_is_busy(s) || !es_stream_has_handle(s))
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

void es_leave_look_around(CUdeviceptr device, struct es_copy_facts *f)
{
    f->behind = port->stream_query(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY;
    if (!f->behind)
        return;
    if (!f->clear || is_observable())
        ask_streams();
    f->clear = es_leave_is_clear(f->dir, device, f->bytes);
    f->observable = is_observable() || reaches_pageable();
}

/* Whether a synchronous copy on the legacy stream natively waits for a stream. */
static bool is_waited_for(const struct es_stream *s)
{
    unsigned number = es_stream_number(s);

    return number == ES_STREAM_LEGACY || number == ES_STREAM_PER_THREAD ||
           (es_stream_is_made(s) && !s->nonblocking);
}

bool es_leave_wait(CUstream own, enum es_direction dir, CUdeviceptr device, uint64_t bytes,
                   struct es_handoff *h)
{
    struct es_tick who[ES_TOUCHERS];
    int n = es_touch_who(device, bytes, dir == ES_D2H, who);
    struct es_stream *s;

    h->verdict = ES_VERDICT_FRESH;
    for (unsigned i = 0; (s = es_stream_used(i)); i++)
        if (is_waited_for(s))
            h->left += atomic_load(&s->given) - atomic_load(&s->over);
    for (int i = 0; i < n; i++) {
        uint64_t given;

        if (who[i].stream == ES_STREAM_SIDE)
            continue;
        if (dir == ES_H2D || !es_event_make_wait(port, own, who[i], &given))
            return false;
        s = es_stream_at(who[i].stream);
        if (is_waited_for(s) && given > atomic_load(&s->over))
            h->left -= given - atomic_load(&s->over);
        h->verdict = ES_VERDICT_EVENT;
        h->from = who[i];
    }
    return n >= 0;
}

/* SPDX-License-Identifier: MIT */
#include "shim/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "shim/capture.h"
#include "shim/count.h"
#include "shim/mutant.h"
#include "shim/turn.h"
#include "shim/unknown.h"

enum { SLOTS = 8192, PROBES = 16, MARKS = 8 };
#define DROPPED ((CUevent)-1)

struct event {
    CUevent handle;        /* NULL: never used; DROPPED: destroyed */
    struct es_clock *base; /* what its stream had waited for */
    struct es_tick tick;   /* what its stream had been given; n 0: not known */
    uint64_t given;        /* operations, then */
    unsigned record;       /* how many there were */
    uint16_t under_way;    /* records */
    bool torn;             /* several were at once: which was the last? */
    bool never;            /* it does not tell any more */
    bool complete, timing;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct event events[SLOTS];
static struct followed {
    struct es_clock *base;  /* what it waited for */
    atomic_bool has_waited; /* that is: it may be read without the lock */
    CUevent marks[MARKS];   /* recorded on it, the newest before `next` */
    unsigned next;
    uint16_t under_way; /* records */
    bool torn;          /* several were at once: which came first? */
} followed[ES_STREAMS];

static atomic_bool on, elide;

void es_event_configure(bool yes, bool leave_out)
{
    atomic_store(&on, yes);
    atomic_store(&elide, yes && leave_out);
}

void es_event_stop(void)
{
    if (atomic_load_explicit(&on, memory_order_relaxed))
        es_event_configure(false, false);
}

static bool is_on(void)
{
    return atomic_load_explicit(&on, memory_order_relaxed);
}

static struct event *slot_of(CUevent event, unsigned i)
{
    uint64_t hash = ((uintptr_t)event >> 4) * 0x9E3779B97F4A7C15u >> 40;

    return &events[(hash + i) % SLOTS];
}

/* pre: lock is held. */
static struct event *find(CUevent event)
{
    for (unsigned i = 0; event && i < PROBES; i++) {
        struct event *e = slot_of(event, i);

        if (e->handle == event)
            return e;
        if (!e->handle)
            break;
    }
    return NULL;
}

static void forget_what_it_covers(struct event *e)
{
    es_clock_drop(e->base);
    e->base = NULL;
    e->tick = (struct es_tick){0};
    e->complete = false;
}

void es_event_made(CUevent event, unsigned flags)
{
    struct event *e = NULL;

    if (!is_on())
        return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; !(flags & CU_EVENT_INTERPROCESS) && !e && i < PROBES; i++) {
        struct event *at = slot_of(event, i);

        if (!at->handle || at->handle == DROPPED || at->handle == event)
            e = at;
    }
    if (e) {
        forget_what_it_covers(e);
        *e = (struct event){
            .handle = event, .record = e->record + 1, .timing = !(flags & CU_EVENT_DISABLE_TIMING)};
    }
    pthread_mutex_unlock(&lock);
}

void es_event_gone(CUevent event)
{
    struct event *e;

    if (!is_on())
        return;
    pthread_mutex_lock(&lock);
    e = find(event);
    if (e) {
        forget_what_it_covers(e);
        e->handle = DROPPED;
    }
    pthread_mutex_unlock(&lock);
}

/* base: held by the caller, who gives it away. pre: lock is held. */
static void set_base(struct followed *f, struct es_clock *base)
{
    es_clock_drop(f->base);
    f->base = base;
    atomic_store_explicit(&f->has_waited, base != NULL, memory_order_relaxed);
}

void es_event_stream_made(const struct es_stream *s)
{
    unsigned number = es_stream_number(s);

    pthread_mutex_lock(&lock);
    set_base(&followed[number], NULL);
    for (unsigned i = 0; i < MARKS; i++)
        followed[number].marks[i] = NULL;
    pthread_mutex_unlock(&lock);
}

/* Asked after a number was read: then what was read is of the threads and contexts it asks about.
 */
static bool is_one(const struct es_stream *s)
{
    return es_stream_is_one(s, false, false) ||
           es_stream_is_one(s, es_turn_alone(), es_count_total(ES_SEEN_CONTEXT_MADE) == 0);
}

/* Closes a stream's epoch: what it was given so far. */
static struct es_tick so_far(struct es_stream *s)
{
    struct es_tick t = {es_stream_number(s), es_stream_close(s)};

    return is_one(s) ? t : (struct es_tick){0};
}

static bool is_done(struct es_tick t)
{
    return atomic_load_explicit(&es_stream_at(t.stream)->done, memory_order_relaxed) >= t.epoch;
}

void es_event_record_begin(CUevent event, CUstream stream, bool plain)
{
    struct es_stream *s = es_stream_of(stream);
    struct followed *on_it = &followed[es_stream_number(s)];
    struct event *e;

    if (!is_on())
        return;
    pthread_mutex_lock(&lock);
    on_it->torn |= on_it->under_way++ > 0;
    e = find(event);
    if (e) {
        e->record++;
        e->torn |= e->under_way++ > 0;
        if (!ES_BROKEN(RECORDED))
            forget_what_it_covers(e);
        if (!plain || es_capture_open())
            e->never = true;
        else
            e->tick = so_far(s);
        e->given = atomic_load(&s->given);
        if (e->tick.epoch && !e->base)
            e->base = es_clock_hold(on_it->base);
    }
    pthread_mutex_unlock(&lock);
}

/* Whether its epoch is the last that was closed: else somebody waited for the stream, or asked
 * about it, while the record was under way, and may have found it done without this record. */
static bool is_the_last(const struct event *e)
{
    return !e->tick.epoch || ES_BROKEN(AT_ONCE) ||
           atomic_load(&es_stream_at(e->tick.stream)->closed) == e->tick.epoch;
}

bool es_event_record_end(CUevent event, CUstream stream, bool recorded)
{
    struct followed *on_it = &followed[es_stream_number(es_stream_of(stream))];
    struct event *e;
    bool observable;

    if (!is_on())
        return true;
    pthread_mutex_lock(&lock);
    e = find(event);
    if (e) {
        e->under_way -= e->under_way > 0;
        e->torn |= !recorded || on_it->torn || !is_the_last(e);
        if (e->torn)
            forget_what_it_covers(e);
        else if (e->tick.epoch && !e->never)
            on_it->marks[on_it->next++ % MARKS] = event;
        if (e->under_way == 0)
            e->torn = false;
    }
    on_it->under_way -= on_it->under_way > 0;
    if (on_it->under_way == 0)
        on_it->torn = false;
    observable = !e || e->never || e->timing;
    pthread_mutex_unlock(&lock);
    return observable;
}

/* What is asked about it now may be said of its last record. */
static bool tells(const struct event *e)
{
    return e && e->under_way == 0 && (!e->never || ES_BROKEN(FORK)) && e->record > 0;
}

/* pre: lock is held. */
static struct es_asked ask(const struct event *e, CUevent event)
{
    if (!tells(e))
        return (struct es_asked){.event = event};
    return (struct es_asked){event, e->record, e->tick, e->given, es_clock_hold(e->base)};
}

struct es_asked es_event_ask(CUevent event)
{
    struct es_asked asked = {.event = event};

    if (is_on()) {
        pthread_mutex_lock(&lock);
        asked = ask(find(event), event);
        pthread_mutex_unlock(&lock);
    }
    return asked;
}

struct es_asked es_event_ask_stream(CUstream stream)
{
    struct es_stream *s = es_stream_of(stream);
    struct followed *on_it = &followed[es_stream_number(s)];
    struct es_asked asked = {.event = NULL};

    if (!is_on())
        return asked;
    asked.given = atomic_load(&s->given);
    asked.tick = so_far(s);
    if (asked.tick.epoch && atomic_load_explicit(&on_it->has_waited, memory_order_relaxed)) {
        pthread_mutex_lock(&lock);
        asked.base = es_clock_hold(on_it->base);
        pthread_mutex_unlock(&lock);
    }
    return asked;
}

/* Whether an event is still the one that was asked about. pre: lock is held. */
static struct event *still(const struct es_asked *asked)
{
    struct event *e = asked->record ? find(asked->event) : NULL;

    return e && e->record == asked->record && e->under_way == 0 ? e : NULL;
}

static void is_over(const struct es_asked *asked)
{
    if (asked->tick.epoch)
        es_stream_done(es_stream_at(asked->tick.stream), asked->tick.epoch, asked->given);
    for (unsigned i = 0; asked->base && i < asked->base->count; i++)
        es_stream_done(es_stream_at(asked->base->at[i].stream), asked->base->at[i].epoch, 0);
}

void es_event_answered(struct es_asked *asked, bool done)
{
    struct event *e;

    if (!asked->record && !asked->base) { /* a stream that waited for none */
        if (done)
            is_over(asked);
        return;
    }
    pthread_mutex_lock(&lock);
    e = still(asked);
    if (done && e)
        e->complete = true;
    if (done && (e || !asked->event))
        is_over(asked);
    es_clock_drop(asked->base);
    pthread_mutex_unlock(&lock);
}

/* pre: lock is held. */
static bool is_ordered(struct es_tick t, unsigned before)
{
    return is_done(t) || t.stream == before ||
           es_clock_get(followed[before].base, t.stream) >= t.epoch || ES_BROKEN(ORDERED);
}

static enum es_needless needs_no_wait(const struct event *e, unsigned stream)
{
    if (!tells(e))
        return ES_NEEDED;
    if (e->complete)
        return ES_COMPLETED;
    if (!e->tick.epoch || !is_ordered(e->tick, stream))
        return ES_NEEDED;
    for (unsigned i = 0; e->base && i < e->base->count; i++)
        if (!is_ordered(e->base->at[i], stream))
            return ES_NEEDED;
    return ES_ORDERED;
}

/* A wait of a stream that is known: a wrong one is the driver's to refuse. In a capture a wait is a
 * fork, whatever it waits for. */
static bool may_leave_out(const struct es_stream *s)
{
    return atomic_load_explicit(&elide, memory_order_relaxed) && es_stream_is_made(s) &&
           (!es_capture_open() || ES_BROKEN(FORK)) && !es_unknown_any();
}

struct es_asked es_event_wait_begin(CUevent event, CUstream stream, bool plain,
                                    enum es_needless *needless)
{
    const struct es_stream *s = es_stream_of(stream);
    struct es_asked asked = {.event = event};
    const struct event *e;

    *needless = ES_NEEDED;
    if (!is_on())
        return asked;
    pthread_mutex_lock(&lock);
    e = find(event);
    if (plain && may_leave_out(s))
        *needless = needs_no_wait(e, es_stream_number(s));
    if (*needless == ES_NEEDED)
        asked = ask(e, event);
    pthread_mutex_unlock(&lock);
    return asked;
}

void es_event_wait_end(struct es_asked *asked, CUstream stream, bool made)
{
    struct es_stream *s = es_stream_of(stream);
    int saved = errno;

    if (!asked->record)
        return;
    pthread_mutex_lock(&lock);
    if (made && still(asked) && is_one(s) && !es_capture_open()) {
        struct followed *waiter = &followed[es_stream_number(s)];

        set_base(waiter, es_clock_join(waiter->base, asked->base, asked->tick, is_done));
    }
    es_clock_drop(asked->base);
    pthread_mutex_unlock(&lock);
    errno = saved;
}

/* The oldest event at hand that covers an epoch, and no later one than `latest`. pre: lock is held.
 */
static const struct event *that_covers(unsigned stream, uint64_t epoch, uint64_t latest)
{
    const struct event *found = NULL;

    for (unsigned i = 0; i < MARKS; i++) {
        const struct event *e = find(followed[stream].marks[i]);

        if (tells(e) && e->tick.stream == stream && e->tick.epoch >= epoch &&
            e->tick.epoch <= latest) {
            latest = e->tick.epoch;
            found = e;
        }
    }
    return found;
}

/* Up to which epoch of a stream the legacy stream waits for what it is given next. */
static uint64_t latest_before_legacy(unsigned stream)
{
    if (es_stream_at(stream)->nonblocking && !ES_BROKEN(COVERED))
        return es_clock_get(followed[ES_STREAM_LEGACY].base, stream);
    return UINT64_MAX;
}

bool es_event_covers(struct es_tick t)
{
    bool covers;

    if (!is_on())
        return false;
    pthread_mutex_lock(&lock);
    covers = that_covers(t.stream, t.epoch, latest_before_legacy(t.stream)) != NULL;
    pthread_mutex_unlock(&lock);
    return covers;
}

bool es_event_make_wait(const struct es_port *port, CUstream waiting, struct es_tick *t,
                        uint64_t *given)
{
    const struct event *e;
    bool made;

    pthread_mutex_lock(&lock);
    e = that_covers(t->stream, t->epoch, latest_before_legacy(t->stream));
    made = e && (ES_BROKEN(WAIT_COVERED) ||
                 port->stream_wait_event(waiting, e->handle, 0) == CUDA_SUCCESS);
    if (made) {
        *t = e->tick;
        *given = e->given;
    }
    pthread_mutex_unlock(&lock);
    return made;
}

enum es_needless es_event_order(struct es_tick t, const struct es_stream *before)
{
    bool ordered;

    if (is_done(t))
        return ES_COMPLETED;
    pthread_mutex_lock(&lock);
    ordered = es_clock_get(followed[es_stream_number(before)].base, t.stream) >= t.epoch;
    pthread_mutex_unlock(&lock);
    return ordered ? ES_ORDERED : ES_NEEDED;
}

void es_event_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    es_event_configure(false, false);
}

/* SPDX-License-Identifier: MIT */
/* Collects the facts of a copy, asks policy/place.h, and stages it on the stream that the program
 * named ("home"). Nothing here adds an order between streams, and nothing takes one away: the
 * device sees the same copy at the same place of the same stream, from another source. */
#include "shim/copy.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "shim/capture.h"
#include "shim/count.h"
#include "shim/debt.h"
#include "shim/event.h"
#include "shim/facts.h"
#include "shim/leave.h"
#include "shim/ledger.h"
#include "shim/memory.h"
#include "shim/mutant.h"
#include "shim/now.h"
#include "shim/pipe.h"
#include "shim/pool.h"
#include "shim/touch.h"
#include "shim/turn.h"
#include "shim/unknown.h"
#include "shim/verify.h"
#include "shim/workers.h"

static const struct es_port *port;
static const struct es_options *options;
static unsigned threads;
static bool launch_blocking;
static _Atomic uint64_t eligible; /* bytes, see es_copy_facts */

/* A call that took so long may be followed up its stack: it costs it 3 % at most. */
enum { WALKS_FROM_NS = 20000 };

void es_copy_configure(const struct es_port *p, const struct es_options *o, unsigned n)
{
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");

    port = p;
    options = o;
    threads = n;
    launch_blocking = blocking && atoi(blocking) != 0;
    es_leave_configure(p, o->kernels);
}

/* Bytes to move at a time: a chunk, or less where the copy would not feed every thread twice. */
static uint64_t piece_of(const struct es_copy *c)
{
    const uint64_t least = 256 << 10, step = 64 << 10;
    uint64_t fair = (c->bytes + 2 * threads - 1) / (2 * threads);

    fair = fair < least ? least : (fair + step - 1) / step * step;
    return fair < options->chunk ? fair : options->chunk;
}

/* Waits for what the stream holds now. Blocks the host; other threads' calls go on, which they
 * would not in a synchronous copy (tests/hardware/README.md). False: the driver failed. */
static bool wait_home(const struct es_pipe_job *job)
{
    struct es_chunk *first = job->chunks[0];

    if (port->event_record(first->event, job->stream) != CUDA_SUCCESS ||
        port->event_wait(first->event) != CUDA_SUCCESS)
        return false;
    for (unsigned i = 0; i < job->chunk_count; i++)
        job->chunks[i]->pending = false; /* all were recorded on this stream, before */
    return true;
}

/* What the driver was left to do, as far as others can see it: it may read or write host memory. */
static unsigned effects_of(const struct es_copy *c)
{
    if (c->why == ES_WHY_NONE && c->done == c->bytes)
        return 0; /* no more: it was staged */
    if (c->why == ES_WHY_PINNED || c->why == ES_WHY_MANAGED || c->why == ES_WHY_NOT_PAGEABLE)
        return ES_OBSERVABLE;
    return ES_HOST;
}

/* What the copy leaves to be done, noted for those that come after: before other threads may come
 * between, who may have to know. */
static void note(struct es_copy *c, unsigned effects)
{
    struct es_stream *s = es_stream_of(c->stream);
    bool live;

    if (c->noted || !es_leave_is_ever() || ES_BROKEN(NOTED))
        return;
    c->noted = true;
    if (effects & ES_HOST && es_memory_reached_host())
        effects |= ES_OBSERVABLE;
    live = es_touch(s, es_stream_open_epoch(s), c->device, c->bytes, c->dir == ES_H2D);
    es_stream_given(s, live ? effects : effects | ES_OPAQUE);
}

/* The same when it returns: by then a synchronous copy to the host is done. */
static void note_at_end(struct es_copy *c)
{
    unsigned effects = effects_of(c);

    if ((effects || !c->aside) && (c->dir == ES_H2D || (effects && c->async)))
        note(c, effects);
}

static void let_go(void *copy)
{
    struct es_copy *c = copy;

    if (c->holds)
        es_turn_release();
    c->holds = false;
}

/* Takes hold of the stream; where the copy may wait for it, of an idle one, so that others do not
 * wait long for us. Where native waits it waits before it reads the source, which a host function
 * or a copy still queued may be about to write; so do we.
 *
 * A query of the legacy stream tells of blocking streams, too; that of a blocking one does not tell
 * of the legacy stream, so there nothing may have been given to that one since. */
static enum es_reason take_turn(struct es_copy *c, const struct es_pipe_job *job)
{
    enum { ATTEMPTS = 4 };

    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t on_legacy = es_turn_on_legacy();

        if (job->may_wait && !ES_BROKEN(WAIT_TO_READ) && !wait_home(job))
            return ES_WHY_REFUSED;
        c->holds = es_turn_hold(c->stream);
        if (c->holds && (!job->may_wait || ES_BROKEN(WAIT_TO_READ) ||
                         (port->stream_query(c->stream) == CUDA_SUCCESS &&
                          (c->stream == CU_STREAM_LEGACY || es_turn_on_legacy() == on_legacy))))
            return ES_WHY_NONE;
        let_go(c);
    }
    return ES_WHY_SEVERAL;
}

/* Returns the bytes that are done with. */
static uint64_t stage_h2d(struct es_copy *c, const struct es_pipe_job *job)
{
    uint64_t done = es_pipe_h2d(job);

    if (done < c->bytes)
        return done;
    note(c, 0);
    let_go(c);
    /* A synchronous copy is a barrier: its return says that all work before it is done. If that
     * cannot be asked, the program's own call says it, with the last piece once more. */
    if (!c->async && !ES_BROKEN(BARRIER) && !wait_home(job))
        done = (c->bytes - 1) / job->piece * job->piece;
    return done;
}

/* On a stream of our own, beside the queue. What it has to wait for the program's own call would
 * wait for, too; that is done before the streams are held. So nothing on that stream waits for the
 * program's work, and each copy there ends in bounded time. */
static bool copy_beside(struct es_copy *c, struct es_pipe_job *job, CUstream side, bool early)
{
    c->holds = es_turn_hold(ES_EVERY_STREAM);
    if (!c->holds || !es_leave_is_free(c->dir, c->device, c->bytes)) {
        let_go(c);
        return false;
    }
    job->stream = side;
    c->done = c->dir == ES_H2D ? es_pipe_h2d(job) : es_pipe_d2h(job);
    c->aside = true;
    if (c->dir == ES_H2D)
        es_touch(es_stream_at(ES_STREAM_SIDE), es_stream_given(es_stream_at(ES_STREAM_SIDE), 0),
                 c->device, c->bytes, true);
    if (c->done < c->bytes) {
        port->stream_wait(side); /* the rest is the program's own call, which waits for all else */
        let_go(c);
        return true;
    }
    if (early)
        es_debt_owe(port);
    let_go(c);
    /* No other thread meets a copy that is not complete. */
    if (early && es_leave_is_threaded())
        port->stream_wait(side);
    if (!early && (port->stream_wait(side) != CUDA_SUCCESS ||
                   port->stream_wait(CU_STREAM_LEGACY) != CUDA_SUCCESS))
        c->done = (c->bytes - 1) / job->piece * job->piece; /* the program's own call tells why */
    return true;
}

/* False: nothing was done. */
static bool stage_beside(struct es_copy *c, struct es_pipe_job *job, CUcontext context, uint64_t id,
                         bool early)
{
    struct es_handoff h = {0};
    bool staged = false;
    CUstream side;

    if (!es_debt_take_side())
        return false;
    side = es_debt_side_stream(port, context, id);
    if (side && es_leave_wait(side, c->dir, c->device, c->bytes, &h))
        staged = copy_beside(c, job, side, early);
    es_debt_leave_side();
    if (staged)
        c->handoff = h;
    return staged;
}

/* At its place on its own stream. */
static enum es_reason stage_at_home(struct es_copy *c, struct es_pipe_job *job)
{
    enum es_reason why;

    if (es_debt_is_owed())
        es_debt_join(c->stream);
    why = take_turn(c, job);
    if (why == ES_WHY_NONE)
        c->done = c->dir == ES_H2D ? stage_h2d(c, job) : es_pipe_d2h(job);
    return why;
}

/* pre: context is current, the capture mode relaxed. Sets c->done. */
static enum es_reason stage(struct es_copy *c, CUcontext context, struct es_place place)
{
    struct es_chunk *chunks[ES_PIPE_CHUNKS];
    struct es_pipe_job job = {
        .port = port,
        .stream = c->stream,
        .device = c->device,
        .host = c->host,
        .bytes = c->bytes,
        .piece = piece_of(c),
        .chunks = chunks,
        .may_wait = c->dir == ES_D2H || !c->async || c->bytes >= ES_ASYNC_BLOCKS_FROM,
        .all_submitted =
            es_leave_is_ever() ? NULL : let_go, /* else a copy would have to be noted */
        .arg = c,
    };
    enum es_reason why;
    uint64_t pieces = (c->bytes + job.piece - 1) / job.piece, most = 2 * threads;
    unsigned long long id = 0;
    struct es_pool *pool;

    if (port->context_id && port->context_id(context, &id) != CUDA_SUCCESS)
        return ES_WHY_REFUSED;
    pool = es_pool_of(port, context, id, options->chunk, options->pool);
    if (!pool)
        return ES_WHY_NO_STAGING;
    most = most > ES_PIPE_CHUNKS ? ES_PIPE_CHUNKS : most;
    job.chunk_count = es_pool_lease(pool, (unsigned)(pieces < most ? pieces : most), chunks);
    why = job.chunk_count ? ES_WHY_NONE : ES_WHY_NO_STAGING;
    if (why == ES_WHY_NONE) {
        job.workers = threads > 1 && pieces > 1 && es_workers_start(threads - 1) > 0;
        if (place.where != ES_SIDE || !stage_beside(c, &job, context, id, place.early))
            why = stage_at_home(c, &job);
    }
    es_pool_return(pool, chunks, job.chunk_count);
    if (why != ES_WHY_NONE)
        return why;
    if (c->done == 0)
        return ES_WHY_REFUSED;
    if (c->done < c->bytes)
        es_ledger_add_rest(c->bytes - c->done);
    else if (options->verify)
        es_verify(port, c);
    return ES_WHY_NONE;
}

void es_copy_begin(struct es_copy *c)
{
    c->begun_ns = options->log != ES_LOG_OFF ? es_now_ns() : 0;
}

/* pre: context is current. */
static enum es_reason place_and_stage(struct es_copy *c, CUcontext context, struct es_copy_facts *f,
                                      bool may_leave)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct es_place place;

    /* What we ask and allocate may be forbidden by another thread's capture; the program did not
     * ask for it, so its capture must not pay. */
    if (port->capture_mode(&mode) != CUDA_SUCCESS)
        return ES_WHY_UNFIT;
    if (may_leave) {
        es_leave_look_around(c->device, f);
        c->handoff.verdict = !f->behind      ? ES_VERDICT_IDLE
                             : f->observable ? ES_VERDICT_SEEN
                             : !f->clear     ? ES_VERDICT_TOUCHED
                                             : ES_VERDICT_NATIVE;
    }
    es_facts_gather(port, c, context, f);
    place = es_place(f, options);
    if (place.why == ES_WHY_NONE || place.why == ES_WHY_WARMUP)
        atomic_fetch_add_explicit(&eligible, c->bytes, memory_order_relaxed);
    if (place.why == ES_WHY_NONE)
        place.why = stage(c, context, place);
    port->capture_mode(&mode);
    return place.why;
}

/* As far as its call and the process say. The verdict is why not, or what else will be found. */
static bool may_it_leave(struct es_copy *c, const struct es_copy_facts *f)
{
    c->handoff = (struct es_handoff){.verdict = ES_VERDICT_IDLE, .bytes = c->bytes};
    if (c->async || !f->legacy || !es_leave_is_worth())
        return false;
    c->handoff.verdict = ES_VERDICT_POLICY;
    if (!es_place_may_leave(f, options))
        return false;
    c->handoff.verdict = ES_VERDICT_UNFOLLOWED;
    if (!es_leave_is_followed())
        return false;
    c->handoff.verdict = ES_VERDICT_TOUCHED;
    return true;
}

/* A synchronous copy hands memory to the host, or from it; others stay in the order of their
 * stream. */
static void hand_off(const struct es_copy *c)
{
    struct es_handoff h = c->handoff;

    if (c->async || c->stream != CU_STREAM_LEGACY || options->mode != ES_MODE_REWRITE)
        return;
    h.bytes = c->bytes;
    if (c->dir == ES_H2D)
        h.to = (struct es_tick){ES_STREAM_LEGACY, c->before.tick.epoch};
    else if (!h.from.epoch)
        h.from = (struct es_tick){ES_STREAM_LEGACY, c->before.tick.epoch};
    es_handoff_add(&h);
}

/* Stages the copy if it may be; says in c->why if not. */
static void try_to_stage(struct es_copy *c)
{
    struct es_copy_facts f = {.dir = c->dir,
                              .async = c->async,
                              .bytes = c->bytes,
                              .launch_blocking = launch_blocking,
                              .eligible = atomic_load_explicit(&eligible, memory_order_relaxed),
                              .rewritten = es_ledger_staged(),
                              .several = es_unknown_any() && es_count_submitters() > 1,
                              .threads = threads,
                              .legacy = c->stream == CU_STREAM_LEGACY};
    CUcontext current = NULL, context = NULL;
    int saved = errno, cancel;
    bool may_leave = may_it_leave(c, &f);

    f.clear = may_leave && es_leave_is_clear(c->dir, c->device, c->bytes);
    c->why = es_place_early(c->dir, c->bytes, threads, options);
    /* A copy that is small goes on only where it is likely to leave: the questions cost as much. */
    if (c->why != ES_WHY_NONE && !f.clear)
        return;
    c->why = ES_WHY_UNFIT;
    /* A copy is no cancellation point, and workers hold pointers to this thread's stack. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if (es_port_complete(port) && port->context_current(&current) == CUDA_SUCCESS &&
        es_facts_context_of(port, c->stream, current, &context) &&
        (context == current || port->context_push(context) == CUDA_SUCCESS)) {
        c->why = place_and_stage(c, context, &f, may_leave);
        if (context != current)
            port->context_pop(&context);
    }
    pthread_setcancelstate(cancel, NULL);
    errno = saved;
}

/* A synchronous copy behind queued work, and while it copies, holds every other thread's launches;
 * the same copy made as an asynchronous one and waited for holds nobody, or less
 * (tests/hardware/README.md). Worth it only where there are other threads. True: done; else it is
 * left to the program's own call, which also knows the error. */
static bool wait_apart(struct es_copy *c)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult r = CUDA_ERROR_NOT_READY;
    int saved = errno;

    if (options->mode != ES_MODE_REWRITE || es_count_submitters() < 2 || es_capture_open() ||
        !es_port_complete(port) || port->capture_mode(&mode) != CUDA_SUCCESS)
        return false;
    if (port->stream_query(c->stream) == CUDA_ERROR_NOT_READY &&
        port->stream_wait(c->stream) == CUDA_SUCCESS) {
        bool stays = c->dir == ES_D2H && es_leave_is_ever(); /* in turn, for others to know of */

        es_turn_begin(c->stream);
        r = c->dir == ES_H2D ? port->copy_h2d(c->device, c->host, c->bytes, c->stream)
                             : port->copy_d2h(c->host, c->device, c->bytes, c->stream);
        if (c->dir == ES_H2D)
            note(c, effects_of(c));
        if (!stays)
            es_turn_end();
        if (r == CUDA_SUCCESS)
            r = port->stream_wait(c->stream);
        if (stays)
            es_turn_end();
    }
    port->capture_mode(&mode);
    errno = saved;
    return r == CUDA_SUCCESS;
}

bool es_copy_made(struct es_copy *c)
{
    c->done = 0;
    c->holds = c->in_turn = c->aside = c->noted = false;
    /* When a synchronous copy returns, what its stream was given before is done. */
    c->before = (struct es_asked){.event = NULL};
    if (!c->async)
        c->before = es_event_ask_stream(c->stream);
    try_to_stage(c);
    if (c->why == ES_WHY_NONE && (c->done == c->bytes || ES_BROKEN(REST)))
        return true;
    if (!c->async && !c->holds && !ES_BROKEN(APART) && wait_apart(c))
        return true;
    es_turn_begin(c->stream);
    c->in_turn = true;
    c->noted = false;
    return false;
}

CUresult es_copy_end(struct es_copy *c, CUresult result)
{
    uint64_t blocked = options->log != ES_LOG_OFF ? es_now_ns() - c->begun_ns : 0;

    note_at_end(c);
    hand_off(c);
    if (c->in_turn)
        es_turn_end();
    let_go(c);
    es_event_answered(&c->before, result == CUDA_SUCCESS && !c->aside);
    if (c->walks && blocked >= WALKS_FROM_NS)
        es_stack_walk(&c->stack);
    if (options->log != ES_LOG_OFF || c->why == ES_WHY_NONE)
        es_ledger_add(c->dir, c->why, c->bytes, blocked, &c->stack);
    return result;
}

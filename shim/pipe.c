/* SPDX-License-Identifier: MIT */
/* A copy is cut into pieces; piece i uses chunk i % chunk_count. A piece passes through these
 * states, each step in ascending order but for the processor's part:
 *
 *   H2D: dispatched (a chunk is free) -> filled (by whoever took it) -> submitted -> reaped
 *   D2H: submitted (a chunk is free) -> arrived -> dispatched -> drained
 *
 * The caller makes every driver call. When it has none to make it does a piece of the processor's
 * part itself, taking it back from the workers' queue; only when there is none of these left it
 * waits, for a worker in the middle of a piece (bounded) or for the device. */
#include "shim/pipe.h"

#include <pthread.h>
#include <string.h>

#include "shim/mutant.h"
#include "shim/pages.h"
#include "shim/workers.h"

enum progress { UNTOUCHED, DISPATCHED, DONE, LEFT /* to the caller: it faults specially */ };

struct pipe;
struct slot {
    struct es_task task; /* first: es_task is the worker's view of a slot */
    struct pipe *pipe;
    uint64_t index;         /* the piece */
    enum progress progress; /* guarded by the pipe's lock */
};

struct pipe {
    const struct es_pipe_job *job;
    bool to_device;
    uint64_t pieces;
    bool queues;          /* pieces go to the workers, too */
    pthread_mutex_t lock; /* guards every slot's progress */
    pthread_cond_t step;
    struct slot slots[ES_PIPE_CHUNKS];
};

static struct slot *slot_of(struct pipe *p, uint64_t index)
{
    return &p->slots[index % p->job->chunk_count];
}

static struct es_chunk *chunk_of(struct pipe *p, uint64_t index)
{
    return p->job->chunks[index % p->job->chunk_count];
}

static char *host_of(struct pipe *p, uint64_t index)
{
    return p->job->host + index * p->job->piece;
}

static uint64_t bytes_of(struct pipe *p, uint64_t index)
{
    uint64_t at = index * p->job->piece, left = p->job->bytes - at;

    return left < p->job->piece ? left : p->job->piece;
}

/* most: of the pieces, for a copy that may not wait for its own chunks. */
static void open_pipe(struct pipe *p, const struct es_pipe_job *job, bool to_device, uint64_t most)
{
    p->job = job;
    p->to_device = to_device;
    p->pieces = (job->bytes + job->piece - 1) / job->piece;
    if (p->pieces > most)
        p->pieces = most;
    p->queues = job->workers && p->pieces > 1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->step, NULL);
    for (unsigned i = 0; i < job->chunk_count; i++)
        p->slots[i] = (struct slot){.pipe = p};
}

/* done: pieces, all those before it too. Returns their bytes. */
static uint64_t close_pipe(struct pipe *p, uint64_t done)
{
    uint64_t bytes = done * p->job->piece;

    pthread_cond_destroy(&p->step);
    pthread_mutex_destroy(&p->lock);
    return bytes < p->job->bytes ? bytes : p->job->bytes;
}

static void move_piece(struct pipe *p, uint64_t index)
{
    void *staged = chunk_of(p, index)->memory;

    if (p->to_device)
        memcpy(staged, host_of(p, index), bytes_of(p, index));
    else
        memcpy(host_of(p, index), staged, bytes_of(p, index));
}

static void run_on_worker(struct es_task *task)
{
    struct slot *s = (struct slot *)task;
    struct pipe *p = s->pipe;
    enum progress end = LEFT;

    if (es_pages_fault_in(host_of(p, s->index), bytes_of(p, s->index), !p->to_device) ||
        ES_BROKEN(PROBE)) {
        move_piece(p, s->index);
        end = DONE;
    }
    pthread_mutex_lock(&p->lock);
    s->progress = end;
    pthread_cond_signal(&p->step);
    pthread_mutex_unlock(&p->lock); /* the pipe may be gone from here on */
}

static void dispatch(struct pipe *p, uint64_t index)
{
    struct slot *s = slot_of(p, index);

    s->index = index;
    s->progress = DISPATCHED;
    s->task.run = run_on_worker;
    if (p->queues)
        es_workers_queue(&s->task);
}

static enum progress progress_of(struct pipe *p, uint64_t index)
{
    enum progress now;

    pthread_mutex_lock(&p->lock);
    now = slot_of(p, index)->progress;
    pthread_mutex_unlock(&p->lock);
    return now;
}

/* What lies in a hole of the program's memory is the driver's to answer for. */
static bool is_mapped(struct pipe *p, uint64_t index)
{
    return es_pages_are_mapped(host_of(p, index), bytes_of(p, index));
}

/* Does a dispatched piece on this thread, if no worker has it. */
static bool help(struct pipe *p, uint64_t index)
{
    struct slot *s = slot_of(p, index);
    enum progress now = progress_of(p, index);

    if (now != LEFT && (now != DISPATCHED || (p->queues && !es_workers_take(&s->task))))
        return false;
    if (now == LEFT && !is_mapped(p, index))
        return false;
    move_piece(p, index);
    pthread_mutex_lock(&p->lock);
    s->progress = DONE;
    pthread_mutex_unlock(&p->lock);
    return true;
}

static bool help_any(struct pipe *p, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        if (help(p, from))
            return true;
    return false;
}

/* Until the piece is DONE or LEFT. pre: a worker has it, or it is. */
static enum progress await_worker(struct pipe *p, uint64_t index)
{
    struct slot *s = slot_of(p, index);
    enum progress end;

    pthread_mutex_lock(&p->lock);
    while (s->progress == DISPATCHED)
        pthread_cond_wait(&p->step, &p->lock);
    end = s->progress;
    pthread_mutex_unlock(&p->lock);
    return end;
}

/* Takes back or waits out every piece of [from, to): afterwards no worker knows this pipe. */
static void recall(struct pipe *p, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        if (p->queues && !es_workers_take(&slot_of(p, from)->task))
            await_worker(p, from);
}

/* Queues the device's part. When the driver fails, the copy ends before this piece. */
static bool submit(struct pipe *p, uint64_t index)
{
    const struct es_pipe_job *job = p->job;
    struct es_chunk *chunk = chunk_of(p, index);
    CUdeviceptr device = job->device + index * job->piece;
    CUresult r;

    if (p->to_device)
        r = job->port->copy_h2d(device, chunk->memory, bytes_of(p, index), job->stream);
    else
        r = job->port->copy_d2h(chunk->memory, device, bytes_of(p, index), job->stream);
    if (r == CUDA_SUCCESS || ES_BROKEN(ERROR)) {
        chunk->pending = job->port->event_record(chunk->event, job->stream) == CUDA_SUCCESS;
        chunk->lost = !chunk->pending; /* queued, and nothing will tell when it is over */
        if (chunk->pending)
            return true;
    }
    p->pieces = index;
    return false;
}

/* What event_query or event_wait said of a piece's chunk. True: its copy is over. */
static bool is_over(struct pipe *p, uint64_t index, CUresult said)
{
    chunk_of(p, index)->pending = said != CUDA_SUCCESS;
    return said == CUDA_SUCCESS;
}

static CUresult ask(struct pipe *p, uint64_t index)
{
    return p->job->port->event_query(chunk_of(p, index)->event);
}

static CUresult await_device(struct pipe *p, uint64_t index)
{
    return p->job->port->event_wait(chunk_of(p, index)->event);
}

uint64_t es_pipe_h2d(const struct es_pipe_job *job)
{
    uint64_t dispatched = 0, submitted = 0, reaped = 0;
    struct pipe p;

    open_pipe(&p, job, true, job->may_wait ? UINT64_MAX : job->chunk_count);
    while (submitted < p.pieces) {
        while (dispatched < p.pieces && dispatched < reaped + job->chunk_count)
            dispatch(&p, dispatched++);
        if (submitted < dispatched && progress_of(&p, submitted) == DONE) {
            if (!submit(&p, submitted))
                break;
            submitted++;
            if (reaped + 1 < submitted && dispatched < p.pieces &&
                is_over(&p, reaped, ask(&p, reaped)))
                reaped++;
        } else if (help_any(&p, submitted, dispatched)) {
            continue;
        } else if (submitted < dispatched) {
            if (await_worker(&p, submitted) == LEFT && !is_mapped(&p, submitted))
                break;
        } else if (is_over(&p, reaped, await_device(&p, reaped))) {
            reaped++;
        } else {
            break;
        }
    }
    recall(&p, submitted, dispatched);
    return close_pipe(&p, submitted);
}

uint64_t es_pipe_d2h(const struct es_pipe_job *job)
{
    uint64_t submitted = 0, arrived = 0, drained = 0, all;
    struct pipe p;

    open_pipe(&p, job, false, UINT64_MAX);
    all = p.pieces;
    while (drained < p.pieces) {
        CUresult said = CUDA_ERROR_NOT_READY;

        if (submitted < p.pieces && submitted < drained + job->chunk_count) {
            if (submit(&p, submitted) && ++submitted == all && job->all_submitted)
                job->all_submitted(job->arg);
            continue;
        }
        if (drained < arrived && progress_of(&p, drained) == DONE) {
            drained++;
            continue;
        }
        if (arrived < submitted)
            said = ask(&p, arrived);
        if (ES_BROKEN(ARRIVED) && arrived < submitted)
            said = CUDA_SUCCESS;
        if (said == CUDA_ERROR_NOT_READY && help_any(&p, drained, arrived))
            continue;
        if (said == CUDA_ERROR_NOT_READY && arrived < submitted)
            said = await_device(&p, arrived);
        if (arrived == submitted) {
            if (await_worker(&p, drained) == LEFT && !is_mapped(&p, drained))
                break;
        } else if (is_over(&p, arrived, said)) {
            dispatch(&p, arrived++);
        } else {
            p.pieces = submitted = arrived; /* the copy ends before what did not arrive */
        }
    }
    recall(&p, drained, arrived);
    return close_pipe(&p, drained);
}

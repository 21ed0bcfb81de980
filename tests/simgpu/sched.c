/* SPDX-License-Identifier: MIT */
/* The scheduler is the adversary. An operation may run when everything it depends on is done; which
 * one runs, and when, is chosen so that a missing order shows as wrong bytes and a needless one as
 * a hang:
 *
 *   eager   at every call, everything that may run
 *   lazy    only what a wait needs; a query gives one step
 *   random  at every call a few, in seeded random order
 *   timed   each takes its time on its engine: for demonstrations
 *
 * A wait that no operation can end (a gate that nobody opens) waits for SIMGPU_HANG_S seconds and
 * then ends the process with a line that says what hung. */
#include "tests/simgpu/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- operations --- */

struct sim_op *sim_ref(struct sim_op *op)
{
    if (op)
        op->refs++;
    return op;
}

void sim_unref(struct sim_op *op)
{
    if (!op || --op->refs)
        return;
    for (unsigned i = 0; i < op->dep_count; i++)
        sim_unref(op->deps[i]);
    free(op->deps);
    free(op);
}

void sim_depend(struct sim_op *op, struct sim_op *on)
{
    if (!on || on == op || on->state == SIM_DONE)
        return;
    op->deps = realloc(op->deps, (op->dep_count + 1) * sizeof *op->deps);
    op->deps[op->dep_count++] = sim_ref(on);
}

void sim_add(struct sim_op *op)
{
    op->number = ++sim.submitted;
    *sim.last = sim_ref(op);
    sim.last = &op->next;
    if (sim.scheduler == SIM_TIMED)
        pthread_cond_broadcast(&sim.changed);
}

bool sim_may_run(const struct sim_op *op)
{
    if (op->state != SIM_WAITING)
        return false;
    for (unsigned i = 0; i < op->dep_count; i++)
        if (op->deps[i]->state != SIM_DONE)
            return false;
    return true;
}

void sim_finish(struct sim_op *op)
{
    op->state = SIM_DONE;
    op->done_ns = sim_now_ns();
    for (unsigned i = 0; i < op->dep_count; i++)
        sim_unref(op->deps[i]);
    op->dep_count = 0;
    for (struct sim_op **at = &sim.first; *at; at = &(*at)->next) {
        if (*at == op) {
            *at = op->next;
            if (sim.last == &op->next)
                sim.last = at;
            break;
        }
    }
    sim.steps++;
    pthread_cond_broadcast(&sim.changed);
    sim_unref(op);
}

/* In pieces: the C library's way with huge copies (non-temporal stores) is slow on untouched pages,
 * and would charge the program for the simulation. */
static void copy_rows(const struct sim_work *w)
{
    const size_t piece = 256 << 10;

    for (size_t i = 0; i < w->copy.rows * w->copy.planes; i++) {
        size_t plane = i / w->copy.rows, row = i % w->copy.rows;
        char *dst = w->copy.dst + plane * w->copy.dst_plane + row * w->copy.dst_pitch;
        const char *src = w->copy.src + plane * w->copy.src_plane + row * w->copy.src_pitch;

        for (size_t at = 0; at < w->copy.width; at += piece)
            memmove(dst + at, src + at, w->copy.width - at < piece ? w->copy.width - at : piece);
    }
}

void sim_copy_bytes(struct sim_work *w)
{
    copy_rows(w);
    if (w->copy.owned)
        sim.snapshot_bytes -= w->copy.width * w->copy.rows * w->copy.planes;
    free(w->copy.owned);
    w->kind = SIM_NOTHING;
}

static void fill_rows(const struct sim_work *w)
{
    for (size_t row = 0; row < w->fill.rows; row++)
        for (size_t i = 0; i < w->fill.width; i++)
            w->fill.dst[row * w->fill.pitch + i] = (char)w->fill.pattern[i % w->fill.size];
}

static bool value_has_come(const struct sim_work *w)
{
    uint64_t now, want = w->value.value;

    if (w->value.size == 4)
        now = __atomic_load_n((volatile uint32_t *)w->value.address, __ATOMIC_SEQ_CST);
    else
        now = __atomic_load_n((volatile uint64_t *)w->value.address, __ATOMIC_SEQ_CST);
    switch (w->value.flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic */
        return w->value.size == 4 ? (int32_t)(uint32_t)(now - want) >= 0
                                  : (int64_t)(now - want) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == want;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & want) != 0;
    default:
        return w->value.size == 4 ? (uint32_t) ~(now | want) != 0 : ~(now | want) != 0;
    }
}

static void write_value(const struct sim_work *w)
{
    if (w->value.size == 4)
        __atomic_store_n((volatile uint32_t *)w->value.address, (uint32_t)w->value.value,
                         __ATOMIC_SEQ_CST);
    else
        __atomic_store_n((volatile uint64_t *)w->value.address, w->value.value, __ATOMIC_SEQ_CST);
}

bool sim_run(struct sim_op *op)
{
    struct sim_work *w = &op->work;

    switch (w->kind) {
    case SIM_NOTHING:
        break;
    case SIM_COPY:
        sim_copy_bytes(w);
        break;
    case SIM_FILL:
        fill_rows(w);
        break;
    case SIM_KERNEL:
        if (!w->kernel.kernel->step(w->kernel.params))
            return false;
        sim_count(w->kernel.kernel->name);
        break;
    case SIM_HOST_FUNCTION:
        sim_call_host_function(op); /* which ends it, now or later */
        return true;
    case SIM_WRITE:
        write_value(w);
        break;
    case SIM_WAIT:
        if (!value_has_come(w))
            return false;
        break;
    }
    sim_finish(op);
    return true;
}

/* --- choosing --- */

static uint64_t random_number(void)
{
    sim.seed ^= sim.seed << 13;
    sim.seed ^= sim.seed >> 7;
    sim.seed ^= sim.seed << 17;
    return sim.seed;
}

/* Runs one operation that may run and can end, or false. skip: how many to pass over. */
static bool run_one(uint64_t skip)
{
    struct sim_op *ready[256];
    unsigned n = 0;

    for (struct sim_op *op = sim.first; op && n < 256; op = op->next)
        if (sim_may_run(op))
            ready[n++] = op;
    for (unsigned i = 0; i < n; i++)
        if (sim_run(ready[(skip + i) % n]))
            return true;
    return false;
}

void sim_run_some(void)
{
    if (sim.scheduler == SIM_EAGER)
        while (run_one(0))
            ;
    else if (sim.scheduler == SIM_RANDOM)
        for (uint64_t n = random_number() % 4; n > 0 && run_one(random_number()); n--)
            ;
    else if (sim.scheduler == SIM_SLOW && random_number() % 16 == 0)
        run_one(random_number());
}

/* One step towards an operation: something it depends on, or itself. Each is looked at once in a
 * walk: many paths lead to the same one. */
static bool walk_towards(struct sim_op *op, uint64_t walk)
{
    if (op->state != SIM_WAITING || op->walk == walk)
        return false;
    op->walk = walk;
    for (unsigned i = 0; i < op->dep_count; i++)
        if (op->deps[i]->state != SIM_DONE)
            if (walk_towards(op->deps[i], walk))
                return true;
    return sim_may_run(op) && sim_run(op);
}

/* What blocks it may be a gate that other work opens: the device would run that too. */
static bool run_towards(struct sim_op *op)
{
    static uint64_t walk;

    return walk_towards(op, ++walk) || run_one(0);
}

void sim_progress(struct sim_op *wanted)
{
    if (sim.scheduler == SIM_LAZY && wanted)
        run_towards(wanted);
}

static bool run_for_wait(struct sim_op *op)
{
    switch (sim.scheduler) {
    case SIM_EAGER:
        return run_one(0);
    case SIM_LAZY:
        return run_towards(op);
    case SIM_RANDOM:
    case SIM_SLOW:
        return run_one(random_number());
    default:
        return false;
    }
}

void sim_wait_op(struct sim_op *op, const char *what)
{
    uint64_t steps = sim.steps, since = sim_now_ns();

    sim_ref(op);
    while (op->state != SIM_DONE) {
        if (run_for_wait(op))
            continue;
        if (sim.steps != steps) {
            steps = sim.steps;
            since = sim_now_ns();
        } else if ((double)(sim_now_ns() - since) > sim.hang_s * 1e9) {
            fprintf(stderr, "simgpu: hang: %s waits for what never ends\n", what);
            _exit(99);
        }
        sim_nap(200000); /* the program's own stores open gates too */
    }
    sim_unref(op);
}

/* What is submitted during the wait is not waited for. */
void sim_wait_context(struct CUctx_st *context)
{
    uint64_t newest = sim.submitted;

    for (;;) {
        struct sim_op *op = sim.first;

        while (op && (op->context != context || op->number > newest))
            op = op->next;
        if (!op)
            return;
        sim_wait_op(op, "a context-wide wait");
    }
}

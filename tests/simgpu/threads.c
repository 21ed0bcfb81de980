/* SPDX-License-Identifier: MIT */
/* The driver's own threads. One calls host functions: natively they run on no thread of the
 * program, so one that waits for what the program does next must not sit in the program's call.
 * The other is the clock of the timed scheduler. Neither holds the lock while it calls out. */
#include "tests/simgpu/sim.h"

#include <time.h>

void sim_nap(uint64_t ns)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)ns;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&sim.changed, &sim.lock, &t);
}

/* --- host functions --- */

static struct sim_op *first_function, **last_function = &first_function;
static __thread bool in_host_function;

bool sim_in_host_function(void)
{
    return in_host_function;
}

static void *run_host_functions(void *unused)
{
    in_host_function = true;
    pthread_mutex_lock(&sim.lock);
    for (;;) {
        struct sim_op *op = first_function;

        if (!op) {
            pthread_cond_wait(&sim.changed, &sim.lock);
            continue;
        }
        first_function = op->next_function;
        if (!first_function)
            last_function = &first_function;
        pthread_mutex_unlock(&sim.lock);
        op->work.host.function(op->work.host.data);
        pthread_mutex_lock(&sim.lock);
        sim_finish(op);
    }
    return unused;
}

/* Hands it over. A short one is over when this returns, so that a seed gives the same run again; a
 * long one goes on by itself. */
void sim_call_host_function(struct sim_op *op)
{
    enum { SHORT_NS = 5000000 };
    static bool started;
    uint64_t began = sim_now_ns();
    pthread_t thread;

    if (!started && pthread_create(&thread, NULL, run_host_functions, NULL) == 0) {
        pthread_detach(thread);
        started = true;
    }
    op->state = SIM_RUNNING;
    *last_function = sim_ref(op);
    last_function = &op->next_function;
    pthread_cond_broadcast(&sim.changed);
    while (sim.scheduler != SIM_TIMED && op->state != SIM_DONE && sim_now_ns() - began < SHORT_NS)
        sim_nap(SHORT_NS);
    sim_unref(op);
}

/* --- the clock --- */

static void begin(struct sim_op *op, uint64_t now)
{
    uint64_t *busy = &sim.engine_free_ns[op->work.engine];
    bool exclusive = op->work.engine && op->work.engine != SIM_COMPUTE;
    uint64_t start = exclusive && *busy > now ? *busy : now;

    op->ends_ns = start + op->work.cost_ns + 1;
    if (exclusive)
        *busy = op->ends_ns;
    /* The bytes move within that time, not on top of it. */
    if (op->work.kind == SIM_COPY)
        sim_copy_bytes(&op->work);
}

static void *run_timed(void *unused)
{
    pthread_mutex_lock(&sim.lock);
    for (;;) {
        uint64_t now = sim_now_ns(), next = now + 2000000;

        for (struct sim_op *op = sim.first; op; op = op->next)
            if (!op->ends_ns && sim_may_run(op))
                begin(op, now);
        for (struct sim_op *op = sim.first; op; op = op->next) {
            if (!op->ends_ns || op->state != SIM_WAITING)
                continue;
            if (op->ends_ns > now) {
                next = op->ends_ns < next ? op->ends_ns : next;
            } else if (sim_run(op)) {
                next = now; /* what depends on it may begin */
                break;
            }
        }
        if (next > now)
            sim_nap(next - now);
    }
    return unused;
}

void sim_start_clock(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_timed, NULL) == 0)
        pthread_detach(thread);
}

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
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

struct sim sim = {.lock = PTHREAD_MUTEX_INITIALIZER,
                  .changed = PTHREAD_COND_INITIALIZER,
                  .version = 13000,
                  .devices = 2,
                  .hang_s = 20,
                  .pin_limit = SIZE_MAX,
                  .last = &sim.first};

/* --- entry: counting, failures on demand
 * ---------------------------------------------------------- */

enum { NAMES = 1024 };
static struct {
    const char *name;
    unsigned long count;
} calls[NAMES];
static const char *failures;

unsigned long sim_thread(void)
{
    return (unsigned long)syscall(SYS_gettid);
}

uint64_t sim_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *run_timed(void *unused);

static void read_settings(void)
{
    static const char *const names[] = {"eager", "lazy", "random", "timed"};
    const char *s = getenv("SIMGPU_SCHED");
    pthread_t device;

    for (int i = 0; s && i < 4; i++)
        if (strcmp(s, names[i]) == 0)
            sim.scheduler = (enum sim_scheduler)i;
    sim.seed = (s = getenv("SIMGPU_SEED")) ? strtoull(s, NULL, 10) : 1;
    sim.version = (s = getenv("SIMGPU_DRIVER_VERSION")) ? atoi(s) : 13000;
    sim.devices = (s = getenv("SIMGPU_DEVICES")) ? atoi(s) : 2;
    sim.hang_s = (s = getenv("SIMGPU_HANG_S")) ? atof(s) : 20;
    sim.pin_limit = (s = getenv("SIMGPU_PIN_LIMIT")) ? strtoull(s, NULL, 10) : SIZE_MAX;
    sim.trace = getenv("SIMGPU_TRACE") != NULL;
    failures = getenv("SIMGPU_FAIL");
    if (sim.scheduler == SIM_TIMED && pthread_create(&device, NULL, run_timed, NULL) == 0)
        pthread_detach(device);
}

static unsigned long *count_of(const char *name)
{
    unsigned h = 0;

    for (const char *c = name; *c; c++)
        h = h * 31 + (unsigned char)*c;
    for (unsigned i = h % NAMES;; i = (i + 1) % NAMES) {
        if (!calls[i].name)
            calls[i].name = name;
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i].count;
    }
}

unsigned long simgpu_count(const char *function)
{
    unsigned long n;
    char *kept = strdup(function);

    pthread_mutex_lock(&sim.lock);
    n = *count_of(kept);
    pthread_mutex_unlock(&sim.lock);
    return n;
}

/* SIMGPU_FAIL="cuMemHostRegister_v2:3,cuEventCreate:1+:2": the third call; every call, with code 2.
 */
static CUresult failure(const char *name, unsigned long nth)
{
    size_t length = strlen(name);

    for (const char *at = failures; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        if (strncmp(at, name, length) == 0 && at[length] == ':') {
            char *end;
            unsigned long wanted = strtoul(at + length + 1, &end, 10);
            bool onwards = *end == '+';

            end += onwards;
            if (nth == wanted || (onwards && nth > wanted))
                return *end == ':' ? (CUresult)atoi(end + 1) : CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    return CUDA_SUCCESS;
}

static void run_some(void);

CUresult sim_enter(const char *function)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CUresult r;

    pthread_once(&once, read_settings);
    pthread_mutex_lock(&sim.lock);
    r = failure(function, ++*count_of(function));
    if (sim.trace)
        fprintf(stderr, "simgpu: %lu %s%s\n", sim_thread(), function,
                r ? " (failed on demand)" : "");
    if (r == CUDA_SUCCESS && !sim.initialised && strcmp(function, "cuInit") != 0 &&
        strncmp(function, "cuGetProcAddress", 16) != 0 &&
        strcmp(function, "cuDriverGetVersion") != 0 && strncmp(function, "cuGetError", 10) != 0 &&
        strcmp(function, "cuGetExportTable") != 0)
        r = CUDA_ERROR_NOT_INITIALIZED;
    if (r != CUDA_SUCCESS)
        pthread_mutex_unlock(&sim.lock);
    else
        run_some();
    return r;
}

CUresult sim_leave(CUresult r)
{
    run_some();
    pthread_mutex_unlock(&sim.lock);
    return r;
}

/* --- operations
 * ----------------------------------------------------------------------------------- */

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

void sim_add(struct sim_op *op)
{
    *sim.last = sim_ref(op);
    sim.last = &op->next;
    if (sim.scheduler == SIM_TIMED)
        pthread_cond_broadcast(&sim.changed);
}

static bool may_run(const struct sim_op *op)
{
    if (op->state != SIM_WAITING)
        return false;
    for (unsigned i = 0; i < op->dep_count; i++)
        if (op->deps[i]->state != SIM_DONE)
            return false;
    return true;
}

static void finish(struct sim_op *op)
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

    for (size_t i = 0; i < w->copy.rows; i++) {
        char *dst = w->copy.dst + i * w->copy.dst_pitch;
        const char *src = w->copy.src + i * w->copy.src_pitch;

        for (size_t at = 0; at < w->copy.width; at += piece)
            memmove(dst + at, src + at, w->copy.width - at < piece ? w->copy.width - at : piece);
    }
}

static void run_copy(struct sim_work *w)
{
    copy_rows(w);
    if (w->copy.owned)
        sim.snapshot_bytes -= w->copy.width;
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
    uint32_t now = __atomic_load_n(w->value.address, __ATOMIC_SEQ_CST);

    switch (w->value.flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return (int32_t)(now - w->value.value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return now == w->value.value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (now & w->value.value) != 0;
    default:
        return ~(now | w->value.value) != 0;
    }
}

/* Does the work. False: it cannot end yet, and nothing was done. The lock is free during a host
 * function. */
static bool run(struct sim_op *op)
{
    struct sim_work *w = &op->work;

    switch (w->kind) {
    case SIM_NOTHING:
        break;
    case SIM_COPY:
        run_copy(w);
        break;
    case SIM_FILL:
        fill_rows(w);
        break;
    case SIM_KERNEL:
        if (!w->kernel.kernel->step(w->kernel.params))
            return false;
        break;
    case SIM_HOST_FUNCTION:
        op->state = SIM_RUNNING;
        pthread_mutex_unlock(&sim.lock);
        w->host.function(w->host.data);
        pthread_mutex_lock(&sim.lock);
        break;
    case SIM_WRITE:
        __atomic_store_n(w->value.address, w->value.value, __ATOMIC_SEQ_CST);
        break;
    case SIM_WAIT:
        if (!value_has_come(w))
            return false;
        break;
    }
    finish(op);
    return true;
}

/* --- choosing
 * ------------------------------------------------------------------------------------- */

static uint64_t random_number(void)
{
    sim.seed ^= sim.seed << 13;
    sim.seed ^= sim.seed >> 7;
    sim.seed ^= sim.seed << 17;
    return sim.seed;
}

/* Runs one operation that may run and can end; false if there is none. skip: how many to pass over.
 */
static bool run_one(uint64_t skip)
{
    struct sim_op *ready[256];
    unsigned n = 0;

    for (struct sim_op *op = sim.first; op && n < 256; op = op->next)
        if (may_run(op))
            ready[n++] = op;
    for (unsigned i = 0; i < n; i++)
        if (run(ready[(skip + i) % n]))
            return true;
    return false;
}

/* At every call. */
static void run_some(void)
{
    if (sim.scheduler == SIM_EAGER)
        while (run_one(0))
            ;
    else if (sim.scheduler == SIM_RANDOM)
        for (uint64_t n = random_number() % 4; n > 0 && run_one(random_number()); n--)
            ;
}

/* One step towards an operation: something it depends on, or itself. */
static bool run_towards(struct sim_op *op)
{
    if (op->state != SIM_WAITING)
        return false;
    for (unsigned i = 0; i < op->dep_count; i++)
        if (op->deps[i]->state != SIM_DONE)
            if (run_towards(op->deps[i]))
                return true;
    return may_run(op) && run(op);
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
        /* What blocks it may be a gate that other work opens: the device would run that too. */
        return run_towards(op) || run_one(0);
    case SIM_RANDOM:
        return run_one(random_number());
    default:
        return false;
    }
}

/* Sleeps until something changed, or a little: the program's own stores open gates too. */
static void nap(uint64_t ns)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)ns;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&sim.changed, &sim.lock, &t);
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
        nap(200000);
    }
    sim_unref(op);
}

void sim_wait_context(struct CUctx_st *context)
{
    for (;;) {
        struct sim_op *op = sim.first;

        while (op && op->context != context)
            op = op->next;
        if (!op)
            return;
        sim_wait_op(op, "a context-wide wait");
    }
}

/* --- timed
 * ---------------------------------------------------------------------------------------- */

static void *run_timed(void *unused)
{
    pthread_mutex_lock(&sim.lock);
    for (;;) {
        uint64_t now = sim_now_ns(), next = now + 2000000;

        for (struct sim_op *op = sim.first; op; op = op->next) {
            if (may_run(op) && !op->ends_ns) {
                uint64_t *busy = &sim.engine_free_ns[op->work.engine];
                bool exclusive = op->work.engine && op->work.engine != SIM_COMPUTE;
                uint64_t start = exclusive && *busy > now ? *busy : now;

                op->ends_ns = start + op->work.cost_ns + 1;
                if (exclusive)
                    *busy = op->ends_ns;
                /* The bytes move within that time, not on top of it. */
                if (op->work.kind == SIM_COPY)
                    run_copy(&op->work);
            }
        }
        for (struct sim_op *op = sim.first; op; op = op->next) {
            if (!op->ends_ns || op->state != SIM_WAITING)
                continue;
            if (op->ends_ns > now) {
                next = op->ends_ns < next ? op->ends_ns : next;
            } else if (run(op)) {
                next = now; /* what depends on it may begin */
                break;
            }
        }
        if (next > now)
            nap(next - now);
    }
    return unused;
}

/* SPDX-License-Identifier: MIT */
/* Every exported function comes in through sim_enter and goes out through sim_leave: there the call
 * is counted, traced and failed on demand, and there the scheduler gets its turn. Settings are read
 * from SIMGPU_... at the first call. */
#include "tests/simgpu/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct sim sim = {.lock = PTHREAD_MUTEX_INITIALIZER,
                  .changed = PTHREAD_COND_INITIALIZER,
                  .version = 13000,
                  .devices = 2,
                  .hang_s = 20,
                  .pin_limit = SIZE_MAX,
                  .last = &sim.first};

enum { NAMES = 1024 };
static struct {
    const char *name;
    unsigned long count;
} calls[NAMES];
static const char *failures;

/* A thread's id of the kernel comes back with another thread; a per-thread stream must not. */
unsigned long sim_thread(void)
{
    static unsigned long newest;
    static __thread unsigned long number;

    if (!number)
        number = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);
    return number;
}

uint64_t sim_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void read_settings(void)
{
    static const char *const names[] = {"eager", "lazy", "random", "slow", "timed"};
    const char *s = getenv("SIMGPU_SCHED");

    for (int i = 0; s; i++) {
        if (i == sizeof names / sizeof *names) {
            fprintf(stderr, "simgpu: SIMGPU_SCHED=%s is none of eager, lazy, random, slow, timed\n",
                    s);
            _exit(2);
        }
        if (strcmp(s, names[i]) == 0) {
            sim.scheduler = (enum sim_scheduler)i;
            break;
        }
    }
    sim.seed = (s = getenv("SIMGPU_SEED")) ? strtoull(s, NULL, 10) : 1;
    sim.seed += !sim.seed; /* zero would stay zero */
    sim.version = (s = getenv("SIMGPU_DRIVER_VERSION")) ? atoi(s) : 13000;
    sim.devices = (s = getenv("SIMGPU_DEVICES")) ? atoi(s) : 2;
    if (sim.devices < 0 || sim.devices > SIM_MOST_DEVICES)
        sim.devices = SIM_MOST_DEVICES;
    sim.hang_s = (s = getenv("SIMGPU_HANG_S")) ? atof(s) : 20;
    sim.pin_limit = (s = getenv("SIMGPU_PIN_LIMIT")) ? strtoull(s, NULL, 10) : SIZE_MAX;
    sim.trace = getenv("SIMGPU_TRACE") != NULL;
    failures = getenv("SIMGPU_FAIL");
    if (sim.scheduler == SIM_TIMED)
        sim_start_clock();
}

/* --- counts --- */

/* The function's row. NULL: never called, and none was made. */
static unsigned long *count_of(const char *name, bool make)
{
    unsigned h = 0;

    for (const char *c = name; *c; c++)
        h = h * 31 + (unsigned char)*c;
    for (unsigned i = h % NAMES;; i = (i + 1) % NAMES) {
        if (!calls[i].name && !make)
            return NULL;
        if (!calls[i].name)
            calls[i].name = name;
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i].count;
    }
}

void sim_count(const char *name)
{
    ++*count_of(name, true);
}

unsigned long simgpu_count(const char *function)
{
    unsigned long *row, n;

    pthread_mutex_lock(&sim.lock);
    row = count_of(function, false);
    n = row ? *row : 0;
    pthread_mutex_unlock(&sim.lock);
    return n;
}

unsigned long simgpu_stream_waits(void)
{
    unsigned long n;

    pthread_mutex_lock(&sim.lock);
    n = sim.stream_waits;
    pthread_mutex_unlock(&sim.lock);
    return n;
}

void simgpu_reset_counts(void)
{
    pthread_mutex_lock(&sim.lock);
    for (unsigned i = 0; i < NAMES; i++)
        calls[i].count = 0;
    sim.stream_waits = 0;
    pthread_mutex_unlock(&sim.lock);
}

/* SIMGPU_FAIL="cuMemHostRegister_v2:3,cuEventCreate:1+:2": the third call; every call, code 2. */
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

/* --- in and out --- */

static bool needs_no_init(const char *function)
{
    static const char *const names[] = {"cuInit", "cuGetProcAddress", "cuGetProcAddress_v2",
                                        "cuDriverGetVersion", "cuGetExportTable"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(function, names[i]) == 0)
            return true;
    return false;
}

CUresult sim_enter(const char *function)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    CUresult r;

    pthread_once(&once, read_settings);
    pthread_mutex_lock(&sim.lock);
    r = failure(function, ++*count_of(function, true));
    if (sim.trace)
        fprintf(stderr, "simgpu: %lu %s%s\n", sim_thread(), function,
                r ? " (failed on demand)" : "");
    if (r == CUDA_SUCCESS && !sim.initialised && !needs_no_init(function))
        r = CUDA_ERROR_NOT_INITIALIZED;
    if (r == CUDA_SUCCESS && sim_in_host_function())
        r = CUDA_ERROR_NOT_PERMITTED;
    if (r != CUDA_SUCCESS)
        pthread_mutex_unlock(&sim.lock);
    else
        sim_run_some();
    return r;
}

CUresult sim_leave(CUresult r)
{
    sim_run_some();
    pthread_mutex_unlock(&sim.lock);
    return r;
}

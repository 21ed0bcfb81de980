/* SPDX-License-Identifier: MIT */
#ifndef ES_SIMGPU_SIM_H
#define ES_SIMGPU_SIM_H
/* The simulated driver's inside: what its files share. README.md says what it models.
 *
 * One lock, sim.lock, guards everything; every exported function takes it with sim_enter and gives
 * it back with sim_leave. It is free while the host waits and while a host function runs. */

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* --- work: what an operation of a stream, or a node of a graph, does
 * ------------------------------ */

enum sim_kind {
    SIM_NOTHING,
    SIM_COPY,
    SIM_FILL,
    SIM_KERNEL,
    SIM_HOST_FUNCTION,
    SIM_WRITE,
    SIM_WAIT
};
enum sim_engine { SIM_NO_ENGINE, SIM_H2D, SIM_D2H, SIM_D2D, SIM_COMPUTE, SIM_ENGINES };

struct sim_kernel;

struct sim_work {
    enum sim_kind kind;
    enum sim_engine engine;
    uint64_t cost_ns; /* for the timed scheduler */
    union {
        struct {
            char *dst;
            const char *src; /* host addresses: device ones are translated when submitted */
            size_t width, rows, dst_pitch, src_pitch;
            char *owned; /* a snapshot of the source, freed afterwards */
        } copy;
        struct {
            char *dst;
            size_t width, rows, pitch;
            unsigned char pattern[4];
            unsigned size;
        } fill;
        struct {
            const struct sim_kernel *kernel;
            unsigned char params[256];
        } kernel;
        struct {
            CUhostFn function;
            void *data;
        } host;
        struct {
            volatile uint32_t *address;
            uint32_t value;
            unsigned flags;
        } value;
    };
};

/* --- operations
 * ----------------------------------------------------------------------------------- */

enum sim_state { SIM_WAITING, SIM_RUNNING, SIM_DONE };

struct sim_op {
    unsigned refs;
    enum sim_state state;
    struct sim_work work;
    struct sim_op **deps;
    unsigned dep_count;
    struct CUctx_st *context;
    uint64_t ends_ns; /* timed: when its time is over; 0: not begun */
    uint64_t done_ns;
    struct sim_op *next; /* of the outstanding ones, oldest first */
};

struct sim_op *sim_ref(struct sim_op *op);
void sim_unref(struct sim_op *op);

/* --- objects
 * -------------------------------------------------------------------------------------- */

struct CUctx_st {
    int device;
    unsigned long long id;
    unsigned flags;
    bool primary, alive;
    struct CUstream_st *legacy;
    struct CUstream_st *streams; /* all of them, the legacy one too */
};

struct sim_capture;

struct CUstream_st {
    struct CUctx_st *context;
    unsigned long long id;
    unsigned flags;
    int priority;
    unsigned long thread; /* of a per-thread stream; 0: another */
    bool alive;
    struct sim_op *last;     /* counted */
    struct sim_op *extra[8]; /* waited-for events since last; counted */
    unsigned extra_count;
    struct sim_capture *capture;
    unsigned capture_tail; /* node number plus one */
    unsigned capture_extra[8];
    unsigned capture_extra_count;
    struct CUstream_st *next;
};

struct CUevent_st {
    struct CUctx_st *context;
    unsigned flags;
    bool recorded;
    struct sim_op *op;           /* counted */
    struct sim_capture *capture; /* recorded inside one */
    unsigned capture_node;
    uint64_t recorded_ns;
};

struct sim_region {
    uint64_t start, bytes;
    char *alias; /* where the bytes are */
    enum { SIM_DEVICE = 1, SIM_HOST, SIM_REGISTERED, SIM_MANAGED, SIM_RESERVED } kind;
    int device;
    struct CUctx_st *context; /* NULL for pools and mappings */
    unsigned sync_memops;
    unsigned long long id;
    struct sim_region *next;
};

/* --- the machine
 * ---------------------------------------------------------------------------------- */

enum sim_scheduler { SIM_EAGER, SIM_LAZY, SIM_RANDOM, SIM_TIMED };

struct sim {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum sim_scheduler scheduler;
    uint64_t seed;
    int version, devices;
    double hang_s;
    size_t pin_limit, pinned, snapshot_bytes;
    bool initialised, trace;
    struct sim_op *first, **last; /* outstanding */
    uint64_t steps;               /* operations finished: progress */
    uint64_t engine_free_ns[SIM_ENGINES];
    struct sim_region *regions;
    unsigned long copying_thread; /* in a synchronous copy: holds the others' launches */
    unsigned copying_depth;
    struct sim_capture *captures;
};
extern struct sim sim;

unsigned long sim_thread(void);

/* sched.c */
CUresult
sim_enter(const char *function); /* counts, fails on demand, takes the lock when it succeeds */
CUresult sim_leave(CUresult r);  /* gives the lock back */
uint64_t sim_now_ns(void);
void sim_add(struct sim_op *op);
void sim_progress(struct sim_op *wanted); /* what the scheduler does at a query */
void sim_wait_op(struct sim_op *op, const char *what);
void sim_wait_context(struct CUctx_st *context);

/* context.c */
struct CUctx_st *sim_current(void);
CUresult sim_need_context(struct CUctx_st **context);

/* stream.c */
CUresult sim_stream(CUstream handle, bool per_thread, struct CUstream_st **stream);
struct CUstream_st *sim_new_stream(struct CUctx_st *context, unsigned flags, int priority);
/* Queues work, or adds it to the stream's capture. *op, if asked for: counted. */
CUresult sim_submit(struct CUstream_st *stream, const struct sim_work *work, struct sim_op **op);

/* memory.c */
struct sim_region *sim_region_at(uint64_t address);
char *sim_alias(uint64_t address, size_t bytes); /* NULL: not a range of one allocation */
bool sim_is_pageable(uint64_t address);

/* graph.c */
CUresult sim_unsafe(void); /* a call that a global capture forbids */
CUresult sim_capture_add(struct CUstream_st *stream, const struct sim_work *work);
CUresult sim_capture_wait(struct CUstream_st *stream, struct CUevent_st *event);
void sim_capture_record(struct CUstream_st *stream, struct CUevent_st *event);
void sim_capture_forget(struct CUstream_st *stream);
CUresult sim_implicit(struct CUctx_st *context); /* the legacy stream used beside a capture */
void sim_invalidate(struct sim_capture *capture);

/* kernels.c */
struct sim_kernel {
    const char *name;
    unsigned count;
    struct {
        unsigned offset, size;
    } params[6];
    bool (*step)(const unsigned char *params); /* false: it cannot end yet */
    uint64_t (*cost_ns)(const unsigned char *params);
};
const struct sim_kernel *sim_kernel_named(const char *name);
bool sim_is_kernel(const struct sim_kernel *kernel);

/* simgpu.h, for tests: how often a function was called. */
EXPORT unsigned long simgpu_count(const char *function);

#endif

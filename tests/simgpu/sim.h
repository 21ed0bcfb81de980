/* SPDX-License-Identifier: MIT */
#ifndef ES_SIMGPU_SIM_H
#define ES_SIMGPU_SIM_H
/* The simulated driver's inside: what its files share. README.md says what it models.
 *
 * One lock, sim.lock, guards everything; every exported function takes it with sim_enter and gives
 * it back with sim_leave. It is free while the host waits and while a host function runs: whatever
 * waits must look everything up again that another thread may have ended meanwhile. */

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/simgpu/simgpu.h"

#define EXPORT __attribute__((visibility("default")))

/* --- work: what an operation of a stream, or a node of a graph, does --- */

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
            size_t planes, dst_plane, src_plane; /* 3D; planes is 1 elsewhere */
            char *owned;                         /* a snapshot of the source, freed afterwards */
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
            volatile void *address;
            uint64_t value;
            unsigned flags, size; /* size: 4 or 8 bytes */
        } value;
    };
};

/* --- operations --- */

enum sim_state { SIM_WAITING, SIM_RUNNING, SIM_DONE };

struct sim_op {
    unsigned refs;
    enum sim_state state;
    struct sim_work work;
    struct sim_op **deps;
    unsigned dep_count;
    struct CUctx_st *context;
    uint64_t number;  /* in the order of submission */
    uint64_t walk;    /* the last one that looked at it */
    uint64_t ends_ns; /* timed: when its time is over; 0: not begun */
    uint64_t done_ns;
    struct sim_op *next;          /* of the outstanding ones, oldest first */
    struct sim_op *next_function; /* of the host functions that are due */
};

/* --- objects --- */

struct CUctx_st {
    int device;
    unsigned long long id;
    unsigned flags;
    bool primary, alive;
    struct CUstream_st *legacy;
    struct CUstream_st *streams; /* all of them, the legacy one too */
};

/* The nodes that a captured operation comes after, as numbers in the capture's graph. */
struct sim_nodes {
    unsigned number[16], count;
};

struct CUstream_st {
    struct CUctx_st *context;
    unsigned long long id;
    unsigned flags;
    int priority;
    unsigned long thread; /* of a per-thread stream; 0: another */
    bool alive;
    struct sim_op *last;   /* counted */
    struct sim_op **extra; /* waited-for events since last; counted */
    unsigned extra_count;
    struct sim_capture *capture;
    struct sim_nodes tail; /* in that capture */
    struct CUstream_st *next;
};

struct CUevent_st {
    struct CUctx_st *context;
    unsigned long long context_id; /* a primary context's handle outlives its reset */
    unsigned flags;
    bool recorded;
    struct sim_op *op;            /* counted */
    unsigned long long stream_id; /* where it was recorded last */
    unsigned long long capture;   /* the id of the capture it was recorded in; 0: none */
    struct sim_nodes nodes;
};

struct sim_region {
    uint64_t start, bytes;
    char *alias; /* where the bytes are */
    enum sim_memory { SIM_DEVICE = 1, SIM_HOST, SIM_REGISTERED, SIM_MANAGED } kind;
    int device;
    struct CUctx_st *context; /* NULL for pools, mappings and imports */
    enum { SIM_OWN, SIM_POOL, SIM_MAPPING, SIM_IMPORT, SIM_GLOBAL } origin;
    unsigned sync_memops, flags;
    unsigned long long id;
    struct sim_region *next;
};

/* --- the machine --- */

enum { SIM_MOST_DEVICES = 8 };
enum sim_scheduler { SIM_EAGER, SIM_LAZY, SIM_RANDOM, SIM_SLOW, SIM_TIMED };

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
    uint64_t submitted;
    uint64_t steps; /* operations finished: progress */
    uint64_t engine_free_ns[SIM_ENGINES];
    struct sim_region *regions;
    unsigned copying; /* threads in a synchronous copy: each holds the others' launches */
    unsigned long stream_waits;
    struct sim_capture *captures;
};
extern struct sim sim;

/* entry.c */
unsigned long sim_thread(void); /* the calling thread, by a number that never comes back */
uint64_t sim_now_ns(void);
void sim_count(const char *name); /* pre: the lock is held */
/* Counts, fails on demand, and takes the lock if it succeeds. */
CUresult sim_enter(const char *function);
CUresult sim_leave(CUresult r); /* gives the lock back */

/* sched.c */
struct sim_op *sim_ref(struct sim_op *op);
void sim_unref(struct sim_op *op);
void sim_depend(struct sim_op *op, struct sim_op *on);
void sim_add(struct sim_op *op);
void sim_finish(struct sim_op *op);
bool sim_may_run(const struct sim_op *op);
bool sim_run(struct sim_op *op); /* false: it cannot end yet, and nothing was done */
void sim_copy_bytes(struct sim_work *work);
void sim_run_some(void);                  /* what the scheduler does at every call */
void sim_progress(struct sim_op *wanted); /* at a query */
void sim_wait_op(struct sim_op *op, const char *what);
void sim_wait_context(struct CUctx_st *context);

/* threads.c: the driver's own */
void sim_nap(uint64_t ns); /* until something changed, or so long */
void sim_call_host_function(struct sim_op *op);
void sim_start_clock(void); /* the timed scheduler */
bool sim_in_host_function(void);

/* context.c */
struct CUctx_st *sim_current(void);
CUresult sim_need_context(struct CUctx_st **context);

/* stream.c */
CUresult sim_stream(CUstream handle, bool per_thread, struct CUstream_st **stream);
struct CUstream_st *sim_new_stream(struct CUctx_st *context, unsigned flags, int priority);
void sim_end_streams(struct CUctx_st *context);
/* Queues work, or adds it to the stream's capture. *op, if asked for: counted. */
CUresult sim_submit(struct CUstream_st *stream, const struct sim_work *work, struct sim_op **op);
struct sim_op *sim_new_op(struct CUctx_st *context, const struct sim_work *work); /* counted */
/* Makes it the stream's newest: after all that the stream holds. Takes the count over. */
void sim_append(struct CUstream_st *stream, struct sim_op *op);
/* Everything the stream holds now, as one operation, counted; NULL while it captures. */
struct sim_op *sim_marker(struct CUstream_st *stream);

/* copy.c */
#define SIM_DEVICE_SPEED 500.0 /* bytes a nanosecond, as the kernels' costs have it */
struct sim_side {              /* of a copy: its bytes, and whose they are */
    char *at;
    bool device, pageable, sync_memops;
};
CUresult sim_side(uint64_t address, size_t bytes, struct sim_side *side);
/* work: kind, shape, and the sides' addresses. */
CUresult sim_copy(struct CUstream_st *stream, bool sync, struct sim_work *work,
                  const struct sim_side *dst, const struct sim_side *src);
/* A launch, or what the driver treats like one: waits while another thread is in a sync copy. */
void sim_hold(void);

/* memory.c */
struct sim_region *sim_region_at(uint64_t address);
char *sim_alias(uint64_t address, size_t bytes); /* NULL: not all of it is known */
struct sim_region *sim_add_region(uint64_t start, size_t bytes, char *alias, enum sim_memory kind,
                                  struct CUctx_st *context, int device);
struct sim_region *sim_take_region(uint64_t start, enum sim_memory kind);
void *sim_map(size_t bytes, int protection);
/* Device memory: nobody's address range, and bytes elsewhere. */
struct sim_region *sim_device_memory(size_t bytes, struct CUctx_st *context, int device);
void sim_discard(struct sim_region *region);
void sim_end_memory(struct CUctx_st *context);
void sim_end_pool(int device); /* pool.c */
/* Where memory is that was freed into a pool behind work that still uses it; NULL: it is none. */
void *sim_pool_alias(uint64_t address, size_t bytes);

/* capture.c */
CUresult sim_unsafe(void); /* a call that a global capture forbids */
CUresult sim_capture_add(struct CUstream_st *stream, const struct sim_work *work);
CUresult sim_capture_wait(struct CUstream_st *stream, struct CUevent_st *event);
void sim_capture_record(struct CUstream_st *stream, struct CUevent_st *event);
void sim_capture_forget(struct CUstream_st *stream);
CUresult sim_capture_asked(struct CUstream_st *stream, struct CUevent_st *event);
CUresult sim_implicit(struct CUctx_st *context); /* the legacy stream used beside a capture */

/* graph.c */
struct CUgraphNode_st {
    struct sim_work work;
    struct sim_nodes deps;
    unsigned number;
    struct CUgraph_st *graph;
};
struct CUgraph_st {
    struct CUgraphNode_st **nodes;
    size_t count;
};
struct CUgraph_st *sim_new_graph(void);
struct CUgraphNode_st *sim_add_node(struct CUgraph_st *graph, const struct sim_work *work,
                                    const struct sim_nodes *deps);
void sim_free_graph(struct CUgraph_st *graph);

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

#endif

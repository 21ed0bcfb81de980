/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_COUNT_H
#define ES_SHIM_COUNT_H
/* How often each group of driver calls was seen. Any thread, any time; a count costs one
 * uncontended atomic add. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/stream.h"

/* The groups of intercept/hooks.def, and their words in the log. */
#define ES_SEEN_GROUPS(X)                                                                          \
    X(RESOLVE, "look-ups by cuGetProcAddress")                                                     \
    X(START, "initialisations")                                                                    \
    X(EXPORT_TABLE, "private tables asked for")                                                    \
    X(COPY, "copies")                                                                              \
    X(COPY_OTHER, "other copies")                                                                  \
    X(MEMSET, "memsets")                                                                           \
    X(MEMORY, "other work on memory")                                                              \
    X(LAUNCH, "kernel launches")                                                                   \
    X(GRAPH_LAUNCH, "graph launches")                                                              \
    X(GRAPH, "graph calls")                                                                        \
    X(HOST_FUNC, "host functions")                                                                 \
    X(RECORD, "event records")                                                                     \
    X(WAIT, "stream waits")                                                                        \
    X(COMPLETED, "stream waits left out, their events being complete")                             \
    X(ORDERED, "stream waits left out, as the stream had waited already")                          \
    X(EVENT, "events made or destroyed")                                                           \
    X(TIMING, "timing events made")                                                                \
    X(STREAM, "streams made, set or destroyed")                                                    \
    X(SYNC, "synchronizes and queries")                                                            \
    X(CAPTURE, "captures begun or ended")                                                          \
    X(MEMOP, "stream memory operations")                                                           \
    X(EXTERNAL, "calls about semaphores and graphics")                                             \
    X(DEVICE_ALLOC, "device allocations")                                                          \
    X(ALLOC, "allocations")                                                                        \
    X(FREE, "frees")                                                                               \
    X(FOREIGN, "memory shared or mapped")                                                          \
    X(ATTRIBUTE, "memory attributes")                                                              \
    X(MODULE, "calls about code")                                                                  \
    X(UNLOAD, "code unloaded")                                                                     \
    X(TEXTURE, "calls about textures")                                                             \
    X(CONTEXT_MADE, "contexts made")                                                               \
    X(CONTEXT, "calls about contexts")                                                             \
    X(UNKNOWN, "calls of unknown functions")

enum es_seen {
#define X(id, text) ES_SEEN_##id,
    ES_SEEN_GROUPS(X)
#undef X
        ES_SEEN_COUNT
};

/* Threads are spread over a few cache lines, so that launching threads do not share one. */
enum { ES_COUNT_SHARDS = 16 };
struct es_count_shard {
    _Alignas(64) atomic_uint_fast64_t n[ES_SEEN_COUNT];
};
extern struct es_count_shard es_count_shards[ES_COUNT_SHARDS];
/* This thread's shard plus one, and whether it has given a stream work. 0: not met yet. */
enum { ES_COUNT_SUBMITS = 1 << 16 };
extern __attribute__((tls_model("initial-exec"))) __thread unsigned es_count_thread;
extern atomic_bool es_count_is_begun;
void es_count_meet_thread(bool submits);

/* How often calls were seen that may change what a kernel's handle is, or may do: these are rare.
 */
extern atomic_uint_fast64_t es_count_upheavals;
static inline bool es_count_is_upheaval(enum es_seen group)
{
    return group == ES_SEEN_UNLOAD || group == ES_SEEN_TEXTURE || group == ES_SEEN_CONTEXT ||
           group == ES_SEEN_CONTEXT_MADE || group == ES_SEEN_UNKNOWN;
}

/* Whether a group of calls gives a stream work to do, as far as memory is concerned; or may. */
static inline bool es_count_is_work(enum es_seen group)
{
    return group == ES_SEEN_COPY || group == ES_SEEN_COPY_OTHER || group == ES_SEEN_MEMSET ||
           group == ES_SEEN_MEMORY || group == ES_SEEN_LAUNCH || group == ES_SEEN_GRAPH_LAUNCH ||
           group == ES_SEEN_HOST_FUNC || group == ES_SEEN_MEMOP || group == ES_SEEN_UNKNOWN;
}

/* Whether a group of calls cannot tell what is done, or is ordered after it on its stream (debt.h).
 */
static inline bool es_count_is_ordered(enum es_seen group)
{
    return group == ES_SEEN_RESOLVE || group == ES_SEEN_START || group == ES_SEEN_EXPORT_TABLE ||
           group == ES_SEEN_COPY || group == ES_SEEN_COPY_OTHER || group == ES_SEEN_MEMSET ||
           group == ES_SEEN_MEMORY || group == ES_SEEN_LAUNCH || group == ES_SEEN_RECORD ||
           group == ES_SEEN_WAIT || group == ES_SEEN_COMPLETED || group == ES_SEEN_ORDERED ||
           group == ES_SEEN_EVENT || group == ES_SEEN_TIMING || group == ES_SEEN_DEVICE_ALLOC;
}

/* What a call of a group may do that gives a stream work (enum es_effect). */
static inline unsigned es_count_effects(enum es_seen group)
{
    if (group == ES_SEEN_WAIT)
        return 0;
    if (group == ES_SEEN_LAUNCH || group == ES_SEEN_MEMSET)
        return ES_OPAQUE | ES_HOST | ES_LONG;
    if (group == ES_SEEN_ALLOC || group == ES_SEEN_FREE)
        return ES_OPAQUE | ES_LONG;
    return ES_OPAQUE | ES_OBSERVABLE | ES_LONG;
}

static inline bool es_count_begun(void)
{
    return atomic_load_explicit(&es_count_is_begun, memory_order_acquire);
}

static inline void es_count(enum es_seen group)
{
    unsigned wanted = es_count_is_work(group) ? ES_COUNT_SUBMITS : ES_COUNT_SUBMITS - 1;

    if (__builtin_expect(!(es_count_thread & wanted), 0))
        es_count_meet_thread(es_count_is_work(group));
    atomic_fetch_add_explicit(
        &es_count_shards[(es_count_thread & (ES_COUNT_SUBMITS - 1)) - 1].n[group], 1,
        memory_order_relaxed);
    if (es_count_is_upheaval(group))
        atomic_fetch_add(&es_count_upheavals, 1);
}

/* How many threads have given a stream work so far, up to the call in progress. */
unsigned es_count_submitters(void);

/* The sum over all threads so far. */
uint64_t es_count_total(enum es_seen group);

/* Back to zero: in a forked child, whose counts are its own. */
void es_count_reset(void);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_COUNT_H
#define ES_SHIM_COUNT_H
/* How often each group of driver calls was seen. Any thread, any time; a count costs one
 * uncontended atomic add. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The groups of intercept/hooks.def, and their words in the log. */
#define ES_SEEN_GROUPS(X)                                                                          \
    X(RESOLVE, "look-ups by cuGetProcAddress")                                                     \
    X(START, "initialisations")                                                                    \
    X(COPY, "copies")                                                                              \
    X(COPY_OTHER, "other copies")                                                                  \
    X(MEMSET, "memsets")                                                                           \
    X(LAUNCH, "kernel launches")                                                                   \
    X(GRAPH_LAUNCH, "graph launches")                                                              \
    X(HOST_FUNC, "host functions")                                                                 \
    X(RECORD, "event records")                                                                     \
    X(WAIT, "stream waits")                                                                        \
    X(EVENT, "events made or destroyed")                                                           \
    X(STREAM, "streams made or destroyed")                                                         \
    X(SYNC, "synchronizes and queries")                                                            \
    X(CAPTURE, "captures begun or ended")                                                          \
    X(ALLOC, "allocations")                                                                        \
    X(FREE, "frees")                                                                               \
    X(FOREIGN, "memory shared or mapped")                                                          \
    X(CONTEXT, "contexts ended")

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
extern __attribute__((tls_model("initial-exec"))) __thread unsigned es_count_shard_plus_one;
extern atomic_bool es_count_is_begun;
unsigned es_count_pick_shard(void);

static inline bool es_count_begun(void)
{
    return atomic_load_explicit(&es_count_is_begun, memory_order_acquire);
}

static inline void es_count(enum es_seen group)
{
    unsigned shard = es_count_shard_plus_one;

    if (__builtin_expect(shard == 0, 0))
        shard = es_count_pick_shard();
    atomic_fetch_add_explicit(&es_count_shards[shard - 1].n[group], 1, memory_order_relaxed);
}

/* The sum over all threads so far. */
uint64_t es_count_total(enum es_seen group);

/* Back to zero: in a forked child, whose counts are its own. */
void es_count_reset(void);

#endif

/* SPDX-License-Identifier: MIT */
#include "shim/count.h"

struct es_count_shard es_count_shards[ES_COUNT_SHARDS];
/* initial-exec: the library is always there at start, and a TLS call would cost more than the
 * count. */
__attribute__((tls_model("initial-exec"))) __thread unsigned es_count_thread;
atomic_bool es_count_is_begun;
atomic_uint_fast64_t es_count_upheavals;
static atomic_uint submitters;

void es_count_meet_thread(bool submits)
{
    static atomic_uint next;

    if (!es_count_thread)
        es_count_thread = atomic_fetch_add(&next, 1) % ES_COUNT_SHARDS + 1;
    if (submits && !(es_count_thread & ES_COUNT_SUBMITS)) {
        es_count_thread |= ES_COUNT_SUBMITS;
        atomic_fetch_add(&submitters, 1);
    }
}

unsigned es_count_submitters(void)
{
    return atomic_load_explicit(&submitters, memory_order_relaxed);
}

uint64_t es_count_total(enum es_seen group)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < ES_COUNT_SHARDS; i++)
        sum += atomic_load_explicit(&es_count_shards[i].n[group], memory_order_relaxed);
    return sum;
}

void es_count_reset(void)
{
    for (unsigned i = 0; i < ES_COUNT_SHARDS; i++)
        for (enum es_seen g = 0; g < ES_SEEN_COUNT; g++)
            atomic_store_explicit(&es_count_shards[i].n[g], 0, memory_order_relaxed);
}

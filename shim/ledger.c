/* SPDX-License-Identifier: MIT */
#include "shim/ledger.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct counters {
    _Atomic uint64_t copies, bytes, blocked_ns;
};

/* Open addressing by a hash of direction and stack, 64 bits wide: two stacks with the same one are
 * not met in practice. A slot is claimed by its hash, and never freed. */
struct site {
    _Atomic uint64_t hash; /* 0: free */
    _Atomic unsigned dir;
    _Atomic(const char *) api;
    _Atomic(const void *) frames[ES_FRAMES];
    struct counters n;
    _Atomic uint64_t staged;
};

static struct counters outcomes[ES_DIRECTIONS][ES_REASON_COUNT];
static struct site sites[ES_LEDGER_SITES];
static _Atomic uint64_t dropped, rest, verified, differed;

static void add(struct counters *c, uint64_t bytes, uint64_t blocked_ns)
{
    atomic_fetch_add_explicit(&c->copies, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->blocked_ns, blocked_ns, memory_order_relaxed);
}

static uint64_t hash_of(enum es_direction dir, const struct es_stack *stack)
{
    uint64_t h = dir + 1;

    for (unsigned i = 0; i < ES_FRAMES && stack->frames[i]; i++) {
        h = (h ^ (uintptr_t)stack->frames[i]) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h ? h : 1;
}

static struct site *site_of(enum es_direction dir, const struct es_stack *stack)
{
    uint64_t hash = hash_of(dir, stack);

    for (unsigned i = 0; i < 16; i++) {
        struct site *s = &sites[(hash + i) % ES_LEDGER_SITES];
        uint64_t held = atomic_load_explicit(&s->hash, memory_order_relaxed);

        if (!held && atomic_compare_exchange_strong(&s->hash, &held, hash)) {
            atomic_store_explicit(&s->dir, dir, memory_order_relaxed);
            atomic_store_explicit(&s->api, stack->api, memory_order_relaxed);
            for (unsigned f = 0; f < ES_FRAMES; f++)
                atomic_store_explicit(&s->frames[f], stack->frames[f], memory_order_relaxed);
            return s;
        }
        if (held == hash)
            return s;
    }
    return NULL;
}

void es_ledger_add(enum es_direction dir, enum es_reason why, uint64_t bytes, uint64_t blocked_ns,
                   const struct es_stack *stack)
{
    struct site *s = site_of(dir, stack);

    add(&outcomes[dir][why], bytes, blocked_ns);
    if (!s) {
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
        return;
    }
    add(&s->n, bytes, blocked_ns);
    if (why == ES_WHY_NONE)
        atomic_fetch_add_explicit(&s->staged, 1, memory_order_relaxed);
}

void es_ledger_add_rest(uint64_t bytes)
{
    atomic_fetch_add_explicit(&rest, bytes, memory_order_relaxed);
}

void es_ledger_add_verified(bool same)
{
    atomic_fetch_add_explicit(same ? &verified : &differed, 1, memory_order_relaxed);
}

static struct es_tally read_counters(const struct counters *c)
{
    return (struct es_tally){atomic_load(&c->copies), atomic_load(&c->bytes),
                             atomic_load(&c->blocked_ns)};
}

int es_site_order(const void *a, const void *b)
{
    const struct es_site *x = a, *y = b;

    return (x->tally.blocked_ns < y->tally.blocked_ns) -
           (x->tally.blocked_ns > y->tally.blocked_ns);
}

void es_ledger_read(struct es_ledger *out)
{
    memset(out, 0, sizeof *out);
    for (enum es_direction d = 0; d < ES_DIRECTIONS; d++) {
        for (enum es_reason w = 0; w < ES_REASON_COUNT; w++)
            out->by_outcome[d][w] = read_counters(&outcomes[d][w]);
    }
    for (unsigned i = 0; i < ES_LEDGER_SITES; i++) {
        struct es_site *to = &out->sites[out->site_count];

        if (!atomic_load(&sites[i].hash))
            continue;
        to->dir = atomic_load(&sites[i].dir);
        to->stack.api = atomic_load(&sites[i].api);
        for (unsigned f = 0; f < ES_FRAMES; f++)
            to->stack.frames[f] = atomic_load(&sites[i].frames[f]);
        to->tally = read_counters(&sites[i].n);
        to->staged = atomic_load(&sites[i].staged);
        out->site_count++;
    }
    qsort(out->sites, out->site_count, sizeof out->sites[0], es_site_order);
    out->rest_bytes = atomic_load(&rest);
    out->verified = atomic_load(&verified);
    out->differed = atomic_load(&differed);
    out->sites_dropped = atomic_load(&dropped);
}

uint64_t es_ledger_staged(void)
{
    uint64_t staged = 0;

    for (enum es_direction d = 0; d < ES_DIRECTIONS; d++)
        staged += atomic_load_explicit(&outcomes[d][ES_WHY_NONE].copies, memory_order_relaxed);
    return staged;
}

void es_ledger_reset(void)
{
    memset(outcomes, 0, sizeof outcomes);
    memset(sites, 0, sizeof sites);
    dropped = rest = verified = differed = 0;
}

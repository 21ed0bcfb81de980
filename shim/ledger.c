/* SPDX-License-Identifier: MIT */
#include "shim/ledger.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct counters {
    _Atomic uint64_t copies, bytes, blocked_ns;
};

/* Open addressing by call site and direction; a slot is claimed by its address and never freed. */
struct site {
    _Atomic(const void *) address;
    struct counters n;
};

static struct counters outcomes[ES_DIRECTIONS][ES_REASON_COUNT];
static struct site sites[ES_DIRECTIONS][ES_LEDGER_SITES / ES_DIRECTIONS];
static _Atomic uint64_t dropped, rest, verified, differed;

static void add(struct counters *c, uint64_t bytes, uint64_t blocked_ns)
{
    atomic_fetch_add_explicit(&c->copies, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->blocked_ns, blocked_ns, memory_order_relaxed);
}

static struct counters *site_of(enum es_direction dir, const void *address)
{
    enum { SLOTS = ES_LEDGER_SITES / ES_DIRECTIONS };
    unsigned start = (unsigned)((uintptr_t)address * 0x9E3779B1u >> 8) % SLOTS;

    for (unsigned i = 0; i < 16; i++) {
        struct site *s = &sites[dir][(start + i) % SLOTS];
        const void *held = NULL;

        if (atomic_compare_exchange_strong(&s->address, &held, address) || held == address)
            return &s->n;
    }
    return NULL;
}

void es_ledger_add(enum es_direction dir, enum es_reason why, uint64_t bytes, uint64_t blocked_ns,
                   const void *site)
{
    struct counters *c = site_of(dir, site);

    add(&outcomes[dir][why], bytes, blocked_ns);
    if (c)
        add(c, bytes, blocked_ns);
    else
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
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

static int by_blocked(const void *a, const void *b)
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
        for (unsigned i = 0; i < ES_LEDGER_SITES / ES_DIRECTIONS; i++) {
            const void *address = atomic_load(&sites[d][i].address);

            if (address)
                out->sites[out->site_count++] =
                    (struct es_site){address, d, read_counters(&sites[d][i].n)};
        }
    }
    qsort(out->sites, out->site_count, sizeof out->sites[0], by_blocked);
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

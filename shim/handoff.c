/* SPDX-License-Identifier: MIT */
#include "shim/handoff.h"

#include <stdatomic.h>
#include <string.h>

static atomic_bool on;
static struct {
    _Atomic uint64_t count, bytes, left;
} sums[ES_VERDICT_COUNT];

static struct es_handoff kept[ES_HANDOFFS_KEPT];
static atomic_uint taken; /* places in kept */
static atomic_bool is_written[ES_HANDOFFS_KEPT];

void es_handoff_configure(bool yes)
{
    atomic_store(&on, yes);
}

void es_handoff_add(const struct es_handoff *h)
{
    unsigned place;

    if (!atomic_load_explicit(&on, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&sums[h->verdict].count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&sums[h->verdict].bytes, h->bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&sums[h->verdict].left, h->left, memory_order_relaxed);
    /* Those that went without saying are not worth a line. */
    if (h->verdict == ES_VERDICT_IDLE || atomic_load(&taken) >= ES_HANDOFFS_KEPT)
        return;
    place = atomic_fetch_add(&taken, 1);
    if (place < ES_HANDOFFS_KEPT) {
        kept[place] = *h;
        atomic_store(&is_written[place], true);
    }
}

void es_handoff_read(struct es_handoffs *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned v = 0; v < ES_VERDICT_COUNT; v++) {
        out->count[v] = atomic_load(&sums[v].count);
        out->sum[v].bytes = atomic_load(&sums[v].bytes);
        out->sum[v].left = atomic_load(&sums[v].left);
    }
}

bool es_handoff_kept(unsigned i, struct es_handoff *out)
{
    if (i >= ES_HANDOFFS_KEPT || !atomic_load(&is_written[i]))
        return false;
    *out = kept[i];
    return true;
}

void es_handoff_reset(void)
{
    memset(sums, 0, sizeof sums);
    for (unsigned i = 0; i < ES_HANDOFFS_KEPT; i++)
        atomic_store(&is_written[i], false);
    atomic_store(&taken, 0);
}

/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_LEDGER_H
#define ES_SHIM_LEDGER_H
/* What became of every copy: the figures of the log. Any thread; no lock; nothing blocks. */

#include <stdint.h>

#include "policy/place.h"
#include "shim/stack.h"

struct es_tally {
    uint64_t copies, bytes, blocked_ns; /* blocked: from the call to its return, on the host */
};

/* One copy is over. why ES_WHY_NONE: it was staged. stack: copied. */
void es_ledger_add(enum es_direction dir, enum es_reason why, uint64_t bytes, uint64_t blocked_ns,
                   const struct es_stack *stack);

/* Bytes of a staged copy that the driver copied after all, behind the staged part. */
void es_ledger_add_rest(uint64_t bytes);

/* EPOCHSHIM_VERIFY: one more copy compared. */
void es_ledger_add_verified(bool same);

struct es_site {
    struct es_stack stack;
    enum es_direction dir;
    struct es_tally tally;
    uint64_t staged; /* of tally.copies */
};

/* For qsort: most blocked time first. */
int es_site_order(const void *a, const void *b);

enum { ES_LEDGER_SITES = 512 };

struct es_ledger {
    struct es_tally by_outcome[ES_DIRECTIONS][ES_REASON_COUNT];
    uint64_t rest_bytes;
    uint64_t verified, differed;
    uint64_t sites_dropped; /* copies whose stack was one beyond the table */
    unsigned site_count;
    struct es_site sites[ES_LEDGER_SITES]; /* most blocked time first */
};

/* A consistent enough view: copies that end meanwhile may be in a part of it. */
void es_ledger_read(struct es_ledger *out);

/* Copies staged so far, for EPOCHSHIM_LIMIT. */
uint64_t es_ledger_staged(void);

void es_ledger_reset(void);

#endif

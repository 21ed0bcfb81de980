/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_POOL_H
#define ES_SHIM_POOL_H
/* Pinned staging memory of one context, in chunks of one size, each with an event.
 *
 * A copy leases chunks, uses them, and returns them; a chunk whose event has not completed is
 * leased to nobody. Leasing never waits: it gives what is free now, and pins more up to a limit.
 * Any thread. pre (all but es_pool_return): the context is current, and the thread's capture mode
 * is relaxed. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/port.h"

struct es_chunk {
    void *memory;
    CUevent event;         /* of the chunk's last copy, when pending */
    bool pending;          /* event was recorded and not yet seen complete */
    bool lost;             /* in use by a copy that no event tells of: leased to nobody any more */
    struct es_chunk *next; /* the pool's */
};

struct es_pool;

/* The pool of the current context, made when there is none. id tells a context from another that
 * had the same handle before it (0: not known). NULL without memory. */
struct es_pool *es_pool_of(const struct es_port *port, CUcontext context, uint64_t id,
                           uint64_t chunk_bytes, uint64_t most_bytes);

/* Up to want free chunks into out[]; returns how many. Pins more memory when too few are free. */
unsigned es_pool_lease(struct es_pool *pool, unsigned want, struct es_chunk **out);

/* Gives leased chunks back. Ends the lease on the pool itself, which may end with its context. */
void es_pool_return(struct es_pool *pool, struct es_chunk **chunks, unsigned n);

/* Around the end of a context: takes its pool off the list (NULL: it has none), so that no new copy
 * leases from it; then either ends it, once the driver has ended the context, or puts it back.
 * Ended, its memory goes with the last lease. */
struct es_pool *es_pool_detach(CUcontext context);
void es_pool_end(struct es_pool *pool);
void es_pool_attach(struct es_pool *pool);

/* A context may have ended, and the driver cannot tell contexts apart (before 12.0): new copies pin
 * anew. The memory stays mapped, since the driver may still hold it as pinned: another mapping that
 * came there would be taken for it. */
void es_pool_abandon_all(void);

/* Bytes pinned now and at most, over all contexts; and the size at which the driver first refused
 * to pin more (0: never). */
struct es_pool_totals {
    uint64_t pinned, peak, refused_at;
};
struct es_pool_totals es_pool_totals(void);

void es_pool_after_fork(void);

#endif

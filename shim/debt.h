/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_DEBT_H
#define ES_SHIM_DEBT_H
/* Early return, and what it owes.
 *
 * A synchronous H2D copy natively returns after all the work queued before it. Where nothing can
 * tell whether that work is done (policy/place.h), and nothing that was submitted can touch the
 * memory it fills, the copy is made on a stream of our own, beside the queue, and returns at once.
 * What it did not wait for is its debt. Until the debt is settled
 *   - the blocking streams, and the legacy stream, are ordered after it by the legacy stream's own
 *     rule: an event was recorded there, behind a wait for the copy;
 *   - a non-blocking stream is made to wait for that event before the next work on it: the
 *     thread's natively comes later still, and another's native holds until the copy returns, or
 *     cannot tell whether it has (tests/hardware/README.md);
 *   - every call that is no such work (a query, a synchronize, a free, anything unknown), and the
 *     end of the process, first waits for the event on the host: it natively finds all of it done.
 * There is one debt; a later early return makes it greater.
 *
 * Sources: CUDA, "Stream synchronization behavior" (legacy stream); tests/hardware/README.md (a
 * bare wait of the legacy stream orders blocking streams after it). */

#include <stdatomic.h>
#include <stdbool.h>

#include "shim/port.h"

extern atomic_bool es_debt_owed;
static inline bool es_debt_is_owed(void)
{
    return atomic_load_explicit(&es_debt_owed, memory_order_relaxed);
}

/* The side stream is one thread's at a time. False: it is another's. */
bool es_debt_take_side(void);
void es_debt_leave_side(void);

/* The stream to copy on, in the current context, made at the first call; NULL if the driver makes
 * none. id: the context's (0: not known). pre: it is this thread's. */
CUstream es_debt_side_stream(const struct es_port *port, CUcontext context, uint64_t id);

/* Makes it wait for all that a stream of the program was given so far. pre: it was made, and is
 * this thread's; the other is not destroyed meanwhile. */
bool es_debt_side_waits_for(CUstream stream);

/* The calling thread's copy is queued on the side stream, whole: what it did not wait for is owed.
 * pre: the thread holds every stream. False: the driver failed, and all is waited for. */
bool es_debt_owe(const struct es_port *port);

/* Before work on a stream. May block for the debt. */
void es_debt_join(CUstream stream);

/* Waits until nothing is owed. Blocks for the queued work. errno is kept. */
void es_debt_settle(void);

void es_debt_after_fork(void);

#endif

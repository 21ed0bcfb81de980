/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_TOUCH_H
#define ES_SHIM_TOUCH_H
/* What work may touch which memory. Memory is a live allocation of cuMemAlloc, from its birth on:
 * work that was submitted before cannot touch it, and an address that comes back is new memory.
 * (What pools hand out may be recycled behind work that is still queued, mapped physical memory may
 * have a second address, and managed memory is the host's, too: of all these nothing is said.)
 *
 * An operation touches a range that is noted here, or it is opaque (shim/stream.h): then it may
 * touch all that was born before it. Noted is of each stream the newest read and write, and the
 * span of those that are not complete.
 *
 * All functions: any thread; one short lock; nothing blocks; errno is kept. Where notes are lost
 * for want of memory, the allocation is not known. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/clock.h"
#include "shim/stream.h"

void es_touch_born(uint64_t start, uint64_t bytes);
void es_touch_gone(uint64_t start); /* before it is freed */

/* The operation of this epoch of a stream touches the range. False: it is not in one live
 * allocation. A handoff from another of the program's streams is noted for the log. */
bool es_touch(const struct es_stream *s, uint64_t epoch, uint64_t start, uint64_t bytes,
              bool write);

/* Whether a word may be an address in such memory: none lies below 4 GiB. */
static inline bool es_touch_may_be(uint64_t word)
{
    return word >= (uint64_t)1 << 32 && word < (uint64_t)1 << 47;
}

/* The same, of the whole allocations around n addresses, ES_TOUCH_MOST at most; all are read and
 * written. Those that are in none are moved to the front; returns how many. */
enum { ES_TOUCH_MOST = 64 };
unsigned es_touch_all(const struct es_stream *s, uint64_t epoch, uint64_t *addresses, unsigned n);

/* Who may still touch the range (write it): of each stream the newest epoch that may and is not
 * known to be complete. Returns how many; -1: not known, or more than fit. */
enum { ES_TOUCHERS = 8 };
int es_touch_who(uint64_t start, uint64_t bytes, bool only_writes, struct es_tick who[ES_TOUCHERS]);

void es_touch_after_fork(void);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_EVENT_H
#define ES_SHIM_EVENT_H
/* Which events are known to be complete: then a wait for one does nothing, and need not be made.
 *
 * A fact counts only for an event whose every record was seen: made by cuEventCreate, not shared
 * with another process, and recorded by cuEventRecord outside captures. It is gone with the next
 * record, and a query that ran while one was under way tells nothing. Any thread; no lock; nothing
 * blocks. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/port.h"

/* Before the first call. on: whether waits may be left out at all. */
void es_event_configure(bool on);

void es_event_made(CUevent event, unsigned flags);
void es_event_gone(CUevent event); /* before it is destroyed */

/* Around a record. plain: by cuEventRecord, outside captures; else the event never tells again. */
void es_event_record_begin(CUevent event, bool plain);
void es_event_record_end(CUevent event);

/* Around a query or a synchronize that says it is complete. */
uint64_t es_event_ask(CUevent event);
void es_event_complete(CUevent event, uint64_t asked);

/* Events may be recorded by doors that are not followed one by one (graphs, other processes): from
 * now on no event tells anything. */
void es_event_stop(void);

/* Whether a wait of this stream for the event may be left out. */
bool es_event_needs_no_wait(CUevent event, CUstream stream);

#endif

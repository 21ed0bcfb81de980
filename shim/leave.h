/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_LEAVE_H
#define ES_SHIM_LEAVE_H
/* Whether a synchronous copy may leave its place behind the queued work: the facts for
 * policy/place.h that are about other work. Any thread; nothing blocks. */

#include "policy/place.h"
#include "shim/handoff.h"
#include "shim/port.h"

/* Before the first copy. port must live until exit. */
void es_leave_configure(const struct es_port *port);

/* Whether work was queued that is worth leaving behind; and whether copies may leave it in this
 * process. Both ask the driver nothing. */
bool es_leave_is_worth(void);
bool es_leave_is_followed(void);

/* Whether the memory may be copied beside the queue: all that may still touch it is done, or (D2H)
 * covered by an event. Asks the driver nothing. */
bool es_leave_is_clear(enum es_direction dir, CUdeviceptr device, uint64_t bytes);

/* Sets clear, behind and observable, now also by what the streams say. pre: es_leave_is_followed;
 * the capture mode is relaxed. */
void es_leave_look_around(CUdeviceptr device, struct es_copy_facts *f);

/* Makes a stream of our own wait for what may still write the memory, and says in *h (zeroed
 * before) for what, and what is left behind. pre: no stream is given work meanwhile. False: that
 * cannot be had. */
bool es_leave_wait(CUstream own, enum es_direction dir, CUdeviceptr device, uint64_t bytes,
                   struct es_handoff *h);

#endif

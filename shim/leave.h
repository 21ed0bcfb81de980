/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_LEAVE_H
#define ES_SHIM_LEAVE_H
/* Whether a synchronous copy may leave its place behind the queued work: the facts for
 * policy/place.h that are about other work. Any thread; nothing blocks but es_leave_wait. */

#include "policy/place.h"
#include "shim/handoff.h"
#include "shim/port.h"

/* Before the first copy. port must live until exit. */
void es_leave_configure(const struct es_port *port, enum es_kernels kernels);

/* Whether more than one thread has given streams work; and whether copies may ever again leave
 * their places: then all that touches memory has to be noted before others may look. What several
 * threads do can be followed only where it is known what their kernels touch (design, "Several
 * threads"). */
bool es_leave_is_threaded(void);
bool es_leave_is_ever(void);

/* Whether work was queued that is worth leaving behind; and whether copies may leave it in this
 * process. Both ask the driver nothing. */
bool es_leave_is_worth(void);
bool es_leave_is_followed(void);

/* Whether the memory may be copied beside the queue: all that may still touch it is done, or (D2H)
 * covered by an event, or on a stream that can be waited for without others. Asks the driver
 * nothing. */
bool es_leave_is_clear(enum es_direction dir, CUdeviceptr device, uint64_t bytes);

/* Sets clear, behind and observable, now also by what the streams say. pre: the capture mode is
 * relaxed. */
void es_leave_look_around(CUdeviceptr device, struct es_copy_facts *f);

/* Waits, by a stream of our own, for what may still write the memory, and says in *h (zeroed
 * before) for what, and what is left behind. Blocks for the work that the copy has to wait for.
 * False: that cannot be had. */
bool es_leave_wait(CUstream own, enum es_direction dir, CUdeviceptr device, uint64_t bytes,
                   struct es_handoff *h);

/* Whether the memory may be copied beside the queue now, without waiting for anything. pre: the
 * thread holds every stream, and es_leave_wait was true. */
bool es_leave_is_free(enum es_direction dir, CUdeviceptr device, uint64_t bytes);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_FACTS_H
#define ES_SHIM_FACTS_H
/* What the driver says of a copy: its stream, and the memory on both sides. Any thread; the driver
 * is asked, nothing blocks. */

#include "shim/copy.h"

/* The context that owns the copy's stream. False: there is none. */
bool es_facts_context_of(const struct es_port *port, CUstream stream, CUcontext current,
                         CUcontext *context);

/* Sets capturing, unfit, sync_memops, host and device. pre: context is current. */
void es_facts_gather(const struct es_port *port, const struct es_copy *c, CUcontext context,
                     struct es_copy_facts *f);

/* The direction of a copy by unified addresses; false if it is not between device memory and host
 * memory that the driver does not know, or if a capture is open: then nothing is asked. */
bool es_facts_direction(const struct es_port *port, CUdeviceptr dst, CUdeviceptr src,
                        enum es_direction *dir);

#endif

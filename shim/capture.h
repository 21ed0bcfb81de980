/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_CAPTURE_H
#define ES_SHIM_CAPTURE_H
/* Which streams are being captured into a graph, as far as begin, end and destroy tell. While any
 * is, anywhere in the process, no copy is rewritten: a copy may be a node of that capture, or may
 * be forbidden by it, and only the very call that the program made answers as natively.
 *
 * Any thread; nothing blocks but a short lock. A stream that forked into a capture by waiting on
 * its event is covered by the stream that began it. */

#include <cuda.h>
#include <stdbool.h>

/* Called before the driver begins the capture; undone by es_capture_end if it refuses. */
void es_capture_begin(CUstream stream);

/* The capture ended, or its stream was destroyed. Unknown streams are ignored. */
void es_capture_end(CUstream stream);

bool es_capture_open(void);

void es_capture_after_fork(void);

#endif

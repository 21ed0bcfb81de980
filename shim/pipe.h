/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_PIPE_H
#define ES_SHIM_PIPE_H
/* Moves the bytes of one copy through leased chunks: the processor's part (pageable <-> chunk) by
 * workers and the caller, the device's part (chunk <-> device) by async copies in ascending order
 * on one stream. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/pool.h"

struct es_pipe_job {
    const struct es_port *port;
    CUstream stream;
    CUdeviceptr device;
    char *host;
    uint64_t bytes, piece; /* piece: bytes moved at a time, at most a chunk */
    struct es_chunk **chunks;
    unsigned chunk_count; /* at least 1 */
    bool workers;         /* queue pieces for the workers too */
    bool may_wait;        /* H2D: wait for this copy's own chunks, that is for the stream */
};

/* H2D: the source has been read when this returns, the device copies are queued. D2H: the bytes are
 * in the destination. *moved: how many bytes, from the start, were taken care of; the rest, if any,
 * is for the caller to copy natively on the same stream, behind. Fewer than all without an error:
 * no chunk was left that may be had without waiting, or the program's memory has a hole there.
 * Blocks for the stream in D2H, and in H2D only with may_wait. Returns the driver's error. */
CUresult es_pipe_h2d(const struct es_pipe_job *job, uint64_t *moved);
CUresult es_pipe_d2h(const struct es_pipe_job *job, uint64_t *moved);

/* Most chunks that one copy can use. */
enum { ES_PIPE_CHUNKS = 64 };

#endif

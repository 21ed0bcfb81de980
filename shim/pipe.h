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
    void (*all_submitted)(void *arg); /* D2H: the last piece is queued, its bytes are to come */
    void *arg;
};

/* How many bytes, from the start, were taken care of. H2D: their source has been read, their device
 * copies are queued. D2H: they are in the destination. The rest is for the program's own call, on
 * the same stream, behind: no chunk was left that may be had without waiting, or the program's
 * memory has a hole there, or the driver failed a call. Which error that means the program's own
 * call will say.
 * Blocks for the stream in D2H, and in H2D only with may_wait. */
uint64_t es_pipe_h2d(const struct es_pipe_job *job);
uint64_t es_pipe_d2h(const struct es_pipe_job *job);

/* Most chunks that one copy can use. */
enum { ES_PIPE_CHUNKS = 64 };

#endif

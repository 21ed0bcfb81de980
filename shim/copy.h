/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_COPY_H
#define ES_SHIM_COPY_H
/* One copy between a host range and a device range, from the program's call to its return:
 *
 *     es_copy_begin(&c);
 *     r = es_copy_made(&c) ? CUDA_SUCCESS : <the call the program made, for what is left>;
 *     return es_copy_end(&c, r);
 *
 * es_copy_made asks the policy and, if it says so, does the whole copy; it may also make a
 * synchronous one as an asynchronous one and wait for it, so that other threads are not held
 * meanwhile. What is left, from c.done on, is all of it where the policy says no, or the end of it
 * where staging could not go on: memory ran short, or a driver call failed. So an error code is
 * always that of the program's own call. The promise of a copy done here is native's (design, law 3
 * and "A blocking call is also a barrier"):
 *   - a synchronous copy has waited for all work before it on its stream;
 *   - an Async H2D copy has read its source, and waits for its stream only at sizes where native
 * does; where it waits, it reads the source after the wait, as native does;
 *   - a D2H copy has stored its bytes.
 * Any thread. errno, current context and capture mode are as before. */

#include "policy/options.h"
#include "policy/place.h"
#include "shim/event.h"
#include "shim/handoff.h"
#include "shim/port.h"
#include "shim/stack.h"

struct es_copy {
    enum es_direction dir;
    bool async;
    CUdeviceptr device;
    void *host; /* an H2D source is only read */
    uint64_t bytes;
    CUstream stream;       /* names its stream: never 0 */
    struct es_stack stack; /* frames[0]: the call's return address; the rest comes by itself */
    bool walks;            /* frames[0] is not yet the program's: look for its callers */

    uint64_t done;          /* bytes, from the start, that were staged */
    enum es_reason why;     /* why it was not staged */
    bool holds;             /* its stream, for this thread: until the end of the call */
    bool in_turn;           /* the program's own call is being made */
    bool noted;             /* what it leaves to be done when it returns */
    bool aside;             /* it left its stream */
    struct es_asked before; /* what its return tells of */
    struct es_handoff handoff;
    uint64_t begun_ns;
};

/* Before the first copy. port and options must live until exit. threads: that copy, the caller
 * included. */
void es_copy_configure(const struct es_port *port, const struct es_options *options,
                       unsigned threads);

void es_copy_begin(struct es_copy *c);
bool es_copy_made(struct es_copy *c);
CUresult es_copy_end(struct es_copy *c, CUresult result);

/* Async H2D copies of this size or more natively wait for their stream before they read the source
 * (H200, driver 13.0: 2 MiB does not, 3 MiB does; tests/hardware/probe). So waiting there for one's
 * own stream is no new wait. */
#define ES_ASYNC_BLOCKS_FROM ((uint64_t)3 << 20)

#endif

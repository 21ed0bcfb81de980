/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_HANDOFF_H
#define ES_SHIM_HANDOFF_H
/* Handoffs, for the log: memory last used on one stream is used on another, or by the host (a
 * synchronous copy), and what that waited for. Any thread; no lock; nothing blocks. */

#include <stdint.h>

#include "shim/clock.h"

/* Between the host and a stream, then from stream to stream. */
#define ES_VERDICTS(X)                                                                             \
    X(IDLE, "host", "nothing: no kernel was queued")                                               \
    X(FRESH, "host", "nothing: no unfinished work could touch it")                                 \
    X(EVENT, "host", "the event behind its last write")                                            \
    X(TAIL, "host", "the stream of its last write, no other")                                      \
    X(TOUCHED, "host", "all queued work: some of it may touch it")                                 \
    X(SEEN, "host", "all queued work: others could see it unfinished")                             \
    X(UNFOLLOWED, "host", "all queued work: threads, contexts, captures, IPC...")                  \
    X(POLICY, "host", "all queued work: EPOCHSHIM_DEFER, _SIDE or _LIMIT says so")                 \
    X(NATIVE, "host", "all queued work: left native, see above")                                   \
    X(COMPLETED, "streams", "nothing: the work before was complete")                               \
    X(ORDERED, "streams", "an event, of this or of an earlier use")                                \
    X(OTHERWISE, "streams", "the legacy stream, the host, or nothing")

enum es_verdict {
#define X(id, with, text) ES_VERDICT_##id,
    ES_VERDICTS(X)
#undef X
        ES_VERDICT_COUNT
};

struct es_handoff {
    enum es_verdict verdict;
    struct es_tick from, to; /* epoch 0: the host */
    uint64_t bytes;
    uint64_t left; /* operations queued before the copy that were not waited for, at most */
};

/* Before the first handoff: whether any are wanted. */
void es_handoff_configure(bool on);

void es_handoff_add(const struct es_handoff *h);

struct es_handoffs {
    struct es_handoff sum[ES_VERDICT_COUNT]; /* bytes and left; of all */
    uint64_t count[ES_VERDICT_COUNT];
};
void es_handoff_read(struct es_handoffs *out);

/* The i-th of those that are kept, the first some; false: no more. */
enum { ES_HANDOFFS_KEPT = 256 };
bool es_handoff_kept(unsigned i, struct es_handoff *out);

void es_handoff_reset(void);

#endif

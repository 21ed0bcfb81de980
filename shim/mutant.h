/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_MUTANT_H
#define ES_SHIM_MUTANT_H
/* Rules of the engine that a test breaks, one at a time, to prove that it would see it
 * (tests/laws/mutants.py). In the product each is the constant false, and nothing of this is there.
 */

/* A rule and what is wrong without it. */
#define ES_RULES(X)                                                                                \
    X(OWED, "what an early return did not wait for is owed")                                       \
    X(JOIN, "a non-blocking stream is ordered after the debt")                                     \
    X(REJOIN, "and after each later one")                                                          \
    X(SETTLE, "a query finds the debt done")                                                       \
    X(BEHIND_COPY, "the legacy stream is ordered after the copy beside it")                        \
    X(FRESH, "only memory that nothing outstanding touches is filled ahead of it")                 \
    X(STAMP, "work given to a stream is followed")                                                 \
    X(TOUCH, "so is the memory that a copy touches")                                               \
    X(SPAN, "from the first to the last byte that is still being touched")                         \
    X(COVERED, "a copy waits for no event that natively it does not wait for")                     \
    X(WAIT_COVERED, "a copy from memory waits for the event behind its last write")                \
    X(WAIT_TAIL, "or, where there is none, for the stream that wrote it")                          \
    X(WAITED_FOR, "and for that only if natively it does, too")                                    \
    X(STRANGER, "a kernel with an argument that nobody knows may touch anything")                  \
    X(ORDERED, "a wait is left out only if the stream waited for all of it")                       \
    X(AT_ONCE, "what runs while an event is recorded proves nothing of it")                        \
    X(REUSED, "a stream's record is used again when nothing of it is left")                        \
    X(OBSERVABLE, "nothing returns early that host memory could tell of")                          \
    X(BARRIER, "a synchronous copy waits for the work before it")                                  \
    X(WAIT_TO_READ, "where native waits, the source is read after the wait")                       \
    X(CHUNK_EVENT, "a chunk is used again after its own event")                                    \
    X(ARRIVED, "bytes are copied out when they have arrived")                                      \
    X(PROBE, "a page that faults does so in the calling thread")                                   \
    X(REST, "what staging left is copied by the program's call")                                   \
    X(HOLD, "other threads do not come between the pieces")                                        \
    X(HOLD_SEES, "a stream is not held while another thread submits to it")                        \
    X(HOLD_LEGACY, "the legacy stream and the blocking ones stand in each other's way")            \
    X(PINNED, "pinned memory is read in stream order")                                             \
    X(INSIDE, "so is memory pinned in the middle of a range")                                      \
    X(CAPTURE, "nothing is staged during a capture")                                               \
    X(FOREIGN, "memory that others reach is left alone")                                           \
    X(APART, "a waiting copy does not hold other threads' launches")                               \
    X(DEVICE_END, "a copy stays inside its allocation")                                            \
    X(FORGET, "a destroyed stream's handle may be another kind of stream's")                       \
    X(RECORDED, "an event that is recorded again is no longer complete")                           \
    X(FORK, "in a capture every wait is made")                                                     \
    X(LOST, "a chunk that no event tells of is used by nobody any more")                           \
    X(NOTED, "what a copy leaves to be done is noted before others come between")                  \
    X(ASK_AGAIN, "when the streams are held it is asked again whether the memory is free")         \
    X(ERROR, "a failed driver call leaves the rest to the program's own")

enum es_rule {
    ES_RULE_NONE,
#define X(id, text) ES_RULE_##id,
    ES_RULES(X)
#undef X
        ES_RULE_END
};

#ifdef ES_MUTANTS
#include <stdlib.h>
static inline int es_broken(enum es_rule rule)
{
    static int chosen = -1;

    if (chosen < 0)
        chosen = getenv("ES_BROKEN_RULE") ? atoi(getenv("ES_BROKEN_RULE")) : 0;
    return chosen == (int)rule;
}
#define ES_BROKEN(id) es_broken(ES_RULE_##id)
#else
#define ES_BROKEN(id) 0
#endif

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_TURN_H
#define ES_SHIM_TURN_H
/* Whose turn it is on a stream. To other threads a copy is one operation: what they submit to its
 * stream comes before or after the whole. A staged copy is many; so while it submits them it holds
 * its stream, and other threads' calls that would come between wait until it lets go.
 *
 * That wait is short, whatever the program does: a hold is only had when no other thread is
 * submitting there, and only kept where the stream had nothing left to do, so that the copy goes on
 * at the bus's speed. Natively the same calls wait for a copy's end (tests/hardware/README.md).
 *
 * Two streams stand in each other's way if they are the same, or if one is the legacy stream and
 * the other one not a non-blocking one (CUDA, "Stream synchronization behavior"). */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/debt.h"
#include "shim/memory.h"
#include "shim/mutant.h"
#include "shim/port.h"
#include "shim/stream.h"

/* For a call that is about every stream of a context. */
#define ES_EVERY_STREAM ((CUstream)-1)

struct es_turn {
    _Alignas(64) _Atomic(CUstream) stream; /* that the thread is submitting to; NULL: to none */
    atomic_bool taken;                     /* by a thread that lives */
    _Atomic uint64_t on_legacy;            /* calls so far about the legacy stream */
};

extern __attribute__((tls_model("initial-exec"))) __thread struct es_turn *es_turn_mine;
extern atomic_uint es_turn_busy; /* nonzero: a call may have to wait, or to join a debt (debt.h) */
struct es_turn *es_turn_meet_thread(void);
void es_turn_wait(CUstream stream);

static inline void es_turn_count(struct es_turn *mine, CUstream stream)
{
    if (stream == CU_STREAM_LEGACY || stream == ES_EVERY_STREAM)
        atomic_store_explicit(&mine->on_legacy,
                              atomic_load_explicit(&mine->on_legacy, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}

/* Around a call that gives a stream work. stream: never NULL. Begin blocks while another thread
 * holds the stream. Costs a store and a fence. */
static inline void es_turn_begin(CUstream stream)
{
    struct es_turn *mine = es_turn_mine;

    if (__builtin_expect(!mine, 0))
        mine = es_turn_meet_thread();
    es_turn_count(mine, stream);
    atomic_store_explicit(&mine->stream, stream, memory_order_relaxed);
    /* Either we see a hold that was taken before, or its taker sees us. */
    atomic_thread_fence(memory_order_seq_cst);
    if (ES_BROKEN(HOLD) && !es_debt_is_owed())
        return;
    if (__builtin_expect(atomic_load_explicit(&es_turn_busy, memory_order_relaxed) != 0, 0))
        es_turn_wait(stream);
}

static inline void es_turn_end(void)
{
    atomic_store_explicit(&es_turn_mine->stream, NULL, memory_order_release);
}

/* The same, for a call that gave it an operation. effects: of enum es_effect. */
static inline void es_turn_given(CUstream stream, unsigned effects)
{
    if (effects & ES_HOST && es_memory_reached_host())
        effects |= ES_OBSERVABLE;
    es_stream_given(es_stream_of(stream), effects);
    es_turn_end();
}

/* Takes hold of a stream for this thread, which may not be between begin and end, nor have one.
 * Blocks while another thread holds it. False: another thread is submitting to it, and does not end
 * within 50 us; how long such a call takes is the program's affair. */
bool es_turn_hold(CUstream stream);
void es_turn_release(void);

/* How many calls so far were about the legacy stream, those in progress included: each may be what
 * the next work on a blocking stream has to wait for. */
uint64_t es_turn_on_legacy(void);

/* Whether no other thread ever gave a stream work. */
bool es_turn_alone(void);

/* From now on every call that gives a stream work has to join a debt first, or has not. */
void es_turn_owe(bool owed);

void es_turn_after_fork(void);

#endif

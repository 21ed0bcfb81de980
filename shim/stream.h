/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_STREAM_H
#define ES_SHIM_STREAM_H
/* The program's streams: which work each was given, and how much of it is known to be complete.
 *
 * A stream's work is cut into epochs. A record of an event on it closes the open one, and so does a
 * call that waits for it or asks about it: at the start of the call, so that only what was
 * submitted before lies in it. An operation is stamped after it was submitted, with the epoch that
 * is open then: late is too careful, early would be wrong. One that is being submitted counts for
 * nobody yet; who must know of those holds the streams (shim/turn.h).
 *
 * A stream that is not known (made by a door we do not see, or one too many) shares the record
 * ES_STREAM_OTHERS; of its work only the end of all work tells. The handles of the legacy and of
 * the per-thread stream name several streams where there are several contexts or threads.
 *
 * Any thread; no lock; nothing blocks. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/port.h"

/* What an operation may do, besides what is noted of it by range (shim/touch.h). */
enum es_effect {
    ES_OPAQUE = 1,     /* touch any memory there is when it is submitted */
    ES_OBSERVABLE = 2, /* be seen by others than the program's streams (design, "Observable") */
    ES_HOST = 4,       /* observable, if there is host memory that the device can access */
    ES_LONG = 8        /* take long: it is no copy */
};

struct es_stream {
    _Alignas(64) _Atomic(CUstream) handle;
    atomic_bool nonblocking;
    _Atomic uint64_t closed; /* epochs; the open one comes next */
    _Atomic uint64_t done;   /* the work of these is complete */
    /* The epoch of the newest operation; of the newest opaque, observable and long one; and the
     * time (es_stream_birth) of that opaque one. */
    _Atomic uint64_t last, opaque, opaque_at, observable, slow;
    _Atomic uint64_t given;          /* operations */
    _Atomic uint64_t over;           /* of these at least so many are complete, for the log */
    uint64_t at_sync, given_at_sync; /* the epoch that a wait for everything closed */
};

enum {
    ES_STREAM_LEGACY,
    ES_STREAM_PER_THREAD,
    ES_STREAM_OTHERS,
    ES_STREAM_SIDE, /* our own (shim/debt.h) */
    ES_STREAM_FIRST,
    ES_STREAMS = 4096
};

/* The record of a stream, never NULL; its number is its place in the table. */
struct es_stream *es_stream_of(CUstream handle);
struct es_stream *es_stream_at(unsigned number);
unsigned es_stream_number(const struct es_stream *s);

/* Whether the record is of one stream, made by the program. */
static inline bool es_stream_is_made(const struct es_stream *s)
{
    return es_stream_number(s) >= ES_STREAM_FIRST;
}

/* Whether the record is of one stream, if one thread, and one context, gave all work. */
bool es_stream_is_one(const struct es_stream *s, bool one_thread, bool one_context);

bool es_stream_is_nonblocking(CUstream handle);

/* Whether a record has a handle that may be asked about. */
bool es_stream_has_handle(const struct es_stream *s);

/* The engine made its own. */
void es_stream_made_side(CUstream handle);

/* A stream was made. The record that it gets may have been another's, all of whose work is done. */
struct es_stream *es_stream_made(CUstream handle, unsigned flags);
void es_stream_forget(CUstream handle); /* before it is destroyed */
void es_stream_forget_all(void);        /* before their context may be */

/* What an operation is stamped with: asked when it was submitted. */
static inline uint64_t es_stream_open_epoch(const struct es_stream *s)
{
    return atomic_load(&s->closed) + 1;
}

/* An operation was submitted to it; returns its epoch. effects: of enum es_effect. */
uint64_t es_stream_given(struct es_stream *s, unsigned effects);

/* Closes the open epoch, and returns its number. */
uint64_t es_stream_close(struct es_stream *s);

/* The work of this epoch and those before is complete; that is, of its operations the first
 * `given`, or more. */
void es_stream_done(struct es_stream *s, uint64_t epoch, uint64_t given);

/* Whether it may have work that is not complete. */
bool es_stream_is_busy(struct es_stream *s);

/* Around a call that waits for all streams of the only context. False: another such call is under
 * way; then nothing is learnt. */
bool es_stream_sync_begin(void);
void es_stream_sync_end(bool done);

/* The records that were ever used, from i = 0 on; NULL behind the last. */
struct es_stream *es_stream_used(unsigned i);

/* The time, which goes on at each birth of memory: an opaque operation from before has an earlier
 * one. */
uint64_t es_stream_birth(void);

void es_stream_after_fork(void);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_EVENT_H
#define ES_SHIM_EVENT_H
/* The order that events make, as far as it is sure: what each event covers, which work each stream
 * waited for, and what the host saw done. So a wait that changes nothing need not be made, and a
 * copy can wait for what it needs instead of a whole stream.
 *
 *   Completed  the host saw it finish, by whatever call
 *   Ordered    the stream waited for it, or for what waited for it
 *
 * An event covers what its stream was given before the start of its last record, and what that was
 * ordered after. That counts only for an event whose every record was seen: made by cuEventCreate,
 * not shared with another process, and recorded by cuEventRecord outside captures. It is gone with
 * the next record; what ran while a record was under way proves nothing. Completion says the same
 * of all that the event covers. Freeing an event or a stream proves nothing.
 *
 * Any thread; one short lock; nothing blocks. errno is kept. */

#include <stdbool.h>
#include <stdint.h>

#include "shim/clock.h"
#include "shim/port.h"
#include "shim/stream.h"

/* Before the first call. on: whether anything is to be followed. elide: whether waits may be left
 * out. */
void es_event_configure(bool on, bool elide);

void es_event_made(CUevent event, unsigned flags);
void es_event_gone(CUevent event); /* before it is destroyed */

/* A stream was made, in a record that may have been another's. */
void es_event_stream_made(const struct es_stream *s);

/* Around a record. plain: by cuEventRecord, outside captures; else the event never tells again.
 * recorded: the driver took it. True: the record tells others than the program's streams something:
 * its time, or what it is. */
void es_event_record_begin(CUevent event, CUstream stream, bool plain);
bool es_event_record_end(CUevent event, CUstream stream, bool recorded);

/* Around a call that waits for work on the host, or asks whether it is done. What was asked about
 * must be given back by es_event_answered: it may hold a clock. */
struct es_asked {
    CUevent event; /* NULL: about a stream */
    unsigned record;
    struct es_tick tick;
    uint64_t given; /* operations of that stream, until then */
    struct es_clock *base;
};
struct es_asked es_event_ask(CUevent event);
struct es_asked es_event_ask_stream(CUstream stream);
void es_event_answered(struct es_asked *asked, bool done);

/* Around a wait of a stream for an event. *needless says whether it may be left out (plain: it has
 * no flags), and why; then there is no end. made: the driver took it. */
enum es_needless { ES_NEEDED, ES_COMPLETED, ES_ORDERED };
struct es_asked es_event_wait_begin(CUevent event, CUstream stream, bool plain,
                                    enum es_needless *needless);
void es_event_wait_end(struct es_asked *asked, CUstream stream, bool made);

/* Events may be recorded by doors that are not followed one by one (graphs, other processes): from
 * now on no event tells anything. */
void es_event_stop(void);

/* Whether there is an event that covers an epoch of a stream, and for which a synchronous copy on
 * the legacy stream would wait natively (that is, for any of a blocking stream). */
bool es_event_covers(struct es_tick t);

/* Makes a stream of our own wait for the oldest such event, and says in *t what it covers, and in
 * *given how many operations its stream had been given. False: there is none, or the driver failed.
 * The event is not destroyed meanwhile. */
bool es_event_make_wait(const struct es_port *port, CUstream waiting, struct es_tick *t,
                        uint64_t *given);

/* How an epoch of a stream is ordered before what another stream does next, as far as is known. */
enum es_needless es_event_order(struct es_tick t, const struct es_stream *before);

void es_event_after_fork(void);

#endif

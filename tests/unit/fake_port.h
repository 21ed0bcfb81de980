/* SPDX-License-Identifier: MIT */
#ifndef ES_TESTS_FAKE_PORT_H
#define ES_TESTS_FAKE_PORT_H
/* A driver in a few lines: one queue of copies that run when an event is waited for, or not before
 * a test says so. Host memory is device memory. Failures by the number of the call. */

#include <stdbool.h>
#include <stddef.h>

#include "shim/port.h"

enum fake_call { FAKE_COPY, FAKE_EVENT_RECORD, FAKE_EVENT_END /* a query or a wait */ };

struct fake {
    bool hold;        /* queued copies stay queued: event_query says NOT_READY */
    unsigned queued;  /* copies not yet run */
    unsigned copies;  /* enqueued so far */
    unsigned waits;   /* event_wait calls */
    unsigned pins;    /* host_register calls */
    size_t pin_limit; /* bytes that host_register grants in all */
    size_t pinned;
    enum fake_call fail_call;
    unsigned fail_nth; /* that call of its kind fails; 0: none */
    unsigned calls[FAKE_EVENT_END + 1];
    bool waited_while_held;
};

/* The one fake, back at its start. */
struct fake *fake_reset(void);
struct fake *fake_state(void);
const struct es_port *fake_port(void);
void fake_run_all(void);

#endif

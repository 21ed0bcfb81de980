/* SPDX-License-Identifier: MIT */
#ifndef ES_TESTS_FAKE_PORT_H
#define ES_TESTS_FAKE_PORT_H
/* A driver in a few lines: one queue of copies that run when an event is waited for, or not before
 * a test says so. Host memory is device memory. Failures by the number of the call. */

#include <stdbool.h>
#include <stddef.h>

#include "shim/port.h"

struct fake {
    bool hold;        /* queued copies stay queued: event_query says NOT_READY */
    unsigned queued;  /* copies not yet run */
    unsigned copies;  /* enqueued so far */
    unsigned waits;   /* event_wait calls */
    unsigned pins;    /* host_register calls */
    size_t pin_limit; /* bytes that host_register grants in all */
    size_t pinned;
    unsigned fail_copy; /* the nth copy fails; 0: none */
    bool waited_while_held;
};

/* The one fake, back at its start. */
struct fake *fake_reset(void);
struct fake *fake_state(void);
const struct es_port *fake_port(void);
void fake_run_all(void);

#endif

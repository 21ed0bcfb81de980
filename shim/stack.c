/* SPDX-License-Identifier: MIT */
/* The unwinder is libgcc's, linked in: unlike backtrace() it loads no library when first used. */
#include "shim/stack.h"

#include <unwind.h>

struct walk {
    struct es_stack *stack;
    unsigned seen, found; /* frames in all, and those from frames[0] on */
};

enum { OWN_FRAMES = 8 }; /* between the walk and frames[0] there are fewer */

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *arg)
{
    struct walk *w = arg;
    const void *address = (const void *)_Unwind_GetIP(context);

    if (w->found == 0 && address != w->stack->frames[0])
        return ++w->seen < OWN_FRAMES ? _URC_NO_REASON : _URC_NORMAL_STOP;
    w->stack->frames[w->found++] = address;
    return address && w->found < ES_FRAMES ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

void es_stack_walk(struct es_stack *stack)
{
    struct walk w = {.stack = stack};

    _Unwind_Backtrace(visit, &w);
}

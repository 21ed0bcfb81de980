/* SPDX-License-Identifier: MIT */
/* What following a call up its stack takes, ns: best of 20 rounds, six frames. */
#include <stdio.h>
#include <time.h>

#include "shim/stack.h"

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

__attribute__((noinline)) static unsigned walk(void)
{
    struct es_stack s = {.frames = {__builtin_return_address(0)}};
    unsigned n = 0;

    es_stack_walk(&s);
    while (n < ES_FRAMES && s.frames[n])
        n++;
    return n;
}

/* Calls itself so often that there are frames enough. */
__attribute__((noinline)) static unsigned deep(unsigned depth) /* NOLINT(misc-no-recursion) */
{
    unsigned n = depth ? deep(depth - 1) : walk();

    __asm__ volatile("" : "+r"(n)); /* not a tail call */
    return n;
}

int main(void)
{
    enum { CALLS = 10000 };
    double best = 1e12;

    for (int round = 0; round < 20; round++) {
        double begun = now_ns(), took;

        for (int i = 0; i < CALLS; i++)
            if (deep(6) != ES_FRAMES)
                return 1;
        took = (now_ns() - begun) / CALLS;
        best = took < best ? took : best;
    }
    printf("walk of %d frames: %.0f ns\n", ES_FRAMES, best);
    return 0;
}

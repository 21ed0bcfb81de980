/* SPDX-License-Identifier: MIT */
#ifndef ES_POLICY_PLACE_H
#define ES_POLICY_PLACE_H
/* Where a copy goes: one pure function from plain facts. shim/ collects the facts, intercept/ makes
 * the call that the answer names. */

#include "policy/options.h"

enum es_direction { ES_H2D, ES_D2H, ES_DIRECTIONS };

/* What the driver and our own records say of one side of a copy, over its whole range. */
enum es_memory {
    ES_MEM_PAGEABLE, /* host memory that CUDA does not know */
    ES_MEM_PINNED,   /* allocated or registered by CUDA, all of it or a part */
    ES_MEM_MANAGED,
    ES_MEM_DEVICE,  /* inside one device allocation of the stream's own device and context */
    ES_MEM_PEER,    /* device memory of another device or context */
    ES_MEM_FOREIGN, /* imported or exported: another process or device can reach it */
    ES_MEM_UNKNOWN  /* in no allocation that the driver names, or beyond its end */
};

struct es_copy_facts {
    enum es_direction dir;
    bool async; /* the program called an Async form */
    uint64_t bytes;
    enum es_memory host, device;
    bool capturing;       /* a stream capture is open anywhere in the process */
    bool sync_memops;     /* SYNC_MEMOPS is set on the pointer or the context */
    bool launch_blocking; /* CUDA_LAUNCH_BLOCKING */
    bool unfit;         /* no context, a stream the driver refuses, a forked child, a lost record */
    uint64_t eligible;  /* bytes of all copies so far that nothing but EPOCHSHIM_WARMUP forbade */
    uint64_t rewritten; /* copies rewritten so far, for EPOCHSHIM_LIMIT */
    bool several;       /* a function that may have given a stream work is unknown, and there are
                           threads: who submits where cannot be told */
    unsigned threads;   /* threads that would copy, the caller included */

    /* To leave its place: to be made without waiting for all the work queued before it. */
    bool legacy;     /* its stream is the legacy stream */
    bool clear;      /* H2D: nothing outstanding may touch the device memory. D2H: of all that may
                        still write it there is an event to wait for */
    bool behind;     /* there is work queued that it would wait for */
    bool observable; /* something else may tell whether that work is done, or read its results */
};

/* Why a copy was left as the program made it. The text ends the line "native because ..." in the
 * log; the order is the order in which the rules are asked. */
#define ES_REASONS(X)                                                                              \
    X(NONE, "")                                                                                    \
    X(MODE, "EPOCHSHIM_MODE says so")                                                              \
    X(SMALL, "native is as fast at this size")                                                     \
    X(FEW_THREADS, "native is as fast, with so few copy threads")                                  \
    X(BELOW_MIN, "smaller than EPOCHSHIM_MIN_BYTES")                                               \
    X(UNFIT, "the driver did not tell enough about the call")                                      \
    X(CAPTURE, "a stream capture is open")                                                         \
    X(LAUNCH_BLOCKING, "CUDA_LAUNCH_BLOCKING is set")                                              \
    X(PINNED, "the host side is pinned already")                                                   \
    X(MANAGED, "managed memory")                                                                   \
    X(NOT_PAGEABLE, "the host side is not plain host memory")                                      \
    X(PEER, "device memory of another device or context")                                          \
    X(FOREIGN, "memory that another process can reach")                                            \
    X(UNKNOWN, "not inside one device allocation")                                                 \
    X(SYNC_MEMOPS, "SYNC_MEMOPS is set")                                                           \
    X(SEVERAL, "another thread is using its stream")                                               \
    X(LIMIT, "EPOCHSHIM_LIMIT is reached")                                                         \
    X(WARMUP, "too few bytes so far to pay for the set-up")                                        \
    X(NO_STAGING, "no staging memory was free")                                                    \
    X(REFUSED, "the driver failed a call that staging needs")

enum es_reason {
#define X(id, text) ES_WHY_##id,
    ES_REASONS(X)
#undef X
        ES_REASON_COUNT
};

enum es_where {
    ES_NATIVE,
    ES_HOME, /* staged, on the stream that the program named */
    ES_SIDE  /* staged, on a stream of our own, beside it */
};

struct es_place {
    enum es_where where;
    enum es_reason why; /* ES_WHY_NONE unless native */
    bool early;         /* on the side: and it returns before that work is done */
};

/* Whether a copy may leave its place, as far as its call says. */
bool es_place_may_leave(const struct es_copy_facts *f, const struct es_options *o);

/* The part of the answer that needs no look at the memory: most copies are small, and end here. */
enum es_reason es_place_early(enum es_direction dir, uint64_t bytes, unsigned threads,
                              const struct es_options *o);

struct es_place es_place(const struct es_copy_facts *f, const struct es_options *o);

/* The text of a reason; a constant. */
const char *es_reason_text(enum es_reason why);

/* The size from which staging measured faster than native, in bytes; UINT64_MAX: it never did.
 * Source: tests/hardware/README.md, one H200, PCIe 5 x16. */
uint64_t es_crossover(enum es_direction dir, unsigned threads);

#endif

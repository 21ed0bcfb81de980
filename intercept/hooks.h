/* SPDX-License-Identifier: MIT */
#ifndef ES_INTERCEPT_HOOKS_H
#define ES_INTERCEPT_HOOKS_H
/* What every hook body needs: the typed way to the real function, and the note that it was called.
 *
 * What a hook may not do: call a dl* function, hold a lock of ours across a driver call that can
 * block, or change errno. */

/* Every ABI of every function is declared, not just the newest. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "shim/count.h"
#include "shim/debt.h"
#include "shim/port.h"

enum es_hook {
#define BODY(symbol, group)   ES_HOOK_##symbol,
#define FOLLOW(symbol, group) ES_HOOK_##symbol,
#include "intercept/hooks.def"
    ES_HOOK_COUNT
};

/* The real function behind a hook, cast to its type in cuda.h. Never NULL: for a function that the
 * loaded driver lacks, a stand-in that answers CUDA_ERROR_NOT_FOUND. */
void *es_driver_real(enum es_hook hook);
#define ES_REAL(symbol) ((__typeof__(&symbol))es_driver_real(ES_HOOK_##symbol))

/* The engine's way to the driver; filled at the process's first CUDA call (root.c). */
extern struct es_port es_port;

/* First line of every hook: at the process's first CUDA call this reads the options. */
void es_root_begin(void);
static inline void es_note(enum es_seen group)
{
    if (__builtin_expect(!es_count_begun(), 0))
        es_root_begin();
    es_count(group);
    if (__builtin_expect(es_debt_is_owed(), 0) && !es_count_is_ordered(group))
        es_debt_settle();
}

/* The stream that handle 0 stands for. */
#define ES_LEGACY(stream)     ((stream) ? (stream) : CU_STREAM_LEGACY)
#define ES_PER_THREAD(stream) ((stream) ? (stream) : CU_STREAM_PER_THREAD)

/* The return address of the function it stands in: where the program called. */
#define ES_CALL_SITE __builtin_extract_return_addr(__builtin_return_address(0))

/* Exported under the driver's own name. -Bsymbolic keeps our own references at home. */
#define ES_EXPORT __attribute__((visibility("default")))

#endif

/* SPDX-License-Identifier: MIT */
/* The hooks that only count: one function for each FOLLOW row. */
#include "intercept/hooks.h"

#define FOLLOW(symbol, group, params, args)                                                        \
    ES_EXPORT CUresult CUDAAPI symbol params                                                       \
    {                                                                                              \
        es_note(ES_SEEN_##group);                                                                  \
        return ES_REAL(symbol) args;                                                               \
    }
#define BODY(symbol, group)
#include "intercept/hooks.def"

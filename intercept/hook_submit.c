/* SPDX-License-Identifier: MIT */
/* The hooks of calls that give a stream work: counted, and made in turn (shim/turn.h). */
#include "intercept/hooks.h"
#include "shim/kernel.h"
#include "shim/turn.h"

#define KERNEL(symbol, stream, extra, params, args)                                                \
    ES_EXPORT CUresult CUDAAPI symbol params                                                       \
    {                                                                                              \
        CUresult r;                                                                                \
                                                                                                   \
        es_note(ES_SEEN_LAUNCH);                                                                   \
        es_turn_begin(stream);                                                                     \
        r = ES_REAL(symbol) args;                                                                  \
        es_kernel_given(stream, r == CUDA_SUCCESS, f, kernelParams, extra);                        \
        return r;                                                                                  \
    }
#define SUBMIT(symbol, group, stream, params, args)                                                \
    ES_EXPORT CUresult CUDAAPI symbol params                                                       \
    {                                                                                              \
        CUresult r;                                                                                \
                                                                                                   \
        es_note(ES_SEEN_##group);                                                                  \
        es_turn_begin(stream);                                                                     \
        r = ES_REAL(symbol) args;                                                                  \
        es_turn_given(stream, es_count_effects(ES_SEEN_##group));                                  \
        return r;                                                                                  \
    }
#include "intercept/submit.def"

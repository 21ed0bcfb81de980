/* SPDX-License-Identifier: MIT */
/* Streams come and go. A stream is destroyed in turn, like work: a copy of another
 * thread that holds it is not done with it. */
#include "intercept/hooks.h"
#include "shim/capture.h"
#include "shim/turn.h"

static CUresult made(CUresult r, const CUstream *s, unsigned flags)
{
    if (r == CUDA_SUCCESS && (flags & CU_STREAM_NON_BLOCKING))
        es_turn_nonblocking(*s);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuStreamCreate(CUstream *s, unsigned flags)
{
    es_note(ES_SEEN_STREAM);
    return made(ES_REAL(cuStreamCreate)(s, flags), s, flags);
}

ES_EXPORT CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *s, unsigned flags, int priority)
{
    es_note(ES_SEEN_STREAM);
    return made(ES_REAL(cuStreamCreateWithPriority)(s, flags, priority), s, flags);
}

ES_EXPORT CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *s, CUgreenCtx context, unsigned flags,
                                                  int priority)
{
    es_note(ES_SEEN_STREAM);
    return made(ES_REAL(cuGreenCtxStreamCreate)(s, context, flags, priority), s, flags);
}

/* Forgotten before: once it is gone its handle may be another stream's. */
static void destroying(CUstream s)
{
    es_note(ES_SEEN_STREAM);
    es_turn_begin(s ? s : ES_EVERY_STREAM);
    es_turn_forget(s);
}

/* A destroyed stream takes its capture with it. */
static CUresult destroyed(CUstream s, CUresult r)
{
    es_turn_end();
    if (r == CUDA_SUCCESS)
        es_capture_end(s);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream s)
{
    destroying(s);
    return destroyed(s, ES_REAL(cuStreamDestroy)(s));
}

ES_EXPORT CUresult CUDAAPI cuStreamDestroy_v2(CUstream s)
{
    destroying(s);
    return destroyed(s, ES_REAL(cuStreamDestroy_v2)(s));
}

/* SPDX-License-Identifier: MIT */
/* Streams come and go. A stream is destroyed in turn, like work: a copy of another
 * thread that holds it is not done with it. */
#include "intercept/hooks.h"
#include "shim/capture.h"
#include "shim/event.h"
#include "shim/stream.h"
#include "shim/turn.h"

static CUresult made(CUresult r, const CUstream *s, unsigned flags)
{
    if (r == CUDA_SUCCESS)
        es_event_stream_made(es_stream_made(*s, flags));
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

/* What the host learns from a stream, or from all of them. */

static struct es_asked asking(CUstream s)
{
    es_note(ES_SEEN_SYNC);
    return es_event_ask_stream(s);
}

static CUresult answered(struct es_asked asked, CUresult r)
{
    es_event_answered(&asked, r == CUDA_SUCCESS);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuStreamQuery(CUstream s)
{
    struct es_asked asked = asking(ES_LEGACY(s));

    return answered(asked, ES_REAL(cuStreamQuery)(s));
}

ES_EXPORT CUresult CUDAAPI cuStreamQuery_ptsz(CUstream s)
{
    struct es_asked asked = asking(ES_PER_THREAD(s));

    return answered(asked, ES_REAL(cuStreamQuery_ptsz)(s));
}

ES_EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream s)
{
    struct es_asked asked = asking(ES_LEGACY(s));

    return answered(asked, ES_REAL(cuStreamSynchronize)(s));
}

ES_EXPORT CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream s)
{
    struct es_asked asked = asking(ES_PER_THREAD(s));

    return answered(asked, ES_REAL(cuStreamSynchronize_ptsz)(s));
}

/* A wait for a whole context: where there is one, for all there is. */

static bool finishing(void)
{
    es_note(ES_SEEN_SYNC);
    return es_count_total(ES_SEEN_CONTEXT_MADE) == 0 && es_stream_sync_begin();
}

static CUresult finished(bool followed, CUresult r)
{
    if (followed)
        es_stream_sync_end(r == CUDA_SUCCESS);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuCtxSynchronize(void)
{
    bool followed = finishing();

    return finished(followed, ES_REAL(cuCtxSynchronize)());
}

ES_EXPORT CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext context)
{
    bool followed = finishing();

    return finished(followed, ES_REAL(cuCtxSynchronize_v2)(context));
}

/* Forgotten before: once it is gone its handle may be another stream's. */
static void destroying(CUstream s)
{
    es_note(ES_SEEN_STREAM);
    es_turn_begin(s ? s : ES_EVERY_STREAM);
    es_stream_forget(s);
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

/* SPDX-License-Identifier: MIT */
/* Events: what is known of each (shim/event.h), and the waits that need not be made. */
#include "intercept/hooks.h"
#include "shim/event.h"
#include "shim/turn.h"

/* The time between two timing events must hold the work between them, on whatever stream of ours.
 */
ES_EXPORT CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned flags)
{
    CUresult r;

    es_note(flags & CU_EVENT_DISABLE_TIMING ? ES_SEEN_EVENT : ES_SEEN_TIMING);
    r = ES_REAL(cuEventCreate)(event, flags);
    if (r == CUDA_SUCCESS)
        es_event_made(*event, flags);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuEventDestroy(CUevent event)
{
    es_note(ES_SEEN_EVENT);
    es_event_gone(event);
    return ES_REAL(cuEventDestroy)(event);
}

ES_EXPORT CUresult CUDAAPI cuEventDestroy_v2(CUevent event)
{
    es_note(ES_SEEN_EVENT);
    es_event_gone(event);
    return ES_REAL(cuEventDestroy_v2)(event);
}

static void recording(CUevent event, CUstream stream, bool plain)
{
    es_note(ES_SEEN_RECORD);
    es_turn_begin(stream);
    es_event_record_begin(event, plain);
}

static CUresult recorded(CUevent event, CUresult r)
{
    es_event_record_end(event);
    es_turn_end();
    return r;
}

ES_EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream s)
{
    recording(event, ES_LEGACY(s), true);
    return recorded(event, ES_REAL(cuEventRecord)(event, s));
}

ES_EXPORT CUresult CUDAAPI cuEventRecord_ptsz(CUevent event, CUstream s)
{
    recording(event, ES_PER_THREAD(s), true);
    return recorded(event, ES_REAL(cuEventRecord_ptsz)(event, s));
}

ES_EXPORT CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream s, unsigned flags)
{
    recording(event, ES_LEGACY(s), flags == CU_EVENT_RECORD_DEFAULT);
    return recorded(event, ES_REAL(cuEventRecordWithFlags)(event, s, flags));
}

ES_EXPORT CUresult CUDAAPI cuEventRecordWithFlags_ptsz(CUevent event, CUstream s, unsigned flags)
{
    recording(event, ES_PER_THREAD(s), flags == CU_EVENT_RECORD_DEFAULT);
    return recorded(event, ES_REAL(cuEventRecordWithFlags_ptsz)(event, s, flags));
}

ES_EXPORT CUresult CUDAAPI cuCtxRecordEvent(CUcontext context, CUevent event)
{
    recording(event, ES_EVERY_STREAM, false);
    return recorded(event, ES_REAL(cuCtxRecordEvent)(context, event));
}

ES_EXPORT CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx context, CUevent event)
{
    recording(event, ES_EVERY_STREAM, false);
    return recorded(event, ES_REAL(cuGreenCtxRecordEvent)(context, event));
}

ES_EXPORT CUresult CUDAAPI cuEventQuery(CUevent event)
{
    uint64_t asked;
    CUresult r;

    es_note(ES_SEEN_SYNC);
    asked = es_event_ask(event);
    r = ES_REAL(cuEventQuery)(event);
    if (r == CUDA_SUCCESS)
        es_event_complete(event, asked);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event)
{
    uint64_t asked;
    CUresult r;

    es_note(ES_SEEN_SYNC);
    asked = es_event_ask(event);
    r = ES_REAL(cuEventSynchronize)(event);
    if (r == CUDA_SUCCESS)
        es_event_complete(event, asked);
    return r;
}

static bool is_needless(CUstream s, CUevent event, unsigned flags)
{
    bool needless = flags == CU_EVENT_WAIT_DEFAULT && es_event_needs_no_wait(event, s);

    es_note(needless ? ES_SEEN_NEEDLESS : ES_SEEN_WAIT);
    return needless;
}

static CUresult waited(CUresult r)
{
    es_turn_end();
    return r;
}

ES_EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream s, CUevent event, unsigned flags)
{
    if (is_needless(s, event, flags))
        return CUDA_SUCCESS;
    es_turn_begin(ES_LEGACY(s));
    return waited(ES_REAL(cuStreamWaitEvent)(s, event, flags));
}

ES_EXPORT CUresult CUDAAPI cuStreamWaitEvent_ptsz(CUstream s, CUevent event, unsigned flags)
{
    if (is_needless(s, event, flags))
        return CUDA_SUCCESS;
    es_turn_begin(ES_PER_THREAD(s));
    return waited(ES_REAL(cuStreamWaitEvent_ptsz)(s, event, flags));
}

/* A launch may record an event by an attribute of its own. */
static void look_for_events(const CUlaunchConfig *config)
{
    for (unsigned i = 0; config && config->attrs && i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        CUevent event = NULL;

        if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
            event = a->value.programmaticEvent.event;
        if (a->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            event = a->value.launchCompletionEvent.event;
        if (event) {
            es_event_record_begin(event, false);
            es_event_record_end(event);
        }
    }
}

static CUstream stream_of(const CUlaunchConfig *config)
{
    return config ? config->hStream : NULL;
}

ES_EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f,
                                            void **params, void **extra)
{
    es_note(ES_SEEN_LAUNCH);
    es_turn_begin(ES_LEGACY(stream_of(config)));
    look_for_events(config);
    return waited(ES_REAL(cuLaunchKernelEx)(config, f, params, extra));
}

ES_EXPORT CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                                                 void **params, void **extra)
{
    es_note(ES_SEEN_LAUNCH);
    es_turn_begin(ES_PER_THREAD(stream_of(config)));
    look_for_events(config);
    return waited(ES_REAL(cuLaunchKernelEx_ptsz)(config, f, params, extra));
}

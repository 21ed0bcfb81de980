/* SPDX-License-Identifier: MIT */
/* Events: what is known of each (shim/event.h), and the waits that need not be made. */
#include "intercept/hooks.h"
#include "shim/event.h"
#include "shim/kernel.h"
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
    es_event_record_begin(event, stream, plain);
}

/* A record is an operation to those who must know what others can see; it touches no memory. */
static CUresult recorded(CUevent event, CUstream stream, CUresult r)
{
    if (es_event_record_end(event, stream, r == CUDA_SUCCESS))
        es_turn_given(stream, ES_OBSERVABLE);
    else
        es_turn_end();
    return r;
}

ES_EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream s)
{
    recording(event, ES_LEGACY(s), true);
    return recorded(event, ES_LEGACY(s), ES_REAL(cuEventRecord)(event, s));
}

ES_EXPORT CUresult CUDAAPI cuEventRecord_ptsz(CUevent event, CUstream s)
{
    recording(event, ES_PER_THREAD(s), true);
    return recorded(event, ES_PER_THREAD(s), ES_REAL(cuEventRecord_ptsz)(event, s));
}

ES_EXPORT CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream s, unsigned flags)
{
    recording(event, ES_LEGACY(s), flags == CU_EVENT_RECORD_DEFAULT);
    return recorded(event, ES_LEGACY(s), ES_REAL(cuEventRecordWithFlags)(event, s, flags));
}

ES_EXPORT CUresult CUDAAPI cuEventRecordWithFlags_ptsz(CUevent event, CUstream s, unsigned flags)
{
    recording(event, ES_PER_THREAD(s), flags == CU_EVENT_RECORD_DEFAULT);
    return recorded(event, ES_PER_THREAD(s), ES_REAL(cuEventRecordWithFlags_ptsz)(event, s, flags));
}

ES_EXPORT CUresult CUDAAPI cuCtxRecordEvent(CUcontext context, CUevent event)
{
    recording(event, ES_EVERY_STREAM, false);
    return recorded(event, ES_EVERY_STREAM, ES_REAL(cuCtxRecordEvent)(context, event));
}

ES_EXPORT CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx context, CUevent event)
{
    recording(event, ES_EVERY_STREAM, false);
    return recorded(event, ES_EVERY_STREAM, ES_REAL(cuGreenCtxRecordEvent)(context, event));
}

static struct es_asked asking(CUevent event)
{
    es_note(ES_SEEN_SYNC);
    return es_event_ask(event);
}

static CUresult answered(struct es_asked asked, CUresult r)
{
    es_event_answered(&asked, r == CUDA_SUCCESS);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuEventQuery(CUevent event)
{
    struct es_asked asked = asking(event);

    return answered(asked, ES_REAL(cuEventQuery)(event));
}

ES_EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event)
{
    struct es_asked asked = asking(event);

    return answered(asked, ES_REAL(cuEventSynchronize)(event));
}

/* True: the wait need not be made. */
static bool is_needless(CUstream stream, CUevent event, unsigned flags, struct es_asked *asked)
{
    enum es_needless why;

    *asked = es_event_wait_begin(event, stream, flags == CU_EVENT_WAIT_DEFAULT, &why);
    es_note(why == ES_COMPLETED ? ES_SEEN_COMPLETED
            : why == ES_ORDERED ? ES_SEEN_ORDERED
                                : ES_SEEN_WAIT);
    if (why == ES_NEEDED)
        es_turn_begin(stream);
    return why != ES_NEEDED;
}

/* What another process may signal, or a graph, is seen by others. */
static CUresult waited(struct es_asked asked, CUstream stream, CUresult r)
{
    es_event_wait_end(&asked, stream, r == CUDA_SUCCESS);
    if (asked.record)
        es_turn_end();
    else
        es_turn_given(stream, ES_OBSERVABLE);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuStreamWaitEvent(CUstream s, CUevent event, unsigned flags)
{
    struct es_asked asked;

    if (is_needless(ES_LEGACY(s), event, flags, &asked))
        return CUDA_SUCCESS;
    return waited(asked, ES_LEGACY(s), ES_REAL(cuStreamWaitEvent)(s, event, flags));
}

ES_EXPORT CUresult CUDAAPI cuStreamWaitEvent_ptsz(CUstream s, CUevent event, unsigned flags)
{
    struct es_asked asked;

    if (is_needless(ES_PER_THREAD(s), event, flags, &asked))
        return CUDA_SUCCESS;
    return waited(asked, ES_PER_THREAD(s), ES_REAL(cuStreamWaitEvent_ptsz)(s, event, flags));
}

/* A launch may record an event by an attribute of its own. */
static void look_for_events(const CUlaunchConfig *config, CUstream stream)
{
    for (unsigned i = 0; config && config->attrs && i < config->numAttrs; i++) {
        const CUlaunchAttribute *a = &config->attrs[i];
        CUevent event = NULL;

        if (a->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
            event = a->value.programmaticEvent.event;
        if (a->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
            event = a->value.launchCompletionEvent.event;
        if (event) {
            es_event_record_begin(event, stream, false);
            es_event_record_end(event, stream, true);
        }
    }
}

static CUstream stream_of(const CUlaunchConfig *config)
{
    return config ? config->hStream : NULL;
}

static void launching(const CUlaunchConfig *config, CUstream stream)
{
    es_note(ES_SEEN_LAUNCH);
    es_turn_begin(stream);
    look_for_events(config, stream);
}

static CUresult launched(CUstream stream, CUfunction f, void **params, void **extra, CUresult r)
{
    es_kernel_given(stream, r == CUDA_SUCCESS, f, params, extra);
    return r;
}

ES_EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f,
                                            void **params, void **extra)
{
    launching(config, ES_LEGACY(stream_of(config)));
    return launched(ES_LEGACY(stream_of(config)), f, params, extra,
                    ES_REAL(cuLaunchKernelEx)(config, f, params, extra));
}

ES_EXPORT CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction f,
                                                 void **params, void **extra)
{
    launching(config, ES_PER_THREAD(stream_of(config)));
    return launched(ES_PER_THREAD(stream_of(config)), f, params, extra,
                    ES_REAL(cuLaunchKernelEx_ptsz)(config, f, params, extra));
}

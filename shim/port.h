/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_PORT_H
#define ES_SHIM_PORT_H
/* The engine's one way to the GPU. intercept/ fills it with the real driver functions, a unit test
 * with its own.
 *
 * pre (all): the driver is initialised; handles are live. None of these is called with a lock of
 * the engine held, but for those marked (cheap), which answer from the driver's own tables. A
 * stream handle here always names its stream: CU_STREAM_LEGACY or CU_STREAM_PER_THREAD, never 0.
 *
 * A member may be NULL where the driver has no such function; es_port_complete says whether the
 * engine can stage at all. */

#include <cuda.h>
#include <stdbool.h>

struct es_port {
    /* Copies from or to pinned memory: enqueue and return. From pageable memory: as natively. */
    CUresult (*copy_h2d)(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
    CUresult (*copy_d2h)(void *dst, CUdeviceptr src, size_t bytes, CUstream stream);

    CUresult (*event_create)(CUevent *event, unsigned flags); /* in the current context */
    CUresult (*event_destroy)(CUevent event);
    CUresult (*event_record)(CUevent event, CUstream stream);
    CUresult (*event_query)(CUevent event);
    CUresult (*event_wait)(CUevent event); /* blocks the host until the event's work is done */

    /* Pins host memory for the current context. Takes some 0.2 ms a MiB of untouched memory, and
     * never waits for queued work (tests/hardware/README.md). Its opposite does wait, so there is
     * none. */
    CUresult (*host_register)(void *p, size_t bytes, unsigned flags);

    CUresult (*pointer_attributes)(unsigned n, CUpointer_attribute *which, void **values,
                                   CUdeviceptr p);         /* (cheap) */
    CUresult (*stream_create)(CUstream *, unsigned flags); /* in the current context */
    CUresult (*stream_flags)(CUstream, unsigned *);        /* (cheap) */
    CUresult (*stream_wait_event)(CUstream, CUevent, unsigned flags);
    CUresult (*stream_query)(CUstream);
    CUresult (*stream_wait)(CUstream); /* blocks the host until what the stream holds now is done */
    CUresult (*stream_is_capturing)(CUstream, CUstreamCaptureStatus *); /* (cheap) */
    CUresult (*stream_context)(CUstream, CUcontext *);                  /* (cheap) */
    CUresult (*context_current)(CUcontext *);                           /* (cheap) */
    CUresult (*context_push)(CUcontext);                                /* (cheap) */
    CUresult (*context_pop)(CUcontext *);                               /* (cheap) */
    CUresult (*context_device)(CUdevice *);                             /* (cheap) */
    CUresult (*context_flags)(unsigned *);                              /* (cheap) */
    CUresult (*context_id)(CUcontext, unsigned long long *); /* (cheap) NULL before driver 12.0 */
    CUresult (*capture_mode)(CUstreamCaptureMode *); /* (cheap) exchanges the thread's mode */
    CUresult (*device_attribute)(int *, CUdevice_attribute, CUdevice); /* (cheap) */
    /* (cheap) Where the i-th parameter lies, and its size. NULL before driver 12.4. */
    CUresult (*function_parameter)(CUfunction, size_t i, size_t *offset, size_t *bytes);
    CUresult (*kernel_parameter)(CUkernel, size_t i, size_t *offset, size_t *bytes);

    /* Whether the process holds libraries that reach the device or its memory past us: those that
     * read device memory without any CUDA call, or whose CUDA calls are not seen. */
    bool (*past_us)(void);
};

static inline bool es_port_complete(const struct es_port *p)
{
    return p->copy_h2d && p->copy_d2h && p->event_create && p->event_destroy && p->event_record &&
           p->event_query && p->event_wait && p->host_register && p->pointer_attributes &&
           p->stream_create && p->stream_flags && p->stream_wait_event && p->stream_query &&
           p->stream_wait && p->device_attribute && p->stream_is_capturing && p->stream_context &&
           p->context_current && p->context_push && p->context_pop && p->context_device &&
           p->context_flags && p->capture_mode;
}

#endif

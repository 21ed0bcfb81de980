/* SPDX-License-Identifier: MIT */
#include "shim/facts.h"

#include <stdint.h>

#include "shim/capture.h"
#include "shim/memory.h"
#include "shim/mutant.h"
#include "shim/pages.h"

/* What the driver says of one address. */
struct described {
    unsigned type; /* CUmemorytype; 0: it does not know the address */
    unsigned managed, sync_memops;
    int device;
    CUcontext context;
    CUdeviceptr start;
    size_t bytes;
};

static bool describe(const struct es_port *port, CUdeviceptr p, struct described *d)
{
    CUpointer_attribute which[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_CONTEXT,     CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    };
    void *values[] = {&d->type,    &d->managed, &d->sync_memops, &d->device,
                      &d->context, &d->start,   &d->bytes};

    *d = (struct described){.device = -1};
    return port->pointer_attributes(sizeof which / sizeof *which, which, values, p) == CUDA_SUCCESS;
}

static enum es_memory kind_of_host(const struct es_port *port, const struct es_copy *c)
{
    struct described first, last;
    uint64_t start = (uintptr_t)c->host;
    enum es_memory noted;

    if (start + c->bytes < start || !describe(port, start, &first) ||
        !describe(port, start + c->bytes - 1, &last))
        return ES_MEM_UNKNOWN;
    if (first.managed || last.managed)
        return ES_MEM_MANAGED;
    if (first.type == CU_MEMORYTYPE_DEVICE || last.type == CU_MEMORYTYPE_DEVICE)
        return ES_MEM_DEVICE;
    if (ES_BROKEN(PINNED))
        return ES_MEM_PAGEABLE;
    if (first.type || last.type)
        return ES_MEM_PINNED;
    noted = es_memory_find(start, c->bytes); /* pinned somewhere in the middle? */
    return noted == ES_MEM_UNKNOWN ? ES_MEM_PAGEABLE : noted;
}

/* device: the stream's. */
static enum es_memory kind_of_device(const struct es_port *port, const struct es_copy *c,
                                     CUcontext context, CUdevice device, bool *sync_memops)
{
    struct described d;
    enum es_memory noted;

    if (!describe(port, c->device, &d) || d.type != CU_MEMORYTYPE_DEVICE)
        return d.managed ? ES_MEM_MANAGED : ES_MEM_UNKNOWN;
    *sync_memops |= d.sync_memops != 0;
    if (d.managed)
        return ES_MEM_MANAGED;
    if (d.device != device ||
        (d.context && d.context != context)) /* pools and VMM name no context */
        return ES_MEM_PEER;
    if (c->device < d.start || c->device - d.start > d.bytes ||
        (d.bytes - (c->device - d.start) < c->bytes && !ES_BROKEN(DEVICE_END)))
        return ES_MEM_UNKNOWN;
    noted = es_memory_find(c->device, c->bytes);
    return noted == ES_MEM_UNKNOWN ? ES_MEM_DEVICE : noted;
}

bool es_facts_context_of(const struct es_port *port, CUstream stream, CUcontext current,
                         CUcontext *context)
{
    *context = current;
    if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return current != NULL;
    return port->stream_context(stream, context) == CUDA_SUCCESS && *context;
}

void es_facts_gather(const struct es_port *port, const struct es_copy *c, CUcontext context,
                     struct es_copy_facts *f)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    CUdevice device;
    unsigned flags;

    f->capturing = es_capture_open() ||
                   port->stream_is_capturing(c->stream, &capture) != CUDA_SUCCESS ||
                   capture != CU_STREAM_CAPTURE_STATUS_NONE;
    if (ES_BROKEN(CAPTURE))
        f->capturing = false;
    if (f->capturing)
        return;
    if (!es_memory_complete() || port->context_device(&device) != CUDA_SUCCESS ||
        port->context_flags(&flags) != CUDA_SUCCESS) {
        f->unfit = true;
        return;
    }
    f->sync_memops = flags & CU_CTX_SYNC_MEMOPS;
    f->host = kind_of_host(port, c);
    f->device = kind_of_device(port, c, context, device, &f->sync_memops);
    if (f->host == ES_MEM_PAGEABLE && !es_pages_are_mapped(c->host, c->bytes))
        f->host = ES_MEM_UNKNOWN;
}

bool es_facts_direction(const struct es_port *port, CUdeviceptr dst, CUdeviceptr src,
                        enum es_direction *dir)
{
    struct described to, from;

    if (es_capture_open() || !port->pointer_attributes || !describe(port, dst, &to) ||
        !describe(port, src, &from))
        return false;
    *dir = to.type == CU_MEMORYTYPE_DEVICE ? ES_H2D : ES_D2H;
    return (to.type == CU_MEMORYTYPE_DEVICE && from.type == 0) ||
           (from.type == CU_MEMORYTYPE_DEVICE && to.type == 0);
}

/* SPDX-License-Identifier: MIT */
#include "tests/unit/fake_port.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct queued_copy {
    void *dst;
    const void *src;
    size_t bytes;
};

enum { MOST = 4096 };
static struct fake fake;
static struct queued_copy queue[MOST];
static struct event {
    unsigned covers; /* copies enqueued when it was recorded */
} events[MOST];
static unsigned event_count, run;

struct fake *fake_reset(void)
{
    fake = (struct fake){.pin_limit = SIZE_MAX};
    event_count = run = 0;
    return &fake;
}

struct fake *fake_state(void)
{
    return &fake;
}

static void run_to(unsigned n)
{
    for (; run < n; run++) {
        const struct queued_copy *c = &queue[run % MOST];

        memcpy(c->dst, c->src, c->bytes);
    }
    fake.queued = fake.copies - run;
}

void fake_run_all(void)
{
    run_to(fake.copies);
}

static bool fails(enum fake_call call)
{
    return fake.fail_nth && fake.fail_call == call && ++fake.calls[call] == fake.fail_nth;
}

static CUresult enqueue(void *dst, const void *src, size_t bytes)
{
    if (fails(FAKE_COPY))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (fake.copies - run == MOST)
        abort();
    queue[fake.copies++ % MOST] = (struct queued_copy){dst, src, bytes};
    fake.queued = fake.copies - run;
    return CUDA_SUCCESS;
}

static CUresult copy_h2d(CUdeviceptr dst, const void *src, size_t bytes, CUstream s)
{
    return enqueue((void *)(uintptr_t)dst, src, bytes);
}

static CUresult copy_d2h(void *dst, CUdeviceptr src, size_t bytes, CUstream s)
{
    return enqueue(dst, (void *)(uintptr_t)src, bytes);
}

static CUresult event_create(CUevent *e, unsigned flags)
{
    *e = (CUevent)&events[event_count++];
    return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent e)
{
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent e, CUstream s)
{
    if (fails(FAKE_EVENT_RECORD))
        return CUDA_ERROR_OUT_OF_MEMORY;
    ((struct event *)e)->covers = fake.copies;
    return CUDA_SUCCESS;
}

static CUresult event_query(CUevent e)
{
    if (fails(FAKE_EVENT_END))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (((struct event *)e)->covers <= run)
        return CUDA_SUCCESS;
    if (fake.hold)
        return CUDA_ERROR_NOT_READY;
    run_to(((struct event *)e)->covers);
    return CUDA_SUCCESS;
}

static CUresult event_wait(CUevent e)
{
    if (fails(FAKE_EVENT_END))
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    fake.waits++;
    fake.waited_while_held |= fake.hold;
    run_to(((struct event *)e)->covers);
    return CUDA_SUCCESS;
}

static CUresult host_register(void *p, size_t bytes, unsigned flags)
{
    fake.pins++;
    if (fake.pinned + bytes > fake.pin_limit)
        return CUDA_ERROR_OUT_OF_MEMORY;
    fake.pinned += bytes;
    return CUDA_SUCCESS;
}

const struct es_port *fake_port(void)
{
    static const struct es_port port = {.copy_h2d = copy_h2d,
                                        .copy_d2h = copy_d2h,
                                        .event_create = event_create,
                                        .event_destroy = event_destroy,
                                        .event_record = event_record,
                                        .event_query = event_query,
                                        .event_wait = event_wait,
                                        .host_register = host_register};
    return &port;
}

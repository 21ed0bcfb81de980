/* SPDX-License-Identifier: MIT */
/* Random programs that the laws are checked with.
 *
 *   laws FLAVOUR SEED PROGRAMS [OPERATIONS]
 *
 * Each program works on buffers and streams, and follows with vector clocks what is ordered
 * natively: by streams, events, the legacy stream's rule, and calls that block. Before it touches a
 * buffer on a stream it makes sure, by any of these means, that the last use is ordered before; so
 * natively there is no race, and running the operations in program order gives the one right
 * answer. Every byte that comes back must be that, every query must say what natively it says, and
 * nothing may hang: with every scheduler of the simulated GPU, natively and under the shim.
 *
 * FLAVOUR: plain    one thread, no host memory that the device can access: copies may overtake
 *          hidden   the same, and kernels follow addresses that lie in device memory
 *          gates    the same as plain, and kernels that spin until a later copy or kernel lets them
 * go mapped   one thread, and kernels write mapped host memory that the host reads after blocking
 *          threads  two threads, each with its own program, on shared kinds of streams
 *
 * Output: "ok", or the seed, the operation and what was wrong. The same seed makes the same
 * program; OPERATIONS cuts it short, to find the shortest that fails (run.py does). */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

enum {
    LEGACY,
    PER_THREAD,
    BLOCKING_1,
    BLOCKING_2,
    APART_1,
    APART_2,
    STREAMS,
    BUFFERS = 5,
    EVENTS = 4,
    MOST_WORDS = 96 << 10
};

struct clock {
    unsigned at[STREAMS];
};

struct buffer {
    CUdeviceptr device, table; /* table: memory that holds its address, if hidden */
    uint32_t *expected;        /* what program order leaves there */
    uint32_t words;
    struct clock used; /* its last uses, all of them */
};

struct program {
    uint64_t random;
    unsigned long seed;
    unsigned operation;
    bool mapped, hidden, gates;
    CUstream streams[STREAMS];
    struct clock
        clocks[STREAMS]; /* of the last work on each: what that is ordered after, and itself */
    struct clock waits[STREAMS]; /* what the next work there has to wait for besides. A bare wait of
                                    the legacy stream is not relied on by blocking streams */
    struct clock host;           /* what the host knows to be done */
    struct buffer buffers[BUFFERS];
    struct {
        CUevent event;
        struct clock covers;
        bool recorded;
    } events[EVENTS];
    CUdeviceptr flag; /* what gates spin on, and its last value */
    uint32_t flag_value;
    struct clock flag_used;
    uint32_t *scratch;          /* pageable */
    volatile uint32_t *visible; /* mapped: a word that kernels write */
    CUdeviceptr visible_device;
    uint32_t visible_value;
    struct clock visible_used;
    char said[160];
};

static CUfunction fill, fill_behind, copy, gate_wait, gate_set;

static void fail(struct program *p, const char *format, ...)
{
    va_list args;
    char text[200];

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("seed %lu operation %u (%s): %s\n", p->seed, p->operation, p->said, text);
    fflush(stdout);
    _exit(1);
}

static void must(struct program *p, CUresult r, const char *what)
{
    if (r != CUDA_SUCCESS)
        fail(p, "%s gives %d", what, r);
}

#define OK(call) must(p, (call), #call)

static uint32_t draw(struct program *p, uint32_t below)
{
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return (uint32_t)((p->random >> 20) % below);
}

/* --- what is ordered natively --- */

static void join(struct clock *to, const struct clock *from)
{
    for (int s = 0; s < STREAMS; s++)
        if (from->at[s] > to->at[s])
            to->at[s] = from->at[s];
}

static bool covers(const struct clock *c, const struct clock *what)
{
    for (int s = 0; s < STREAMS; s++)
        if (what->at[s] > c->at[s])
            return false;
    return true;
}

static bool is_blocking(int stream)
{
    return stream != LEGACY && stream < APART_1;
}

/* What the next work on a stream is ordered after. */
static struct clock before(const struct program *p, int stream)
{
    struct clock c = p->clocks[stream];

    join(&c, &p->waits[stream]);
    join(&c, &p->host);
    if (is_blocking(stream))
        join(&c, &p->clocks[LEGACY]);
    if (stream == LEGACY)
        for (int s = PER_THREAD; s < APART_1; s++)
            join(&c, &p->clocks[s]);
    return c;
}

static void submitted(struct program *p, int stream)
{
    struct clock c = before(p, stream);

    c.at[stream]++;
    p->clocks[stream] = c;
}

static void waited_for(struct program *p, const struct clock *c)
{
    join(&p->host, c);
}

/* --- operations --- */

static void say(struct program *p, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(p->said, sizeof p->said, format, args);
    if (getenv("LAWS_TRACE"))
        printf("  %u: %s\n", p->operation + 1, p->said);
    va_end(args);
    p->operation++;
}

static void fill_words(uint32_t *to, uint32_t words, uint32_t value)
{
    for (uint32_t i = 0; i < words; i++)
        to[i] = value + i;
}

static void blocked_for_stream(struct program *p, int stream)
{
    struct clock c = before(p, stream);

    waited_for(p, &c);
}

/* A synchronous H2D copy: natively a barrier for the legacy stream and all blocking ones. */
static void copy_in(struct program *p, struct buffer *b)
{
    fill_words(b->expected, b->words, draw(p, 1u << 30));
    memcpy(p->scratch, b->expected, b->words * 4);
    submitted(p, LEGACY);
    OK(cuMemcpyHtoD(b->device, p->scratch, b->words * 4));
    memset(p->scratch, 0xee, b->words * 4); /* the source is the program's again */
    b->used = p->clocks[LEGACY];
    waited_for(p, &p->clocks[LEGACY]);
}

static void allocate(struct program *p, struct buffer *b)
{
    OK(cuMemAlloc(&b->device, b->words * 4));
    b->expected = malloc(b->words * 4);
    if (!p->hidden)
        return;
    OK(cuMemAlloc(&b->table, sizeof b->device));
    submitted(p, LEGACY);
    OK(cuMemcpyHtoD(b->table, &b->device, sizeof b->device));
    waited_for(p, &p->clocks[LEGACY]);
}

static void make_buffer(struct program *p, struct buffer *b)
{
    static const uint32_t sizes[] = {1, 100, 1000, 20000, MOST_WORDS};

    b->words = sizes[draw(p, 5)];
    allocate(p, b);
    copy_in(p, b);
}

/* Natively waits for everything (of blocking and other streams). */
static void free_buffer(struct program *p, struct buffer *b)
{
    OK(cuMemFree(b->device));
    free(b->expected);
    b->expected = NULL;
    for (int s = 0; s < STREAMS; s++)
        waited_for(p, &p->clocks[s]);
}

static void record(struct program *p, int event, int stream)
{
    OK(cuEventRecord(p->events[event].event, p->streams[stream]));
    submitted(p, stream);
    p->events[event].covers = p->clocks[stream];
    p->events[event].recorded = true;
}

/* A plain H2D copy to new memory: a barrier that may return early. */
static void barrier_by_new_memory(struct program *p)
{
    struct buffer *b = &p->buffers[draw(p, BUFFERS)];

    say(p, "allocate and fill buffer %d", (int)(b - p->buffers));
    if (draw(p, 2)) { /* beside the old one, without a free that waits */
        CUdeviceptr old = b->device;
        uint32_t *gone = b->expected;

        make_buffer(p, b);
        say(p, "free the old one");
        OK(cuMemFree(old));
        free(gone);
        for (int s = 0; s < STREAMS; s++)
            waited_for(p, &p->clocks[s]);
    } else {
        struct buffer kept = *b; /* leaked until the end: no free in between */

        make_buffer(p, b);
        free(kept.expected);
    }
}

/* Makes what used a buffer ordered before the next work on a stream. */
static void order(struct program *p, const struct clock *used, int stream)
{
    struct clock now = before(p, stream);
    int from = 0;

    if (covers(&now, used))
        return;
    for (int s = 0; s < STREAMS; s++)
        if (used->at[s] > now.at[s])
            from = s;
    switch (draw(p, 6)) {
    case 0:
    case 1: {
        int event = (int)draw(p, EVENTS);

        say(p, "record on %d, wait on %d", from, stream);
        record(p, event, from);
        OK(cuStreamWaitEvent(p->streams[stream], p->events[event].event, 0));
        join(&p->waits[stream], &p->events[event].covers);
        break;
    }
    case 2:
        say(p, "synchronize stream %d", from);
        OK(cuStreamSynchronize(p->streams[from]));
        blocked_for_stream(p, from);
        break;
    case 3:
        barrier_by_new_memory(p);
        break;
    case 4: {
        int event = (int)draw(p, EVENTS);

        say(p, "record on %d, synchronize the event", from);
        record(p, event, from);
        OK(cuEventSynchronize(p->events[event].event));
        waited_for(p, &p->events[event].covers);
        break;
    }
    default:
        say(p, "synchronize the context");
        OK(cuCtxSynchronize());
        for (int s = 0; s < STREAMS; s++)
            waited_for(p, &p->clocks[s]);
    }
    now = before(p, stream);
    if (!covers(&now, used))
        order(p, used, stream); /* one more */
}

static void use(struct program *p, struct buffer *b, int stream)
{
    join(&b->used, &p->clocks[stream]);
}

static void launch(struct program *p, CUfunction f, int stream, void **arguments)
{
    submitted(p, stream);
    OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, p->streams[stream], arguments, NULL));
}

static void kernel_fill(struct program *p)
{
    struct buffer *b = &p->buffers[draw(p, BUFFERS)];
    int stream = (int)draw(p, STREAMS);
    uint32_t value = draw(p, 1u << 30);
    uint64_t n = b->words;

    order(p, &b->used, stream);
    n = b->words; /* ordering may have made the buffer anew */
    say(p, "fill buffer %d on %d", (int)(b - p->buffers), stream);
    for (uint32_t i = 0; i < n; i++)
        b->expected[i] = value;
    if (p->hidden)
        launch(p, fill_behind, stream, (void *[]){&b->table, &n, &value});
    else
        launch(p, fill, stream, (void *[]){&b->device, &n, &value});
    use(p, b, stream);
}

static void kernel_copy(struct program *p)
{
    struct buffer *from = &p->buffers[draw(p, BUFFERS)], *to = &p->buffers[draw(p, BUFFERS)];
    int stream = (int)draw(p, STREAMS);
    uint64_t n;

    if (from == to)
        return;
    for (int i = 0; i < 2; i++) {
        order(p, &from->used, stream);
        order(p, &to->used, stream);
    }
    n = from->words < to->words ? from->words : to->words;
    say(p, "copy %u words of buffer %d to %d on %d", (unsigned)n, (int)(from - p->buffers),
        (int)(to - p->buffers), stream);
    memcpy(to->expected, from->expected, n * 4);
    launch(p, copy, stream, (void *[]){&from->device, &to->device, &n});
    use(p, from, stream);
    use(p, to, stream);
}

static void async_in(struct program *p)
{
    struct buffer *b = &p->buffers[draw(p, BUFFERS)];
    int stream = (int)draw(p, STREAMS);

    order(p, &b->used, stream);
    say(p, "Async H2D to buffer %d on %d", (int)(b - p->buffers), stream);
    fill_words(b->expected, b->words, draw(p, 1u << 30));
    memcpy(p->scratch, b->expected, b->words * 4);
    submitted(p, stream);
    OK(cuMemcpyHtoDAsync(b->device, p->scratch, b->words * 4, p->streams[stream]));
    memset(p->scratch, 0xdd, b->words * 4);
    use(p, b, stream);
}

static void check(struct program *p, const struct buffer *b)
{
    for (uint32_t i = 0; i < b->words; i++)
        if (p->scratch[i] != b->expected[i])
            fail(p, "word %u of %u is %#x, not %#x", i, b->words, p->scratch[i], b->expected[i]);
}

static void copy_out(struct program *p)
{
    struct buffer *b = &p->buffers[draw(p, BUFFERS)];
    int stream = (int)draw(p, STREAMS);
    bool async = draw(p, 2);

    if (!async)
        stream = LEGACY;
    order(p, &b->used, stream);
    say(p, "%s D2H of buffer %d on %d", async ? "Async" : "synchronous", (int)(b - p->buffers),
        stream);
    submitted(p, stream);
    if (async)
        OK(cuMemcpyDtoHAsync(p->scratch, b->device, b->words * 4, p->streams[stream]));
    else
        OK(cuMemcpyDtoH(p->scratch, b->device, b->words * 4));
    check(p, b);
    waited_for(p, &p->clocks[stream]);
    b->used = p->clocks[stream];
}

static void copy_in_again(struct program *p)
{
    struct buffer *b = &p->buffers[draw(p, BUFFERS)];

    order(p, &b->used, LEGACY);
    say(p, "synchronous H2D to buffer %d", (int)(b - p->buffers));
    copy_in(p, b);
}

/* Two copies into one new buffer, the first queued on a blocking stream: the second, a synchronous
 * one, is natively ordered behind it. */
static void fill_twice(struct program *p)
{
    struct buffer *b = &p->buffers[draw(p, BUFFERS)];
    int stream = PER_THREAD + (int)draw(p, 3);
    struct clock everything = {{0}};

    for (int s = 0; s < STREAMS; s++)
        join(&everything, &p->clocks[s]);
    order(p, &everything, LEGACY);
    if (!covers(&p->host, &b->used))
        return;
    say(p, "fill new buffer %d twice, first on %d", (int)(b - p->buffers), stream);
    free(b->expected);
    allocate(p, b);
    fill_words(p->scratch, b->words, draw(p, 1u << 30));
    submitted(p, stream);
    OK(cuMemcpyHtoDAsync(b->device, p->scratch, b->words * 4, p->streams[stream]));
    b->used = p->clocks[stream];
    copy_in(p, b);
}

/* What the host knows to be done must be said to be done, by every query. */
static void query(struct program *p)
{
    int stream = (int)draw(p, STREAMS), event = (int)draw(p, EVENTS);
    struct clock c = p->clocks[stream];
    CUresult r;

    join(&c, &p->waits[stream]);

    say(p, "query stream %d and event %d", stream, event);
    if (covers(&p->host, &c)) {
        r = cuStreamQuery(p->streams[stream]);
        if (r != CUDA_SUCCESS && stream != LEGACY)
            fail(p, "the stream's query gives %d, and all of it was waited for", r);
    }
    if (p->events[event].recorded && covers(&p->host, &p->events[event].covers)) {
        r = cuEventQuery(p->events[event].event);
        if (r != CUDA_SUCCESS)
            fail(p, "the event's query gives %d, and it was waited for", r);
    }
}

static void rerecord(struct program *p)
{
    int stream = (int)draw(p, STREAMS), event = (int)draw(p, EVENTS);

    say(p, "record event %d on %d", event, stream);
    record(p, event, stream);
}

static void wait_anyhow(struct program *p)
{
    int stream = (int)draw(p, STREAMS), event = (int)draw(p, EVENTS);

    say(p, "stream %d waits for event %d", stream, event);
    OK(cuStreamWaitEvent(p->streams[stream], p->events[event].event, 0));
    if (p->events[event].recorded)
        join(&p->waits[stream], &p->events[event].covers);
}

/* A kernel writes host memory; any call that blocks for it lets the host read it. */
static void write_visible(struct program *p)
{
    int stream = (int)draw(p, APART_1);
    uint64_t n = 1;

    if (!p->mapped)
        return;
    order(p, &p->visible_used, stream);
    say(p, "write mapped memory on %d", stream);
    p->visible_value = draw(p, 1u << 30);
    launch(p, fill, stream, (void *[]){&p->visible_device, &n, &p->visible_value});
    p->visible_used = p->clocks[stream];
    if (draw(p, 2))
        barrier_by_new_memory(p);
    if (covers(&p->host, &p->visible_used) && *p->visible != p->visible_value)
        fail(p, "mapped memory has %#x, not %#x", *p->visible, p->visible_value);
}

/* --- gates: a kernel on a stream of its own spins on a word of device memory --- */

static bool is_ordered(struct program *p, const struct clock *used, int stream)
{
    struct clock now = before(p, stream);

    return covers(&now, used);
}

static void async_fill(struct program *p, struct buffer *b, int stream)
{
    fill_words(b->expected, b->words, draw(p, 1u << 30));
    memcpy(p->scratch, b->expected, b->words * 4);
    submitted(p, stream);
    OK(cuMemcpyHtoDAsync(b->device, p->scratch, b->words * 4, p->streams[stream]));
    memset(p->scratch, 0xcc, b->words * 4);
    use(p, b, stream);
}

/* What natively does not wait for the gate must not wait under the shim, or nobody opens it. */
static void go_on_beside(struct program *p, int gated, const struct buffer *not_this,
                         const struct buffer *nor_this)
{
    struct buffer *b = &p->buffers[draw(p, BUFFERS)];
    bool ordered = b != not_this && b != nor_this && is_ordered(p, &b->used, LEGACY);

    switch (draw(p, 5)) {
    case 0: {
        struct buffer *old = ordered ? b : NULL;

        if (!old)
            break;
        say(p, "beside the gate: a copy to new memory as buffer %d", (int)(b - p->buffers));
        free(b->expected);
        make_buffer(p, b);
        break;
    }
    case 1:
        if (!ordered)
            break;
        say(p, "beside the gate: a copy to buffer %d", (int)(b - p->buffers));
        copy_in(p, b);
        break;
    case 2:
        if (!ordered)
            break;
        say(p, "beside the gate: a copy from buffer %d", (int)(b - p->buffers));
        submitted(p, LEGACY);
        OK(cuMemcpyDtoH(p->scratch, b->device, b->words * 4));
        check(p, b);
        waited_for(p, &p->clocks[LEGACY]);
        b->used = p->clocks[LEGACY];
        break;
    case 3:
        say(p, "beside the gate: a query of its stream");
        if (cuStreamQuery(p->streams[gated]) != CUDA_ERROR_NOT_READY)
            fail(p, "the gate is closed, and its stream is said to be done");
        break;
    default:
        say(p, "beside the gate: synchronize the legacy stream");
        OK(cuStreamSynchronize(CU_STREAM_LEGACY));
        blocked_for_stream(p, LEGACY);
    }
}

/* Payload, then flag, on a stream that knows nothing of the gate's. */
static void open_gate(struct program *p, int opener)
{
    uint32_t value = p->flag_value;

    say(p, "open the gate from %d", opener);
    submitted(p, opener);
    switch (draw(p, opener == LEGACY ? 4 : 3)) {
    case 0:
        OK(cuLaunchKernel(gate_set, 1, 1, 1, 1, 1, 1, 0, p->streams[opener],
                          (void *[]){&p->flag, &value}, NULL));
        break;
    case 1:
        OK(cuMemsetD32Async(p->flag, value, 1, p->streams[opener]));
        break;
    case 2:
        OK(cuMemcpyHtoDAsync(p->flag, &value, sizeof value, p->streams[opener]));
        value = 0;
        break;
    default:
        OK(cuMemcpyHtoD(p->flag, &value, sizeof value));
        value = 0;
        waited_for(p, &p->clocks[LEGACY]);
    }
}

static void gate(struct program *p)
{
    struct buffer *payload = &p->buffers[draw(p, BUFFERS)], *out = &p->buffers[draw(p, BUFFERS)];
    int gated = APART_1 + (int)draw(p, 2), opener = (int)draw(p, STREAMS);
    const struct clock *needed[] = {&payload->used, &out->used, &p->flag_used};
    uint64_t n;

    if (!p->gates || payload == out || gated == opener)
        return;
    for (int i = 0; i < 2 * 3; i++)
        order(p, needed[i % 3], i % 2 ? gated : opener);
    for (int i = 0; i < 3; i++) /* by several events the last may have undone the first */
        if (!is_ordered(p, needed[i], gated) || !is_ordered(p, needed[i], opener))
            return;
    n = payload->words < out->words ? payload->words : out->words;
    p->flag_value++;
    say(p, "a gate on %d, behind it payload %d goes to buffer %d", gated,
        (int)(payload - p->buffers), (int)(out - p->buffers));
    launch(p, gate_wait, gated, (void *[]){&p->flag, &p->flag_value});
    if (draw(p, 2))
        async_fill(p, out, gated);
    launch(p, copy, gated, (void *[]){&payload->device, &out->device, &n});
    for (uint32_t steps = draw(p, 4); steps; steps--)
        go_on_beside(p, gated, payload, out);
    say(p, "copy the payload on %d", opener);
    if (opener == LEGACY && draw(p, 2))
        copy_in(p, payload);
    else
        async_fill(p, payload, opener);
    memcpy(out->expected, payload->expected, n * 4);
    for (uint32_t steps = draw(p, 2); steps; steps--)
        go_on_beside(p, gated, payload, out);
    open_gate(p, opener);
    /* What opened the gate has happened when the gated work is done, but its stream need not say so
     * yet: no edge. */
    submitted(p, gated);
    use(p, payload, gated);
    use(p, out, gated);
    p->flag_used = p->clocks[gated];
    join(&p->flag_used, &p->clocks[opener]);
}

static void overwrite_stream(struct program *p)
{
    int stream = BLOCKING_1 + (int)draw(p, 4);

    say(p, "destroy and make stream %d", stream);
    OK(cuStreamSynchronize(p->streams[stream]));
    blocked_for_stream(p, stream);
    OK(cuStreamDestroy(p->streams[stream]));
    OK(cuStreamCreate(&p->streams[stream],
                      stream < APART_1 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
}

static void run(struct program *p, unsigned long seed, unsigned operations)
{
    p->seed = seed;
    p->random = seed * 0x9E3779B97F4A7C15u + 88172645463325252u;
    p->operation = 0;
    p->host = (struct clock){{0}};
    memset(p->clocks, 0, sizeof p->clocks);
    memset(p->waits, 0, sizeof p->waits);
    snprintf(p->said, sizeof p->said, "start");
    p->streams[LEGACY] = CU_STREAM_LEGACY;
    p->streams[PER_THREAD] = CU_STREAM_PER_THREAD;
    for (int s = BLOCKING_1; s < STREAMS; s++)
        OK(cuStreamCreate(&p->streams[s],
                          s < APART_1 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
    for (int e = 0; e < EVENTS; e++) {
        OK(cuEventCreate(&p->events[e].event, CU_EVENT_DISABLE_TIMING));
        p->events[e].recorded = false;
    }
    for (int b = 0; b < BUFFERS; b++)
        make_buffer(p, &p->buffers[b]);
    while (p->operation < operations) {
        switch (draw(p, 18)) {
        case 0 ... 2:
            kernel_fill(p);
            break;
        case 3 ... 5:
            kernel_copy(p);
            break;
        case 6:
            async_in(p);
            break;
        case 7:
        case 8:
            copy_out(p);
            break;
        case 9:
            copy_in_again(p);
            break;
        case 10:
        case 11:
            barrier_by_new_memory(p);
            break;
        case 12:
            query(p);
            break;
        case 13:
            if (draw(p, 4) == 0)
                overwrite_stream(p);
            else
                rerecord(p);
            break;
        case 14:
            wait_anyhow(p);
            break;
        case 15:
            fill_twice(p);
            break;
        case 16:
            gate(p);
            break;
        default:
            write_visible(p);
        }
    }
    for (int b = 0; b < BUFFERS; b++) {
        order(p, &p->buffers[b].used, LEGACY);
        say(p, "the last look at buffer %d", b);
        OK(cuMemcpyDtoH(p->scratch, p->buffers[b].device, p->buffers[b].words * 4));
        submitted(p, LEGACY);
        waited_for(p, &p->clocks[LEGACY]);
        check(p, &p->buffers[b]);
    }
    for (int b = 0; b < BUFFERS; b++)
        free_buffer(p, &p->buffers[b]);
    for (int s = BLOCKING_1; s < STREAMS; s++)
        OK(cuStreamDestroy(p->streams[s]));
    for (int e = 0; e < EVENTS; e++)
        OK(cuEventDestroy(p->events[e].event));
}

struct job {
    CUcontext context;
    unsigned long seed, programs;
    unsigned operations;
    bool mapped, hidden, gates;
};

static void *work(void *arg)
{
    const struct job *j = arg;
    struct program *p = calloc(1, sizeof *p);

    OK(cuCtxSetCurrent(j->context));
    p->scratch = malloc(MOST_WORDS * 4);
    p->mapped = j->mapped;
    p->hidden = j->hidden;
    p->gates = j->gates;
    if (p->gates) {
        OK(cuMemAlloc(&p->flag, 4));
        OK(cuMemsetD32(p->flag, 0, 1));
        OK(cuCtxSynchronize());
    }
    if (p->mapped) {
        void *memory;

        OK(cuMemHostAlloc(&memory, 4, CU_MEMHOSTALLOC_DEVICEMAP));
        OK(cuMemHostGetDevicePointer(&p->visible_device, memory, 0));
        p->visible = memory;
    }
    for (unsigned long i = 0; i < j->programs; i++) {
        memset(&p->visible_used, 0, sizeof p->visible_used);
        memset(&p->flag_used, 0, sizeof p->flag_used);
        run(p, j->seed + i, j->operations);
    }
    free(p->scratch);
    free(p);
    return NULL;
}

int main(int argc, char **argv)
{
    struct program nobody = {.seed = 0}, *p = &nobody;
    struct job jobs[2] = {{.seed = argc > 2 ? strtoul(argv[2], NULL, 10) : 1,
                           .programs = argc > 3 ? strtoul(argv[3], NULL, 10) : 1,
                           .operations = argc > 4 ? (unsigned)atoi(argv[4]) : 60,
                           .mapped = argc > 1 && strcmp(argv[1], "mapped") == 0,
                           .hidden = argc > 1 && strcmp(argv[1], "hidden") == 0,
                           .gates = argc > 1 && strcmp(argv[1], "gates") == 0}};
    CUmodule module;
    pthread_t other;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&jobs[0].context, 0));
    OK(cuCtxSetCurrent(jobs[0].context));
    OK(cuModuleLoadData(&module, ""));
    OK(cuModuleGetFunction(&fill, module, "fill_u32"));
    OK(cuModuleGetFunction(&fill_behind, module, "fill_behind_u32"));
    OK(cuModuleGetFunction(&copy, module, "copy_u32"));
    OK(cuModuleGetFunction(&gate_wait, module, "gate_wait"));
    OK(cuModuleGetFunction(&gate_set, module, "gate_set"));
    if (argc > 1 && strcmp(argv[1], "threads") == 0) {
        jobs[1] = jobs[0];
        jobs[1].seed += 1000000;
        pthread_create(&other, NULL, work, &jobs[1]);
        work(&jobs[0]);
        pthread_join(other, NULL);
    } else {
        work(&jobs[0]);
    }
    printf("ok\n");
    return 0;
}

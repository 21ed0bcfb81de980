/* SPDX-License-Identifier: MIT */
#include "shim/pipe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/pages.h"
#include "shim/workers.h"
#include "tests/harness/test.h"
#include "tests/unit/fake_port.h"

enum { CHUNK = 64 << 10, CHUNKS = 4 };

struct bench {
    struct es_pool *pool;
    struct es_chunk *chunks[CHUNKS];
    struct es_pipe_job job;
    unsigned char *host, *device;
    uint64_t moved;
};

static void set_up(struct bench *b, size_t bytes, bool workers)
{
    fake_reset();
    b->pool = es_pool_of(fake_port(), (CUcontext)0x1000, 1, CHUNK, CHUNKS * CHUNK);
    CHECK_EQ_INT(es_pool_lease(b->pool, CHUNKS, b->chunks), CHUNKS);
    b->host = malloc(bytes);
    b->device = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) {
        b->host[i] = (unsigned char)(i * 31 + (i >> 9));
        b->device[i] = (unsigned char)(i * 17 + (i >> 7));
    }
    b->job = (struct es_pipe_job){.port = fake_port(),
                                  .device = (CUdeviceptr)(uintptr_t)b->device,
                                  .host = (char *)b->host,
                                  .bytes = bytes,
                                  .piece = CHUNK,
                                  .chunks = b->chunks,
                                  .chunk_count = CHUNKS,
                                  .workers = workers && es_workers_start(3) > 0,
                                  .may_wait = true};
}

static void tear_down(struct bench *b)
{
    fake_run_all();
    for (int i = 0; i < CHUNKS; i++)
        b->chunks[i]->pending = false;
    es_pool_return(b->pool, b->chunks, CHUNKS);
    es_pool_end(es_pool_detach((CUcontext)0x1000));
    free(b->host);
    free(b->device);
}

static const size_t sizes[] = {1,         CHUNK - 1,         CHUNK,
                               CHUNK + 1, CHUNKS *CHUNK + 7, 100 * CHUNK + 12345};

TEST(pipe, every_byte_both_ways_with_and_without_workers)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int workers = 0; workers < 2; workers++) {
            struct bench b;

            set_up(&b, sizes[i], workers);
            b.moved = es_pipe_h2d(&b.job);
            CHECK_EQ_U64(b.moved, sizes[i]);
            fake_run_all();
            CHECK_EQ_MEM(b.device, b.host, sizes[i]);
            tear_down(&b);

            set_up(&b, sizes[i], workers);
            b.moved = es_pipe_d2h(&b.job);
            CHECK_EQ_U64(b.moved, sizes[i]);
            CHECK_EQ_MEM(b.host, b.device, sizes[i]);
            tear_down(&b);
        }
    }
}

TEST(pipe, the_source_may_be_overwritten_at_return)
{
    struct bench b;
    unsigned char *copy;
    size_t bytes = CHUNKS * CHUNK;

    set_up(&b, bytes, true);
    copy = malloc(bytes);
    memcpy(copy, b.host, bytes);
    b.moved = es_pipe_h2d(&b.job);
    memset(b.host, 0, bytes);
    fake_run_all();
    CHECK_EQ_MEM(b.device, copy, bytes);
    free(copy);
    tear_down(&b);
}

/* Law 2: an Async copy behind a gate takes the chunks there are, and does not wait for its own. */
TEST(pipe, without_may_wait_it_never_waits)
{
    struct bench b;

    set_up(&b, 10 * CHUNK, true);
    b.job.may_wait = false;
    fake_state()->hold = true;
    b.moved = es_pipe_h2d(&b.job);
    CHECK_EQ_U64(b.moved, CHUNKS * CHUNK); /* the rest is the caller's, natively */
    fake_run_all();
    CHECK_EQ_MEM(b.device, b.host, CHUNKS * CHUNK);
    CHECK_EQ_INT(fake_state()->waits, 0);
    tear_down(&b);
}

/* What comes before a failed call is done with; the caller's own call, for the rest, tells why. */
static void check_ends_before(bool to_device, enum fake_call call, unsigned nth)
{
    uint64_t bytes = 20 * CHUNK, least = (uint64_t)(nth - 1) * CHUNK;
    struct bench b;

    set_up(&b, bytes, true);
    fake_state()->fail_call = call;
    fake_state()->fail_nth = nth;
    b.moved = to_device ? es_pipe_h2d(&b.job) : es_pipe_d2h(&b.job);
    if (call == FAKE_EVENT_END) /* an H2D copy may ask again, or need no answer */
        CHECK(b.moved >= least && (to_device || b.moved < bytes));
    else
        CHECK_EQ_U64(b.moved, least);
    fake_run_all();
    CHECK_EQ_MEM(b.device, b.host, b.moved);
    tear_down(&b);
}

TEST(pipe, a_failed_call_ends_it_before_its_piece)
{
    for (unsigned nth = 1; nth < 12; nth += 5)
        for (enum fake_call call = FAKE_COPY; call <= FAKE_EVENT_END; call++)
            for (int to_device = 0; to_device < 2; to_device++)
                check_ends_before(to_device, call, nth);
}

/* Its copy is queued, and no event tells when it is over: nobody may fill that chunk again. */
TEST(pipe, a_chunk_without_its_event_is_never_used_again)
{
    struct es_chunk *again[CHUNKS];
    struct bench b;

    set_up(&b, 2 * CHUNK, true);
    fake_state()->hold = true;
    fake_state()->fail_call = FAKE_EVENT_RECORD;
    fake_state()->fail_nth = 1;
    CHECK_EQ_U64(es_pipe_h2d(&b.job), 0);
    es_pool_return(b.pool, b.chunks, CHUNKS);
    b.pool = es_pool_of(fake_port(), (CUcontext)0x1000, 1, CHUNK, CHUNKS * CHUNK);
    CHECK_EQ_INT(es_pool_lease(b.pool, CHUNKS, again), CHUNKS - 1);
    for (int i = 0; i < CHUNKS - 1; i++)
        CHECK(again[i] != b.chunks[0]);
    es_pool_return(b.pool, again, CHUNKS - 1);
    es_pool_end(es_pool_detach((CUcontext)0x1000));
    free(b.host);
    free(b.device);
}

/* A worker may only touch memory that faults in the ordinary way. */
TEST(workers, fault_in_tells_what_is_special)
{
    size_t bytes = 12 * CHUNK;
    char *p;

    if (es_workers_start(1) == 0)
        SKIP("no worker can be had: this kernel has no MADV_POPULATE");
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    memset(p, 7, bytes);
    CHECK(es_pages_fault_in(p + 5, bytes - 9, true));
    mprotect(p + 4 * CHUNK, CHUNK, PROT_READ);
    CHECK(es_pages_fault_in(p, bytes, false));
    CHECK(!es_pages_fault_in(p, bytes, true)); /* a write barrier */
    CHECK_EQ_INT(p[4 * CHUNK], 7);
    munmap(p + 4 * CHUNK, CHUNK);
    CHECK(!es_pages_fault_in(p, bytes, false)); /* a hole */
    munmap(p, bytes);
}

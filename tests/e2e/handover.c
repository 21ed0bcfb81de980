/* SPDX-License-Identifier: MIT */
/* Two threads hand memory to each other while other work is queued behind its last use. Each
 * program holds natively; under the shim with EPOCHSHIM_KERNELS=args the copies of either may leave
 * their places, and on the simulated GPU that runs nothing unless it must ("lazy") kernels that
 * have not run show it. No test may have host memory that the device can access. */
#include "tests/e2e/e2e.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 20000, ROUNDS = 100 };

static uint64_t words = WORDS;

static uint32_t *all_of(uint32_t value)
{
    uint32_t *host = malloc(WORDS * 4);

    for (int i = 0; host && i < WORDS; i++)
        host[i] = value;
    return host;
}

static void check_words(CUdeviceptr p, uint32_t value)
{
    uint32_t *host = malloc(WORDS * 4);

    OK(cuMemcpyDtoH(host, p, WORDS * 4));
    for (int i = 0; i < WORDS; i++)
        if (host[i] != value) {
            CHECK_EQ_U64(host[i], value);
            break;
        }
    free(host);
}

/* What a child thread is to do, in the parent's context. */
struct child {
    pthread_t thread;
    CUcontext context;
    void (*does)(void *);
    void *arg;
};

static void *child(void *arg)
{
    struct child *c = arg;

    OK(cuCtxSetCurrent(c->context));
    c->does(c->arg);
    return NULL;
}

static struct child start(void (*does)(void *), void *arg)
{
    static struct child c;

    c = (struct child){.does = does, .arg = arg};
    OK(cuCtxGetCurrent(&c.context));
    CHECK_EQ_INT(pthread_create(&c.thread, NULL, child, &c), 0);
    return c;
}

static void run(void (*does)(void *), void *arg)
{
    struct child c = start(does, arg);

    pthread_join(c.thread, NULL);
}

/* A thread of the program's own that has given streams work before, and will again. */
static void launch_something(void *arg)
{
    CUdeviceptr p = *(CUdeviceptr *)arg;

    e2e_fill_words(CU_STREAM_LEGACY, p, words, 0);
    OK(cuStreamSynchronize(CU_STREAM_LEGACY));
}

struct memory {
    CUdeviceptr a, b, c;
    CUstream parent, apart;
    CUevent written;
};

static struct memory begin(void)
{
    struct memory m;

    e2e_setup_without_pinned();
    OK(cuStreamCreate(&m.parent, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&m.apart, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&m.written, CU_EVENT_DISABLE_TIMING));
    m.a = e2e_device_alloc(WORDS * 4);
    m.b = e2e_device_alloc(WORDS * 4);
    m.c = e2e_device_alloc(WORDS * 4);
    e2e_fill_words(CU_STREAM_LEGACY, m.b, words, 0);
    e2e_fill_words(CU_STREAM_LEGACY, m.c, words, 0);
    run(launch_something, &m.a);
    OK(cuCtxSynchronize());
    return m;
}

static void end(struct memory *m)
{
    OK(cuEventDestroy(m->written));
    OK(cuStreamDestroy(m->parent));
    OK(cuStreamDestroy(m->apart));
    OK(cuMemFree(m->a));
    OK(cuMemFree(m->b));
    OK(cuMemFree(m->c));
}

/* The parent writes to memory, and goes on with other work. */
static void write_and_go_on(const struct memory *m, CUdeviceptr written)
{
    e2e_fill_words(m->parent, written, words, 77);
    OK(cuEventRecord(m->written, m->parent));
    e2e_queue_later_work(m->parent, m->b, words);
}

static void read_a(void *arg)
{
    struct memory *m = arg;
    long before = e2e_later_work_done();

    check_words(m->a, 77);
    if (e2e_runs_only_what_it_must()) /* under opaque the later kernels might write A */
        CHECK_EQ_INT(e2e_later_work_done() - before == E2E_LATER, !e2e_is_by_args());
}

/* The epochs of CUDA.jl, with a thread for each task. */
TEST(handover, a_child_thread_reads_what_its_parent_wrote_before_going_on)
{
    struct memory m = begin();
    long before = e2e_later_work_done();

    write_and_go_on(&m, m.a);
    run(read_a, &m);
    OK(cuStreamQuery(m.parent)); /* natively all of it is done */
    if (e2e_driver_calls("cuInit") >= 0)
        CHECK_EQ_INT(e2e_later_work_done() - before, E2E_LATER);
    end(&m);
}

/* What the child's copy did not wait for comes before what its parent does when it has returned. */
TEST(handover, the_parent_goes_on_behind_what_the_child_left)
{
    struct memory m = begin();

    write_and_go_on(&m, m.a);
    e2e_fill_words(m.parent, m.b, words, 6);
    run(read_a, &m);
    LAUNCH(m.apart, "copy_u32", &m.b, &m.c, &words);
    e2e_fill_words(m.apart, m.a, words, 7);
    OK(cuStreamSynchronize(m.apart));
    check_words(m.c, 6);
    check_words(m.a, 7);
    end(&m);
}

static void copy_and_read_a(void *arg)
{
    struct memory *m = arg;
    CUstream own;

    OK(cuStreamCreate(&own, CU_STREAM_DEFAULT));
    OK(cuStreamWaitEvent(own, m->written, 0));
    LAUNCH(own, "copy_u32", &m->c, &m->a, &words);
    read_a(m);
    OK(cuStreamDestroy(own));
}

/* The same, and the child goes on with it on a stream of its own: no event tells when that is done.
 */
TEST(handover, a_child_thread_goes_on_with_what_its_parent_wrote)
{
    struct memory m = begin();

    write_and_go_on(&m, m.c);
    run(copy_and_read_a, &m);
    OK(cuStreamQuery(m.parent));
    end(&m);
}

static void rewrite_and_read_a(void *arg)
{
    struct memory *m = arg;

    m->c = m->a;
    copy_and_read_a(m);
}

/* In place: both streams wrote it, and behind the event of the parent's there is more. */
TEST(handover, a_child_thread_goes_on_in_the_memory_that_its_parent_wrote)
{
    struct memory m = begin();
    CUdeviceptr c = m.c;

    write_and_go_on(&m, m.a);
    run(rewrite_and_read_a, &m);
    OK(cuStreamQuery(m.parent));
    m.c = c;
    end(&m);
}

static void copy_40_to_a(void *arg)
{
    struct memory *m = arg;
    uint32_t *host = all_of(40);

    OK(cuMemcpyHtoD(m->a, host, WORDS * 4));
    memset(host, 0, WORDS * 4);
    free(host);
}

static void fill_a(void *arg)
{
    struct memory *m = arg;
    long before = e2e_later_work_done(), waits = e2e_driver_calls("cuStreamSynchronize");

    copy_40_to_a(m);
    if (!e2e_runs_only_what_it_must())
        return;
    CHECK_EQ_INT(e2e_later_work_done() - before == E2E_LATER, !e2e_is_by_args());
    if (e2e_is_by_args()) /* no other thread meets a copy that is not complete */
        CHECK_EQ_INT(e2e_driver_calls("cuStreamSynchronize"), waits + 1);
}

/* The parent uses, on a stream that nothing orders but the child's return, what that one copied. */
TEST(handover, a_child_thread_fills_memory_that_its_parent_uses)
{
    struct memory m = begin();

    e2e_queue_later_work(m.parent, m.b, words);
    run(fill_a, &m);
    LAUNCH(m.apart, "copy_u32", &m.a, &m.c, &words);
    OK(cuStreamSynchronize(m.apart));
    check_words(m.c, 40);
    check_words(m.a, 40);
    end(&m);
}

static int child_done;

/* Rewrites A with one value after another. */
static void write_values(void *arg)
{
    struct memory *m = arg;

    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint32_t *host = all_of(round);

        OK(cuMemcpyHtoD(m->a, host, WORDS * 4));
        memset(host, 0, WORDS * 4);
        free(host);
    }
    __atomic_store_n(&child_done, 1, __ATOMIC_SEQ_CST);
}

/* Both look at A, in the order of the legacy stream: all of it is of one value, since to a thread
 * another's copy is one operation. */
static void look_by_kernel(struct memory *m)
{
    uint64_t sum;

    LAUNCH(m->parent, "checksum_u32", &m->a, &words, &m->c);
    OK(cuMemcpyDtoH(&sum, m->c, 8));
    CHECK_EQ_U64(sum % WORDS, 0);
    CHECK(sum / WORDS <= ROUNDS);
}

static void look_by_copy(struct memory *m)
{
    uint32_t *host = malloc(WORDS * 4);

    OK(cuMemcpyDtoH(host, m->a, WORDS * 4));
    CHECK_EQ_U64(host[0], host[WORDS - 1]);
    CHECK_EQ_U64(host[0], host[WORDS / 2]);
    free(host);
}

static void look_while_child_writes(void (*look)(struct memory *))
{
    struct memory m = begin();
    struct child c;

    child_done = 0;
    c = start(write_values, &m);
    while (!__atomic_load_n(&child_done, __ATOMIC_SEQ_CST)) {
        e2e_queue_later_work(m.parent, m.b, words);
        look(&m);
    }
    pthread_join(c.thread, NULL);
    check_words(m.a, ROUNDS);
    end(&m);
}

TEST(handover, a_kernel_sees_all_of_a_copy_or_nothing)
{
    look_while_child_writes(look_by_kernel);
}

TEST(handover, a_copy_sees_all_of_a_copy_or_nothing)
{
    look_while_child_writes(look_by_copy);
}

/* Two threads fill the same memory: one of them was the last. */
TEST(handover, of_two_copies_one_is_the_last)
{
    struct memory m = begin();

    for (int round = 0; round < ROUNDS; round++) {
        uint32_t *mine = all_of(1000), first;
        struct child c;
        uint32_t *back = malloc(WORDS * 4);

        e2e_queue_later_work(m.parent, m.b, words);
        c = start(copy_40_to_a, &m);
        OK(cuMemcpyHtoD(m.a, mine, WORDS * 4));
        memset(mine, 0, WORDS * 4);
        pthread_join(c.thread, NULL);
        OK(cuMemcpyDtoH(back, m.a, WORDS * 4));
        first = back[0];
        CHECK(first == 40 || first == 1000);
        for (int i = 0; i < WORDS; i++)
            if (back[i] != first) {
                CHECK_EQ_U64(back[i], first);
                break;
            }
        free(mine);
        free(back);
    }
    end(&m);
}

/* SPDX-License-Identifier: MIT */
/* Two threads hand memory to each other while other work is queued behind its last use. Each
 * program holds natively; under the shim with EPOCHSHIM_KERNELS=args the copies of either may leave
 * their places, and on the simulated GPU that runs nothing unless it must ("lazy") kernels that
 * have not run show it. No test may have host memory that the device can access. */
#include "tests/e2e/e2e.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 20000, LATER = 50, ROUNDS = 100 };

static uint64_t words = WORDS;

static bool runs_nothing_unless_it_must(void)
{
    const char *scheduler = getenv("SIMGPU_SCHED");

    return e2e_is_followed() && scheduler && strcmp(scheduler, "lazy") == 0;
}

static long scaled(void)
{
    return e2e_driver_calls("scale_f32");
}

static void queue_later_work(CUstream s, CUdeviceptr memory)
{
    float one = 1;

    for (int i = 0; i < LATER; i++)
        LAUNCH(s, "scale_f32", &memory, &one, &words);
}

static void fill(CUstream s, CUdeviceptr p, uint32_t value)
{
    LAUNCH(s, "fill_u32", &p, &words, &value);
}

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

/* A thread of the program's own that has given streams work before, and will again. */
static void launch_something(void *arg)
{
    CUdeviceptr p = *(CUdeviceptr *)arg;

    fill(CU_STREAM_LEGACY, p, 0);
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
    struct child c;

    e2e_setup_without_pinned();
    OK(cuStreamCreate(&m.parent, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&m.apart, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&m.written, CU_EVENT_DISABLE_TIMING));
    m.a = e2e_device_alloc(WORDS * 4);
    m.b = e2e_device_alloc(WORDS * 4);
    m.c = e2e_device_alloc(WORDS * 4);
    fill(CU_STREAM_LEGACY, m.b, 0);
    fill(CU_STREAM_LEGACY, m.c, 0);
    c = start(launch_something, &m.a);
    pthread_join(c.thread, NULL);
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

static void read_a(void *arg)
{
    struct memory *m = arg;
    long before = scaled();

    check_words(m->a, 77);
    if (runs_nothing_unless_it_must()) /* under opaque the later kernels might write A */
        CHECK_EQ_INT(scaled() - before == LATER, !e2e_is_by_args());
}

/* The epochs of CUDA.jl, with a thread for each task. */
TEST(handover, a_child_thread_reads_what_its_parent_wrote_before_going_on)
{
    struct memory m = begin();
    struct child c;
    long before = scaled();

    fill(m.parent, m.a, 77);
    OK(cuEventRecord(m.written, m.parent));
    queue_later_work(m.parent, m.b);
    c = start(read_a, &m);
    pthread_join(c.thread, NULL);
    OK(cuStreamQuery(m.parent)); /* natively all of it is done */
    if (e2e_driver_calls("cuInit") >= 0)
        CHECK_EQ_INT(scaled() - before, LATER);
    end(&m);
}

/* What the child's copy did not wait for comes before what its parent does when it has returned. */
TEST(handover, the_parent_goes_on_behind_what_the_child_left)
{
    struct memory m = begin();
    struct child c;

    fill(m.parent, m.a, 77);
    OK(cuEventRecord(m.written, m.parent));
    queue_later_work(m.parent, m.b);
    fill(m.parent, m.b, 6);
    c = start(read_a, &m);
    pthread_join(c.thread, NULL);
    LAUNCH(m.apart, "copy_u32", &m.b, &m.c, &words);
    fill(m.apart, m.a, 7);
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
    struct child c;

    fill(m.parent, m.c, 77);
    OK(cuEventRecord(m.written, m.parent));
    queue_later_work(m.parent, m.b);
    c = start(copy_and_read_a, &m);
    pthread_join(c.thread, NULL);
    OK(cuStreamQuery(m.parent));
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
    long before = scaled(), waits = e2e_driver_calls("cuStreamSynchronize");

    copy_40_to_a(m);
    if (!runs_nothing_unless_it_must())
        return;
    CHECK_EQ_INT(scaled() - before == LATER, !e2e_is_by_args());
    if (e2e_is_by_args()) /* no other thread meets a copy that is not complete */
        CHECK_EQ_INT(e2e_driver_calls("cuStreamSynchronize"), waits + 1);
}

/* The parent uses, on a stream that nothing orders but the child's return, what that one copied. */
TEST(handover, a_child_thread_fills_memory_that_its_parent_uses)
{
    struct memory m = begin();
    struct child c;

    queue_later_work(m.parent, m.b);
    c = start(fill_a, &m);
    pthread_join(c.thread, NULL);
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

/* Adds up A, again and again, with other work in between. All of it is in the order of the legacy
 * stream: a sum is one of equal words, since to a thread another's copy is one operation. */
static void sum_while_child_writes(bool by_kernel)
{
    struct memory m = begin();
    struct child c;
    uint64_t got;

    child_done = 0;
    c = start(write_values, &m);
    while (!__atomic_load_n(&child_done, __ATOMIC_SEQ_CST)) {
        queue_later_work(m.parent, m.b);
        if (by_kernel) {
            LAUNCH(m.parent, "checksum_u32", &m.a, &words, &m.c);
        } else {
            uint32_t *host = malloc(WORDS * 4);

            OK(cuMemcpyDtoH(host, m.a, WORDS * 4));
            CHECK_EQ_U64(host[0], host[WORDS - 1]);
            CHECK_EQ_U64(host[0], host[WORDS / 2]);
            free(host);
            continue;
        }
        OK(cuMemcpyDtoH(&got, m.c, 8));
        CHECK_EQ_U64(got % WORDS, 0);
        CHECK(got / WORDS <= ROUNDS);
    }
    pthread_join(c.thread, NULL);
    check_words(m.a, ROUNDS);
    end(&m);
}

TEST(handover, a_kernel_sees_all_of_a_copy_or_nothing)
{
    sum_while_child_writes(true);
}

TEST(handover, a_copy_sees_all_of_a_copy_or_nothing)
{
    sum_while_child_writes(false);
}

/* Two threads fill the same memory: one of them was the last. */
TEST(handover, of_two_copies_one_is_the_last)
{
    struct memory m = begin();

    for (int round = 0; round < ROUNDS; round++) {
        uint32_t *mine = all_of(1000), first;
        struct child c;
        uint32_t *back = malloc(WORDS * 4);

        queue_later_work(m.parent, m.b);
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

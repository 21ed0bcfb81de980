/* SPDX-License-Identifier: MIT */
#include "shim/turn.h"

#include "shim/debt.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/now.h"

/* Threads beyond the table share its last slot, which then says "every stream" for good: no hold is
 * had any more, and every copy is native. */
enum { THREADS = 1024, HOLDS = 64 };
static struct es_turn turns[THREADS];
static atomic_uint used; /* slots that were ever taken */
static atomic_uint met;  /* threads that ever took one */

__attribute__((tls_model("initial-exec"))) __thread struct es_turn *es_turn_mine;
atomic_uint es_turn_busy;
enum { OWED = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct hold {
    CUstream stream;
    const struct es_turn *owner;
} holds[HOLDS]; /* guarded by lock, like their count */
static unsigned hold_count;

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void leave(void *turn)
{
    struct es_turn *t = turn;

    es_turn_mine = NULL;
    atomic_store(&t->stream, NULL);
    atomic_store(&t->taken, false);
}

static void make_key(void)
{
    pthread_key_create(&at_end, leave);
}

struct es_turn *es_turn_meet_thread(void)
{
    unsigned i;

    pthread_once(&once, make_key);
    atomic_fetch_add(&met, 1);
    for (i = 0; i < THREADS - 1; i++) {
        bool taken = false;

        if (!atomic_load_explicit(&turns[i].taken, memory_order_relaxed) &&
            atomic_compare_exchange_strong(&turns[i].taken, &taken, true))
            break;
    }
    for (unsigned n = atomic_load(&used);
         n <= i && !atomic_compare_exchange_weak(&used, &n, i + 1);)
        ;
    es_turn_mine = &turns[i];
    if (i < THREADS - 1)
        pthread_setspecific(at_end, es_turn_mine);
    return es_turn_mine;
}

static bool conflict(CUstream a, CUstream b)
{
    if (!a || !b)
        return false;
    if (a == ES_EVERY_STREAM || b == ES_EVERY_STREAM)
        return true;
    if (a == b)
        return a != CU_STREAM_PER_THREAD; /* one handle, a stream in each thread */
    if ((a == CU_STREAM_LEGACY || b == CU_STREAM_LEGACY) && !ES_BROKEN(HOLD_LEGACY))
        return !es_stream_is_nonblocking(a == CU_STREAM_LEGACY ? b : a);
    return false;
}

static bool is_held(CUstream stream, const struct es_turn *by)
{
    for (unsigned i = 0; i < hold_count; i++)
        if (holds[i].owner != by && conflict(holds[i].stream, stream))
            return true;
    return false;
}

void es_turn_wait(CUstream stream)
{
    struct es_turn *mine = es_turn_mine;

    pthread_mutex_lock(&lock);
    while (is_held(stream, mine)) {
        atomic_store(&mine->stream, NULL); /* what is not yet submitted stands in nobody's way */
        pthread_cond_wait(&released, &lock);
        atomic_store(&mine->stream, stream);
    }
    pthread_mutex_unlock(&lock);
    if (atomic_load(&es_turn_busy) & OWED)
        es_debt_join(stream);
}

void es_turn_owe(bool owed)
{
    if (owed)
        atomic_fetch_or(&es_turn_busy, OWED);
    else
        atomic_fetch_and(&es_turn_busy, ~(unsigned)OWED);
}

static bool is_submitting(CUstream stream, const struct es_turn *but)
{
    for (unsigned i = 0; i < atomic_load(&used); i++)
        if (&turns[i] != but && conflict(atomic_load(&turns[i].stream), stream))
            return true;
    return atomic_load(&used) == THREADS;
}

bool es_turn_alone(void)
{
    return atomic_load(&met) <= 1;
}

uint64_t es_turn_on_legacy(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < atomic_load(&used); i++)
        sum += atomic_load(&turns[i].on_legacy);
    return sum;
}

static void let_go(const struct es_turn *mine)
{
    for (unsigned i = 0; i < hold_count; i++) {
        if (holds[i].owner == mine) {
            holds[i] = holds[--hold_count];
            atomic_fetch_sub(&es_turn_busy, 1);
            break;
        }
    }
    pthread_cond_broadcast(&released);
}

/* Whether another thread goes on submitting to the stream for longer than most calls take. Those
 * that begin now wait for our hold. */
static bool is_submitting_on(CUstream stream, const struct es_turn *but)
{
    enum { LOOKS_A_TIME = 64, MOST_NS = 50000 };
    uint64_t began = 0;

    for (unsigned look = 0; is_submitting(stream, but); look++) {
        if (look == 0)
            began = es_now_ns();
        else if (look % LOOKS_A_TIME == 0 && es_now_ns() - began > MOST_NS)
            return true;
    }
    return false;
}

bool es_turn_hold(CUstream stream)
{
    struct es_turn *mine = es_turn_mine ? es_turn_mine : es_turn_meet_thread();
    bool taken;

    pthread_mutex_lock(&lock);
    while (is_held(stream, mine))
        pthread_cond_wait(&released, &lock);
    taken = hold_count < HOLDS;
    if (taken) {
        holds[hold_count++] = (struct hold){stream, mine};
        atomic_fetch_add(&es_turn_busy, 1);
    }
    pthread_mutex_unlock(&lock);
    atomic_thread_fence(memory_order_seq_cst);
    if (!taken || ES_BROKEN(HOLD_SEES) || !is_submitting_on(stream, mine))
        return taken;
    es_turn_release();
    return false;
}

void es_turn_release(void)
{
    pthread_mutex_lock(&lock);
    let_go(es_turn_mine);
    pthread_mutex_unlock(&lock);
}

void es_turn_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&released, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        atomic_store(&turns[i].stream, NULL);
        if (&turns[i] != es_turn_mine)
            atomic_store(&turns[i].taken, false);
    }
    hold_count = 0;
    atomic_store(&es_turn_busy, 0);
}

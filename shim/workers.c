/* SPDX-License-Identifier: MIT */
/* One queue, first in, first out, for all copying threads. A task moves 256 KiB or more, some 30
 * us, so one lock is enough; it is never held while bytes move. */
#include "shim/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "shim/pages.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static struct es_task queue = {.next = &queue, .prev = &queue};
static unsigned threads;
static bool refused; /* by the system, or in a forked child */

static void unlink_task(struct es_task *t)
{
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->queued = false;
}

static void *serve(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        struct es_task *t = queue.next;

        if (t == &queue) {
            pthread_cond_wait(&filled, &lock);
            continue;
        }
        unlink_task(t);
        pthread_mutex_unlock(&lock);
        t->run(t);
        pthread_mutex_lock(&lock);
    }
    return unused;
}

static bool main_thread_mask(cpu_set_t *mask)
{
    /* The caller may be pinned to one core; the main thread is the nearest to what the process was
     * started with. */
    return sched_getaffinity(getpid(), sizeof *mask, mask) == 0;
}

static bool start_one(void)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, old;
    cpu_set_t mask;
    bool started;

    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    sigdelset(&all, SIGTRAP);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, 256 << 10);
    if (main_thread_mask(&mask))
        pthread_attr_setaffinity_np(&attr, sizeof mask, &mask);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    started = pthread_create(&thread, &attr, serve, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (started)
        pthread_setname_np(thread, "epochshim-copy");
    pthread_attr_destroy(&attr);
    return started;
}

unsigned es_workers_start(unsigned n)
{
    unsigned have;

    pthread_mutex_lock(&lock);
    if (threads < n && threads == 0 && !refused)
        refused = !es_pages_fault_in(&threads, 1, false); /* then no worker may touch a page */
    while (threads < n && !refused) {
        if (start_one())
            threads++;
        else
            refused = true;
    }
    have = threads;
    pthread_mutex_unlock(&lock);
    return have;
}

void es_workers_queue(struct es_task *task)
{
    pthread_mutex_lock(&lock);
    task->next = &queue;
    task->prev = queue.prev;
    task->prev->next = task;
    queue.prev = task;
    task->queued = true;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
}

bool es_workers_take(struct es_task *task)
{
    bool was;

    pthread_mutex_lock(&lock);
    was = task->queued;
    if (was)
        unlink_task(task);
    pthread_mutex_unlock(&lock);
    return was;
}

unsigned es_workers_default(void)
{
    int saved = errno, n = 1;
    cpu_set_t mask;

    if (main_thread_mask(&mask))
        n = CPU_COUNT(&mask);
    errno = saved;
    return n < 1 ? 1 : n > 8 ? 8 : (unsigned)n;
}

void es_workers_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    queue.next = queue.prev = &queue;
    threads = 0;
    refused = true;
}

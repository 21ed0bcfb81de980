/* SPDX-License-Identifier: MIT */
#ifndef ES_SHIM_WORKERS_H
#define ES_SHIM_WORKERS_H
/* Threads that help a copying thread to move bytes between the program's memory and pinned memory.
 * They call no CUDA function, block every signal but the synchronous ones, and live until exit.
 *
 * A task is queued by the thread that made the copy and run by a worker, or taken back and run by
 * that thread itself. So a copy never depends on a worker being there. */

#include <stdbool.h>

struct es_task {
    void (*run)(struct es_task *); /* on a worker, without any lock held */
    struct es_task *next, *prev;   /* the queue's, under its lock */
    bool queued;                   /* likewise */
};

/* Starts threads until there are n; fewer if the system refuses. Blocks for the time of
 * pthread_create. Returns how many there are. In a forked child there are none, and none start. */
unsigned es_workers_start(unsigned n);

/* Queues a task. It must stay alive until its run began and ended, or es_workers_take got it back.
 */
void es_workers_queue(struct es_task *task);

/* Takes a task back. True: it was queued, and will not run. */
bool es_workers_take(struct es_task *task);

/* How many threads would copy by default, the caller included: the processors of the main thread's
 * affinity mask, at most 8 (on an H200 with PCIe 5 the eighth thread was the last to gain). */
unsigned es_workers_default(void);

void es_workers_after_fork(void);

#endif

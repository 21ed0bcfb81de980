/* SPDX-License-Identifier: MIT */
#include "shim/capture.h"

#include <pthread.h>
#include <stdatomic.h>

/* A multiset: the per-thread stream has one handle in every thread. Programs hold one capture at a
 * time, seldom two; past the end we only know that there are more, and stay native for good. */
enum { MOST = 256 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream open_streams[MOST]; /* guarded by lock */
static atomic_uint open_count;      /* written under lock */

void es_capture_begin(CUstream stream)
{
    pthread_mutex_lock(&lock);
    unsigned n = atomic_load(&open_count);

    if (n < MOST)
        open_streams[n] = stream;
    atomic_store(&open_count, n + 1);
    pthread_mutex_unlock(&lock);
}

void es_capture_end(CUstream stream)
{
    if (!es_capture_open())
        return;
    pthread_mutex_lock(&lock);
    unsigned n = atomic_load(&open_count);

    for (unsigned i = 0; i < n && n <= MOST; i++) {
        if (open_streams[i] == stream) {
            open_streams[i] = open_streams[n - 1];
            atomic_store(&open_count, n - 1);
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

bool es_capture_open(void)
{
    return atomic_load(&open_count) != 0;
}

void es_capture_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

/* SPDX-License-Identifier: MIT */
/* A sorted array under one lock. Pinning costs the driver half a millisecond a MiB, so a few
 * thousand ranges are many, and an insertion's memmove is nothing beside the call that caused it; a
 * look-up is a binary search.
 *
 * Ranges may overlap (two registrations never do, but a mapping may lie in an exported range), so
 * the longest range is kept to know how far back an overlap can begin. */
#include "shim/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/mutant.h"

struct range {
    uint64_t start, end;
    uint64_t handle;
    enum es_memory kind;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below but lost */
static struct range *ranges;
static size_t count, room;
static uint64_t longest;
static uint64_t *shared; /* handles, unsorted: few */
static size_t shared_count, shared_room;
static atomic_bool lost, reached_host;

/* The array with room for one more element; NULL, and a lost record, without memory. */
static void *with_room(void *array, size_t used, size_t *have, size_t size)
{
    size_t want = *have ? *have * 2 : 64;

    if (used < *have)
        return array;
    array = reallocarray(array, want, size);
    if (array)
        *have = want;
    else
        atomic_store(&lost, true);
    return array;
}

/* The first range that begins at or behind an address. */
static size_t lower_bound(uint64_t start)
{
    size_t lo = 0, hi = count;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (ranges[mid].start < start)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool is_shared(uint64_t handle)
{
    for (size_t i = 0; handle && i < shared_count; i++)
        if (shared[i] == handle)
            return true;
    return false;
}

void es_memory_add(uint64_t start, uint64_t bytes, enum es_memory kind, uint64_t handle)
{
    int saved = errno;
    struct range *bigger;

    if (kind == ES_MEM_PINNED || kind == ES_MEM_MANAGED)
        atomic_store(&reached_host, true);
    if (!start || !bytes)
        return;
    pthread_mutex_lock(&lock);
    bigger = with_room(ranges, count, &room, sizeof *ranges);
    if (bigger) {
        size_t i;

        ranges = bigger;
        i = lower_bound(start);
        memmove(&ranges[i + 1], &ranges[i], (count - i) * sizeof *ranges);
        ranges[i] =
            (struct range){start, start + bytes, handle, is_shared(handle) ? ES_MEM_FOREIGN : kind};
        count++;
        if (bytes > longest)
            longest = bytes;
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}

void es_memory_drop(uint64_t start, uint64_t bytes)
{
    size_t first, last;

    pthread_mutex_lock(&lock);
    first = lower_bound(start);
    last = first;
    while (last < count && ranges[last].start - start < bytes)
        last++;
    if (last > first) {
        memmove(&ranges[first], &ranges[last], (count - last) * sizeof *ranges);
        count -= last - first;
    }
    pthread_mutex_unlock(&lock);
}

enum es_memory es_memory_find(uint64_t start, uint64_t bytes)
{
    enum es_memory kind = ES_MEM_UNKNOWN;

    if (ES_BROKEN(INSIDE) || ES_BROKEN(FOREIGN))
        return kind;
    pthread_mutex_lock(&lock);
    for (size_t i = lower_bound(start > longest ? start - longest : 0);
         i < count && ranges[i].start < start + bytes; i++) {
        if (ranges[i].end > start && ranges[i].kind != ES_MEM_DEVICE) {
            kind = ranges[i].kind;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return kind;
}

void es_memory_handle_shared(uint64_t handle)
{
    int saved = errno;

    pthread_mutex_lock(&lock);
    if (!is_shared(handle)) {
        uint64_t *bigger = with_room(shared, shared_count, &shared_room, sizeof *shared);

        if (bigger) {
            shared = bigger;
            shared[shared_count++] = handle;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (ranges[i].handle == handle)
            ranges[i].kind = ES_MEM_FOREIGN;
    pthread_mutex_unlock(&lock);
    errno = saved;
}

void es_memory_handle_new(uint64_t handle)
{
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < shared_count; i++)
        if (shared[i] == handle)
            shared[i--] = shared[--shared_count];
    pthread_mutex_unlock(&lock);
}

bool es_memory_complete(void)
{
    return !atomic_load_explicit(&lost, memory_order_relaxed);
}

bool es_memory_reached_host(void)
{
    return atomic_load(&reached_host);
}

void es_memory_after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
}

/* SPDX-License-Identifier: MIT */
/* Slabs of anonymous memory, registered with the driver. Registering huge pages took 8 ms for
 * 256 MiB where the driver's own allocator took 130 (H200); and memory of our own stays mapped when
 * a context ends under a copy's feet.
 *
 * The driver calls that can block (register, event query) are made without the lock: chunks are
 * taken off their list first, and room under the limit is reserved first. */
#include "shim/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "shim/mutant.h"

struct slab {
    void *map;
    size_t bytes;
    struct slab *next;
    struct es_chunk chunks[];
};

struct es_pool {
    const struct es_port *port;
    CUcontext context;
    uint64_t id;
    uint64_t chunk_bytes, most_bytes;

    pthread_mutex_t lock; /* guards all below */
    struct slab *slabs;
    struct es_chunk *idle;                   /* complete, last returned first: warm in the cache */
    struct es_chunk *pending, **pending_end; /* in the order of return */
    uint64_t bytes;
    unsigned users; /* leases in progress */
    bool refused;   /* the driver pins no more */
    bool ended;     /* the context is gone: freed with the last lease */

    struct es_pool *next; /* of the list, under list_lock */
};

enum { HUGE_PAGE = 2 << 20 };

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct es_pool *list; /* guarded by list_lock */
static _Atomic uint64_t pinned, peak, refused_at;

static void free_pool(struct es_pool *p)
{
    for (struct slab *s = p->slabs, *next; s; s = next) {
        next = s->next;
        munmap(s->map, s->bytes);
        free(s);
    }
    atomic_fetch_sub(&pinned, p->bytes);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void es_pool_end(struct es_pool *p)
{
    bool unused;

    pthread_mutex_lock(&p->lock);
    p->ended = true;
    unused = p->users == 0;
    pthread_mutex_unlock(&p->lock);
    if (unused)
        free_pool(p);
}

static struct es_pool *make_pool(const struct es_port *port, CUcontext context, uint64_t id,
                                 uint64_t chunk_bytes, uint64_t most_bytes)
{
    struct es_pool *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->port = port;
    p->context = context;
    p->id = id;
    p->chunk_bytes = chunk_bytes;
    p->most_bytes = most_bytes;
    p->pending_end = &p->pending;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

struct es_pool *es_pool_of(const struct es_port *port, CUcontext context, uint64_t id,
                           uint64_t chunk_bytes, uint64_t most_bytes)
{
    struct es_pool **at, *p, *stale = NULL;

    pthread_mutex_lock(&list_lock);
    for (at = &list; (p = *at) && p->context != context; at = &p->next)
        ;
    if (p && p->id != id) { /* the handle came back for a new context */
        *at = p->next;
        stale = p;
        p = NULL;
    }
    if (!p) {
        p = make_pool(port, context, id, chunk_bytes, most_bytes);
        if (p) {
            p->next = list;
            list = p;
        }
    }
    if (p) {
        pthread_mutex_lock(&p->lock);
        p->users++;
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&list_lock);
    if (stale)
        es_pool_end(stale);
    return p;
}

struct es_pool *es_pool_detach(CUcontext context)
{
    struct es_pool **at, *p;

    pthread_mutex_lock(&list_lock);
    for (at = &list; (p = *at) && p->context != context; at = &p->next)
        ;
    if (p)
        *at = p->next;
    pthread_mutex_unlock(&list_lock);
    return p;
}

void es_pool_attach(struct es_pool *p)
{
    pthread_mutex_lock(&list_lock);
    p->next = list;
    list = p;
    pthread_mutex_unlock(&list_lock);
}

void es_pool_abandon_all(void)
{
    pthread_mutex_lock(&list_lock);
    list = NULL;
    pthread_mutex_unlock(&list_lock);
}

/* Under the pool's lock: takes up to n chunks off the list that begins at *head. */
static unsigned take(struct es_chunk **head, unsigned n, struct es_chunk **out)
{
    unsigned got = 0;

    while (got < n && *head) {
        out[got++] = *head;
        *head = (*head)->next;
    }
    return got;
}

static void put_pending(struct es_pool *p, struct es_chunk *c)
{
    c->next = NULL;
    *p->pending_end = c;
    p->pending_end = &c->next;
}

static void put_idle(struct es_pool *p, struct es_chunk *c)
{
    c->next = p->idle;
    p->idle = c;
}

/* Asks the events of all pending chunks, since one stream's may wait long before another's. */
static void collect_complete(struct es_pool *p)
{
    struct es_chunk *all, *c;

    pthread_mutex_lock(&p->lock);
    all = p->pending;
    p->pending = NULL;
    p->pending_end = &p->pending;
    pthread_mutex_unlock(&p->lock);
    for (c = all; c; c = c->next)
        if (ES_BROKEN(CHUNK_EVENT) || p->port->event_query(c->event) == CUDA_SUCCESS)
            c->pending = false;
    pthread_mutex_lock(&p->lock);
    while ((c = all)) {
        all = c->next;
        if (c->pending)
            put_pending(p, c);
        else
            put_idle(p, c);
    }
    pthread_mutex_unlock(&p->lock);
}

/* A new slab of n chunks, on no list yet. NULL: no memory, or the driver refuses. */
static struct slab *make_slab(struct es_pool *p, unsigned n)
{
    size_t bytes = n * p->chunk_bytes, mapped = bytes + HUGE_PAGE;
    struct slab *s = calloc(1, sizeof *s + n * sizeof *s->chunks);
    char *memory;
    unsigned made = 0;

    if (!s)
        return NULL;
    s->bytes = mapped;
    s->map = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->map == MAP_FAILED) {
        free(s);
        return NULL;
    }
    memory = (char *)(((uintptr_t)s->map + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    madvise(memory, bytes, MADV_HUGEPAGE);
    madvise(s->map, mapped, MADV_DONTFORK); /* a child that writes must not move our pages */
    for (; made < n; made++) {
        s->chunks[made].memory = memory + made * p->chunk_bytes;
        if (p->port->event_create(&s->chunks[made].event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
            break;
    }
    if (made == n && p->port->host_register(memory, bytes, 0) == CUDA_SUCCESS)
        return s;
    while (made > 0)
        p->port->event_destroy(s->chunks[--made].event);
    munmap(s->map, mapped);
    free(s);
    return NULL;
}

static void grow(struct es_pool *p, unsigned n)
{
    struct slab *s;
    uint64_t now, before;

    pthread_mutex_lock(&p->lock);
    if ((p->most_bytes - p->bytes) / p->chunk_bytes < n)
        n = (unsigned)((p->most_bytes - p->bytes) / p->chunk_bytes);
    if (p->refused)
        n = 0;
    p->bytes += n * p->chunk_bytes;
    pthread_mutex_unlock(&p->lock);
    if (n == 0)
        return;
    s = make_slab(p, n);
    pthread_mutex_lock(&p->lock);
    if (s) {
        s->next = p->slabs;
        p->slabs = s;
        for (unsigned i = n; i-- > 0;)
            put_idle(p, &s->chunks[i]);
    } else {
        p->bytes -= n * p->chunk_bytes;
        p->refused = true;
    }
    pthread_mutex_unlock(&p->lock);
    if (!s) {
        uint64_t never = 0;

        atomic_compare_exchange_strong(&refused_at, &never,
                                       atomic_load(&pinned) + n * p->chunk_bytes);
        return;
    }
    now = atomic_fetch_add(&pinned, n * p->chunk_bytes) + n * p->chunk_bytes;
    for (before = atomic_load(&peak);
         now > before && !atomic_compare_exchange_weak(&peak, &before, now);)
        ;
}

unsigned es_pool_lease(struct es_pool *p, unsigned want, struct es_chunk **out)
{
    unsigned got;
    int saved = errno;

    pthread_mutex_lock(&p->lock);
    got = take(&p->idle, want, out);
    pthread_mutex_unlock(&p->lock);
    for (int attempt = 0; attempt < 2 && got < want; attempt++) {
        if (attempt == 0)
            collect_complete(p);
        else
            grow(p, want - got);
        pthread_mutex_lock(&p->lock);
        got += take(&p->idle, want - got, out + got);
        pthread_mutex_unlock(&p->lock);
    }
    errno = saved;
    return got;
}

void es_pool_return(struct es_pool *p, struct es_chunk **chunks, unsigned n)
{
    bool last;

    pthread_mutex_lock(&p->lock);
    for (unsigned i = n; i-- > 0;)
        if (!chunks[i]->pending && (!chunks[i]->lost || ES_BROKEN(LOST)))
            put_idle(p, chunks[i]);
    for (unsigned i = 0; i < n; i++)
        if (chunks[i]->pending)
            put_pending(p, chunks[i]);
    last = --p->users == 0 && p->ended;
    pthread_mutex_unlock(&p->lock);
    if (last)
        free_pool(p);
}

struct es_pool_totals es_pool_totals(void)
{
    return (struct es_pool_totals){atomic_load(&pinned), atomic_load(&peak),
                                   atomic_load(&refused_at)};
}

void es_pool_after_fork(void)
{
    pthread_mutex_init(&list_lock, NULL);
    list = NULL; /* the slabs were not inherited */
}

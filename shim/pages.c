/* SPDX-License-Identifier: MIT */
#include "shim/pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* The whole pages around a range. */
struct pages {
    void *start;
    uint64_t bytes;
};

static struct pages around(const void *p, uint64_t bytes)
{
    uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t lo = (uintptr_t)p & ~mask, hi = ((uintptr_t)p + bytes + mask) & ~mask;

    return (struct pages){(void *)lo, hi - lo};
}

bool es_pages_are_mapped(const void *p, uint64_t bytes)
{
    struct pages a = around(p, bytes);
    int saved = errno;
    bool mapped = msync(a.start, a.bytes, MS_ASYNC) == 0 || errno != ENOMEM;

    errno = saved;
    return mapped;
}

bool es_pages_fault_in(const void *p, uint64_t bytes, bool for_write)
{
    struct pages a = around(p, bytes);
    int saved = errno;
    bool done =
        madvise(a.start, a.bytes, for_write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0;

    errno = saved;
    return done;
}

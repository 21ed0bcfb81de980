/* SPDX-License-Identifier: MIT */
#include "shim/unknown.h"

#include <stdatomic.h>
#include <stddef.h>

enum { KEPT = 16 };
static _Atomic(const char *) kept[KEPT];
static atomic_uint count;

void es_unknown_add(const char *name)
{
    unsigned n = atomic_fetch_add(&count, 1);

    if (n < KEPT)
        atomic_store(&kept[n], name);
}

bool es_unknown_any(void)
{
    return atomic_load(&count) != 0;
}

unsigned es_unknown_names(const char **names, unsigned most)
{
    unsigned n = atomic_load(&count);

    for (unsigned i = 0; i < most; i++)
        names[i] = i < n && i < KEPT ? atomic_load(&kept[i]) : NULL;
    return n;
}

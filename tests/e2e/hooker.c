/* SPDX-License-Identifier: MIT */
/* Another library that hooks dlsym, as profilers and overlays do: forwards, and counts what begins
 * with "cu". */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned asked;

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name)
{
    static void *(*next)(void *, const char *);

    if (!next) {
        /* The next one in the process, as such libraries do it, be it the C library's. */
        next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (!next)
            next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
        if (!next)
            next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    }
    if (name[0] == 'c' && name[1] == 'u')
        asked++;
    return next(handle, name);
}

__attribute__((destructor)) static void tell(void)
{
    if (getenv("HOOKER_TELLS"))
        fprintf(stderr, "hooker: %u look-ups of cu...\n", asked);
}

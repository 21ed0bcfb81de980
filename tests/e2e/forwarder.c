/* SPDX-License-Identifier: MIT */
/* Loaded before another library of the same names: forwards with RTLD_NEXT, which only finds the
 * next one when dlsym sees who really asked. */
#include <dlfcn.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef LAST
EXPORT int chain(void);
EXPORT int chain(void)
{
    return 1;
}
#else
EXPORT int chain(void);
EXPORT int chain(void)
{
    int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "chain");

    return next && next != chain ? 1 + next() : -1;
}

EXPORT void *weak_next(void);
EXPORT void *weak_next(void)
{
    return dlsym(RTLD_NEXT, "ompt_start_tool");
}
#endif

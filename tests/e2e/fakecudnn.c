/* SPDX-License-Identifier: MIT */
/* A library whose names look like the driver's, and that looks itself up: libcudnn's dispatcher
 * does so, and tools that hook by name alone sent it into a loop. */
#include <dlfcn.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cudnnCreate(void);
EXPORT int cudnnCreate(void)
{
    return 42;
}

EXPORT void *cudnn_find_self(const char *name);
EXPORT void *cudnn_find_self(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

/* The driver's name in a library that is not the driver. */
EXPORT int cuMemAlloc_v2(void);
EXPORT int cuMemAlloc_v2(void)
{
    return 43;
}

EXPORT int cuMyOwn(void);
EXPORT int cuMyOwn(void)
{
    return 44;
}

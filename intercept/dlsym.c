/* SPDX-License-Identifier: MIT */
/* The dlsym hook, behind its assembler entry (dlsym-*.S). It has no lock, allocates nothing, and
 * leaves the thread's dlerror as the call that the program made left it. */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <stdbool.h>
#include <stddef.h>

#include "intercept/driver.h"
#include "intercept/runtime.h"
#include "intercept/trampoline.h"

typedef void *dlsym_fn(void *handle, const char *name);

/* Shared with the assembler entry alone. */
extern dlsym_fn *es_dlsym_next;
void es_dlsym_find_next(void);
bool es_dlsym_answers(const char *name);
void *es_dlsym(void *handle, const char *name);

dlsym_fn *es_dlsym_next;

static void *nothing_found(void *handle, const char *name)
{
    (void)handle, (void)name;
    return NULL;
}

static dlsym_fn *unversioned(const char *soname)
{
    struct es_object libc;

    return es_elf_by_soname(soname, &libc) ? (dlsym_fn *)es_elf_symbol(&libc, "dlsym") : NULL;
}

/* Of "2.36": 36. By hand, see es_same. */
static int glibc_minor(void)
{
    int minor = 0;

    for (const char *c = gnu_get_libc_version() + 2; *c >= '0' && *c <= '9'; c++)
        minor = minor * 10 + (*c - '0');
    return minor;
}

/* The dlsym behind ours: the C library's, or another preloaded hook's (unversioned, so it matches
 * any version). dlvsym is not hooked for this. A version is asked for only where it exists: a
 * failing dlvsym allocates. */
void es_dlsym_find_next(void)
{
#if defined(__x86_64__)
    const char *oldest = "GLIBC_2.2.5";
#elif defined(__aarch64__)
    const char *oldest = "GLIBC_2.17";
#else
#error "no dlsym entry for this processor: add one beside dlsym-x86_64.S"
#endif
    bool merged = glibc_minor() >= 34; /* libdl became a part of libc */
    dlsym_fn *next = (dlsym_fn *)dlvsym(RTLD_NEXT, "dlsym", merged ? "GLIBC_2.34" : oldest);

    if (!next)
        next = unversioned("libdl.so.2");
    if (!next)
        next = unversioned("libc.so.6");
    if (!next)
        next = unversioned("libc.so");
    es_dlsym_next = next ? next : nothing_found;
}

/* Not by a tail call: then it would be our caller who asks. */
static void *behind_us(const char *name)
{
    void *found = es_dlsym_next(RTLD_NEXT, name);

    __asm__ volatile("" : "+r"(found));
    return found;
}

/* Whether a look-up of "cu..." with RTLD_DEFAULT is es_dlsym's: a search that would meet a hook, or
 * a driver function that is not handed out as it is. Where our own search finds none the caller's
 * may (libcuda in its local scope); a function without a row goes out as it is then. */
bool es_dlsym_answers(const char *name)
{
    void *found, *instead;

    if (es_driver_is_hook(name) || es_runtime_is_hook(name))
        return true;
    if (name[2] < 'A' || name[2] > 'Z')
        return false;
    found = es_dlsym_next(RTLD_DEFAULT, name);
    return found && es_driver_exports(name, found) &&
           !(es_driver_find(found, &instead) && instead == found);
}

/* A search of the global scope met our export. Natively it finds libcuda's or the runtime's, which
 * may be in the caller's own scope alone, or nothing. */
static void *hook_or_nothing(void *handle, const char *name, void *hook, const void *caller)
{
    void *next;

    if (es_runtime_is_hook(name)) {
        if (handle == RTLD_DEFAULT && es_runtime_own(caller, name))
            return hook;
        next = behind_us(name);
        return next ? hook : NULL;
    }
    return es_driver_learn() ? hook : behind_us(name);
}

/* A look-up of "cu..." with a real handle, or one that es_dlsym_answers. */
void *es_dlsym(void *handle, const char *name)
{
    const void *caller = ES_CALL_SITE;
    void *found = es_dlsym_next(handle, name);

    if (!found)
        return NULL;
    if (es_driver_is_ours(found))
        return hook_or_nothing(handle, name, found, caller);
    /* The table and the hooks hold libcuda's addresses from now on: it may not be unloaded. */
    if (es_driver_learn_from(found))
        dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    if (es_driver_find(found, &found))
        return found;
    return es_driver_exports(name, found) ? es_trampoline_for(found, name) : found;
}

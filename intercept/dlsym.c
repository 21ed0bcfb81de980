/* SPDX-License-Identifier: MIT */
/* The dlsym hook, behind its assembler entry (dlsym-*.S). It has no lock, allocates nothing, and
 * leaves the thread's dlerror as the call that the program made left it. */
#include <dlfcn.h>
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

struct next {
    bool seen_us;
    void *found;
};

static bool is_next(const struct es_object *o, void *arg)
{
    struct next *n = arg;

    if (es_driver_is_ours((const void *)o->lo))
        n->seen_us = true;
    else if (n->seen_us)
        n->found = es_elf_symbol(o, "dlsym");
    return n->found != NULL;
}

/* The dlsym behind ours: the C library's, or before it another preloaded library's. In the order of
 * loading, since dlvsym, the only look-up that is not ours, would pass over one without a version.
 */
void es_dlsym_find_next(void)
{
    struct next n = {0};

    es_elf_begin();
    es_elf_each(is_next, &n);
    es_dlsym_next = n.found ? (dlsym_fn *)n.found : nothing_found;
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

/* SPDX-License-Identifier: MIT */
/* Whose runtime? The loader would bind the caller's reference by version to the libcudart that the
 * caller was linked to (its DT_NEEDED), or to a runtime inside the caller itself. Neither can be
 * asked by dlsym: the runtime may be RTLD_LOCAL, and a hook makes no dl* call. So the caller's
 * object is found by the return address, and its runtime by name (elf_lookup.h).
 *
 * Looking takes some microseconds, so the answers are kept by caller. A library may be unloaded and
 * another one come to its place: an answer holds only as long as the loader has unloaded nothing
 * since (some 17 ns to ask, under the loader's lock), or when caller and runtime were there at
 * start. */
#include "intercept/runtime.h"

#include <driver_types.h>
#include <stdatomic.h>
#include <stdint.h>

#include "intercept/driver.h"
#include "intercept/elf_lookup.h"

__attribute__((tls_model("initial-exec"))) __thread struct es_call es_call;

enum runtime_hook {
#define RUNTIME(symbol, params, args) HOOK_##symbol,
#include "intercept/runtime.def"
    HOOKS
};

static const char *const names[HOOKS] = {
#define RUNTIME(symbol, params, args) [HOOK_##symbol] = #symbol,
#include "intercept/runtime.def"
};

/* One caller's answers. Written by whoever makes version odd, read by anyone who finds it even and
 * unchanged. */
enum { CALLERS = 64 };
#define FOREVER UINT64_MAX
static struct caller {
    _Atomic uintptr_t lo, hi; /* its object, [lo, hi) */
    _Atomic uint64_t unloads; /* of the loader, when it was looked up; FOREVER: never mind */
    _Atomic(void *) reals[HOOKS];
} callers[CALLERS];
static atomic_uint version, used;

bool es_runtime_is_hook(const char *name)
{
    for (enum runtime_hook h = 0; h < HOOKS; h++)
        if (es_same(names[h], name))
            return true;
    return false;
}

static bool is_runtime(const char *soname)
{
    const char *prefix = "libcudart.so";

    while (*prefix && *soname == *prefix) {
        prefix++;
        soname++;
    }
    return !*prefix;
}

/* The runtime that this object itself was linked to. */
static bool needed_runtime(const struct es_object *caller, struct es_object *out)
{
    const char *needed;

    for (unsigned i = 0; (needed = es_elf_needed(caller, i)); i++)
        if (is_runtime(needed) && es_elf_by_soname(needed, out))
            return true;
    return false;
}

static void *own(const struct es_object *caller, const char *name)
{
    void *found = es_elf_symbol(caller, name);
    struct es_object runtime;

    if (!found && needed_runtime(caller, &runtime))
        found = es_elf_symbol(&runtime, name);
    return found;
}

/* Neither the caller nor its runtime can be unloaded. */
static bool is_for_ever(const struct es_object *caller, const void *real)
{
    struct es_object runtime;

    return es_elf_is_permanent(caller) && es_elf_by_address(real, &runtime) &&
           es_elf_is_permanent(&runtime);
}

void *es_runtime_own(const void *site, const char *name)
{
    struct es_object caller;

    return es_elf_by_address(site, &caller) ? own(&caller, name) : NULL;
}

/* What the caller was not linked to it must have found behind us in the global scope: the first in
 * the order of loading. */
static void *look_up(const struct es_object *caller, const char *name)
{
    void *found = caller ? own(caller, name) : NULL;

    return found ? found : es_elf_first(name, es_driver_is_ours);
}

static void *kept(enum runtime_hook hook, uintptr_t site)
{
    unsigned v = atomic_load_explicit(&version, memory_order_acquire);
    unsigned n = atomic_load_explicit(&used, memory_order_relaxed);
    void *real = NULL;

    for (unsigned i = 0; !(v & 1) && i < n; i++) {
        struct caller *c = &callers[i];

        if (site >= atomic_load_explicit(&c->lo, memory_order_relaxed) &&
            site < atomic_load_explicit(&c->hi, memory_order_relaxed)) {
            uint64_t unloads = atomic_load_explicit(&c->unloads, memory_order_relaxed);

            if (unloads == FOREVER || unloads == es_elf_unloads())
                real = atomic_load_explicit(&c->reals[hook], memory_order_relaxed);
            break;
        }
    }
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&version, memory_order_relaxed) == v ? real : NULL;
}

/* In the place of what overlaps it, or of the next one. */
static void keep(const struct es_object *caller, uint64_t unloads, void *const *reals)
{
    static unsigned next;
    unsigned v = atomic_load(&version), n = atomic_load(&used), at = n;

    if ((v & 1) || !atomic_compare_exchange_strong(&version, &v, v + 1))
        return; /* another thread is at it: not this time */
    for (unsigned i = 0; i < n; i++)
        if (caller->lo < atomic_load(&callers[i].hi) && atomic_load(&callers[i].lo) < caller->hi)
            at = i;
    if (at == CALLERS)
        at = next++ % CALLERS;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&callers[at].lo, caller->lo, memory_order_relaxed);
    atomic_store_explicit(&callers[at].hi, caller->hi, memory_order_relaxed);
    atomic_store_explicit(&callers[at].unloads, unloads, memory_order_relaxed);
    for (enum runtime_hook h = 0; h < HOOKS; h++)
        atomic_store_explicit(&callers[at].reals[h], reals[h], memory_order_relaxed);
    if (at == n)
        atomic_store(&used, n + 1);
    atomic_store_explicit(&version, v + 2, memory_order_release);
}

static void *real_of(enum runtime_hook hook, const void *site)
{
    void *real = kept(hook, (uintptr_t)site), *reals[HOOKS];
    struct es_object caller;
    uint64_t unloads;

    if (real)
        return real;
    unloads = es_elf_unloads();
    if (!es_elf_by_address(site, &caller))
        return look_up(NULL, names[hook]);
    for (enum runtime_hook h = 0; h < HOOKS; h++)
        reals[h] = look_up(&caller, names[h]);
    keep(&caller, is_for_ever(&caller, reals[hook]) ? FOREVER : unloads, reals);
    return reals[hook];
}

static struct es_call enter(const char *api, const void *site)
{
    struct es_call before = es_call;

    if (!before.api)
        es_call = (struct es_call){api, site};
    return before;
}

/* Natively a program without a runtime has no such function; a weak reference to one that was not
 * NULL can only get an answer. */
#define RUNTIME(symbol, params, args)                                                              \
    ES_EXPORT cudaError_t symbol params;                                                           \
    ES_EXPORT cudaError_t symbol params                                                            \
    {                                                                                              \
        const void *site = ES_CALL_SITE;                                                           \
        cudaError_t(*real) params = (cudaError_t(*) params)real_of(HOOK_##symbol, site);           \
        struct es_call before;                                                                     \
        cudaError_t r;                                                                             \
                                                                                                   \
        if (!real)                                                                                 \
            return cudaErrorInsufficientDriver;                                                    \
        before = enter(#symbol, site);                                                             \
        r = real args;                                                                             \
        es_call = before;                                                                          \
        return r;                                                                                  \
    }
#include "intercept/runtime.def"

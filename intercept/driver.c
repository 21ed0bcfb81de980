/* SPDX-License-Identifier: MIT */
/* Programs find driver functions by dlsym, by cuGetProcAddress or by a plain reference; on every
 * door the address that the real resolver gives is one that libcuda exports by name. So
 * substitution goes by identity: whoever asks, let the real resolver answer, then look the answer
 * up here. No version, flag or suffix rule of cuGetProcAddress is modelled.
 *
 * Source: on driver 13.0 every address that cuGetProcAddress gave equalled that of one named symbol
 * (tests/hardware/probe.cu, identity). */
#include "intercept/driver.h"

#include <stdatomic.h>
#include <stdint.h>

static const char *const names[ES_HOOK_COUNT] = {
#define FOLLOW(symbol, group, params, args) [ES_HOOK_##symbol] = #symbol,
#define BODY(symbol, group)                 [ES_HOOK_##symbol] = #symbol,
#include "intercept/hooks.def"
#undef FOLLOW
#undef BODY
};

static void *const hooks[ES_HOOK_COUNT] = {
#define FOLLOW(symbol, group, params, args) [ES_HOOK_##symbol] = (void *)symbol,
#define BODY(symbol, group)                 [ES_HOOK_##symbol] = (void *)symbol,
#include "intercept/hooks.def"
#undef FOLLOW
#undef BODY
};

static _Atomic(void *) reals[ES_HOOK_COUNT];
static atomic_bool learnt;

/* Open addressing, at most half full. A slot is a hook's number plus one; its address is the one in
 * reals[]. The first of two hooks with one address keeps it: then the driver made them aliases. */
enum { SLOTS = 1024 };
_Static_assert(ES_HOOK_COUNT * 2 <= SLOTS, "enlarge SLOTS");
static atomic_ushort slots[SLOTS];

static unsigned slot_of(const void *address)
{
    return (unsigned)(((uintptr_t)address >> 4) * 0x9E3779B1u >> 7) % SLOTS;
}

static void enter(enum es_hook hook, void *address)
{
    for (unsigned i = slot_of(address);; i = (i + 1) % SLOTS) {
        unsigned short held = 0;

        if (atomic_compare_exchange_strong(&slots[i], &held, (unsigned short)(hook + 1)) ||
            held == hook + 1 || atomic_load(&reals[held - 1]) == address)
            return;
    }
}

bool es_driver_object(struct es_object *libcuda)
{
    return es_elf_by_soname("libcuda.so.1", libcuda);
}

bool es_driver_learn(void)
{
    struct es_object libcuda;

    if (atomic_load_explicit(&learnt, memory_order_acquire))
        return true;
    if (!es_driver_object(&libcuda))
        return false;
    for (enum es_hook h = 0; h < ES_HOOK_COUNT; h++)
        atomic_store(&reals[h], es_elf_symbol(&libcuda, names[h]));
    for (enum es_hook h = 0; h < ES_HOOK_COUNT; h++)
        if (atomic_load(&reals[h]))
            enter(h, atomic_load(&reals[h]));
    atomic_store_explicit(&learnt, true, memory_order_release);
    return true;
}

bool es_driver_learn_from(const void *address)
{
    struct es_object object;

    return !atomic_load_explicit(&learnt, memory_order_acquire) &&
           es_elf_by_address(address, &object) && es_same(object.soname, "libcuda.so.1") &&
           es_driver_learn();
}

void *es_driver_substitute(void *address)
{
    if (!address || !atomic_load_explicit(&learnt, memory_order_acquire))
        return address;
    for (unsigned i = slot_of(address);; i = (i + 1) % SLOTS) {
        unsigned held = atomic_load_explicit(&slots[i], memory_order_relaxed);

        if (!held)
            return address;
        if (atomic_load_explicit(&reals[held - 1], memory_order_relaxed) == address)
            return hooks[held - 1];
    }
}

bool es_driver_is_ours(const void *address)
{
    /* The linker's names for our own image. */
    extern const char __ehdr_start[] __attribute__((visibility("hidden")));
    extern const char _end[] __attribute__((visibility("hidden")));

    return (const char *)address >= __ehdr_start && (const char *)address < _end;
}

bool es_driver_is_hook(const char *name)
{
    for (enum es_hook h = 0; h < ES_HOOK_COUNT; h++)
        if (es_same(names[h], name))
            return true;
    return false;
}

static CUresult lacking(void)
{
    return CUDA_ERROR_NOT_FOUND;
}

void *es_driver_real(enum es_hook hook)
{
    void *real = atomic_load_explicit(&reals[hook], memory_order_relaxed);

    if (__builtin_expect(!real, 0)) {
        es_driver_learn();
        real = atomic_load_explicit(&reals[hook], memory_order_relaxed);
    }
    return real ? real : (void *)lacking;
}

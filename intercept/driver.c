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

/* Rows with an address worth knowing: first the hooks, then the harmless. What has no place here is
 * unknown. */
enum row {
    HOOKS_END = ES_HOOK_COUNT - 1,
#define HARMLESS(symbol) HARMLESS_##symbol,
#include "intercept/hooks.def"
    ROWS
};

static const char *const names[ROWS] = {
#define BODY(symbol, group)   [ES_HOOK_##symbol] = #symbol,
#define FOLLOW(symbol, group) [ES_HOOK_##symbol] = #symbol,
#define HARMLESS(symbol)      [HARMLESS_##symbol] = #symbol,
#include "intercept/hooks.def"
};

static void *const hooks[ES_HOOK_COUNT] = {
#define BODY(symbol, group)   [ES_HOOK_##symbol] = (void *)symbol,
#define FOLLOW(symbol, group) [ES_HOOK_##symbol] = (void *)symbol,
#include "intercept/hooks.def"
};

static _Atomic(void *) reals[ROWS];
static atomic_bool learnt;

/* Open addressing, at most half full. A slot is a row's number plus one; its address is the one in
 * reals[]. The first of two rows with one address keeps it: then the driver made them aliases. */
enum { SLOTS = 2048 };
_Static_assert(ROWS * 2 <= SLOTS, "enlarge SLOTS");
static atomic_ushort slots[SLOTS];

static unsigned slot_of(const void *address)
{
    return (unsigned)(((uintptr_t)address >> 4) * 0x9E3779B1u >> 7) % SLOTS;
}

static void enter(unsigned row, void *address)
{
    for (unsigned i = slot_of(address);; i = (i + 1) % SLOTS) {
        unsigned short held = 0;

        if (atomic_compare_exchange_strong(&slots[i], &held, (unsigned short)(row + 1)) ||
            held == row + 1 || atomic_load(&reals[held - 1]) == address)
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
    for (unsigned row = 0; row < ROWS; row++)
        atomic_store(&reals[row], es_elf_symbol(&libcuda, names[row]));
    for (unsigned row = 0; row < ROWS; row++)
        if (atomic_load(&reals[row]))
            enter(row, atomic_load(&reals[row]));
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

bool es_driver_find(void *address, void **instead)
{
    if (!atomic_load_explicit(&learnt, memory_order_acquire))
        return false;
    for (unsigned i = slot_of(address);; i = (i + 1) % SLOTS) {
        unsigned held = atomic_load_explicit(&slots[i], memory_order_relaxed);

        if (!held)
            return false;
        if (atomic_load_explicit(&reals[held - 1], memory_order_relaxed) == address) {
            *instead = held <= ES_HOOK_COUNT ? hooks[held - 1] : address;
            return true;
        }
    }
}

bool es_driver_exports(const char *name, const void *address)
{
    struct es_object libcuda;

    /* Its debugger interface ("cudbg...") and every other library's names go on in lower case. */
    return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z' &&
           es_driver_object(&libcuda) && es_elf_symbol(&libcuda, name) == address;
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

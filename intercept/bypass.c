/* SPDX-License-Identifier: MIT */
/* A library that was loaded with RTLD_DEEPBIND is bound to its own dependencies first: its dlsym is
 * the C library's, and its cudaMemcpy the runtime's own. That is how the program wants it, so
 * nothing is done about it; but a log that leaves those calls out should say so.
 *
 * What a library is bound to stands in its relocated slots (ELF gABI, "Relocation"). */
#include "intercept/bypass.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "intercept/driver.h"
#include "intercept/elf_lookup.h"
#include "intercept/runtime.h"

#if defined(__x86_64__)
enum { SLOT = R_X86_64_JUMP_SLOT, DATA_SLOT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { SLOT = R_AARCH64_JUMP_SLOT, DATA_SLOT = R_AARCH64_GLOB_DAT };
#endif

struct list {
    char *text;
    size_t size, length;
    unsigned count;
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* A large library refers to a hundred thousand names: most are told by how they begin. */
static bool is_hook(const char *name)
{
    return (begins(name, "cu") || begins(name, "__cuda")) &&
           (es_driver_is_hook(name) || es_runtime_is_hook(name));
}

/* A library that looks the driver up names it. */
static bool names_libcuda(const struct es_object *o)
{
    static const char name[] = "libcuda.so";

    for (unsigned i = 0; i < o->segment_count; i++)
        if (memmem((const void *)o->segments[i].start, o->segments[i].bytes, name, sizeof name - 1))
            return true;
    return false;
}

/* Whether a reference leads straight to CUDA, or to the C library's look-up of it. */
static bool leads_past(const struct es_object *from, const char *name, const void *to)
{
    struct es_object o;

    if (!is_hook(name) && strcmp(name, "dlsym") != 0)
        return false;
    if (es_driver_is_ours(to) || !es_elf_by_address(to, &o) || o.base == from->base)
        return false; /* ours, or not bound yet */
    if (is_hook(name))
        return begins(o.soname, "libcuda.so") || begins(o.soname, "libcudart.so");
    return (begins(o.soname, "libc.so") || begins(o.soname, "libdl.so")) && names_libcuda(from);
}

static bool any_leads_past(const struct es_object *o, const ElfW(Rela) * r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const ElfW(Sym) *symbol = &o->symbols[ELF64_R_SYM(r[i].r_info)];
        unsigned type = ELF64_R_TYPE(r[i].r_info);

        if ((type == SLOT || type == DATA_SLOT) && symbol->st_shndx == SHN_UNDEF &&
            leads_past(o, o->strings + symbol->st_name, *(void *const *)(o->base + r[i].r_offset)))
            return true;
    }
    return false;
}

static bool visit(const struct es_object *o, void *arg)
{
    struct list *l = arg;
    const char *name = *o->soname ? o->soname : o->path;
    int n;

    if (es_driver_is_ours((const void *)o->lo) || begins(o->soname, "libcuda.so") ||
        (!any_leads_past(o, o->jump_slots, o->jump_slot_count) &&
         !any_leads_past(o, o->data_slots, o->data_slot_count)))
        return false;
    if (strrchr(name, '/'))
        name = strrchr(name, '/') + 1;
    n = snprintf(l->text + l->length, l->size - l->length, "%s%s", l->count ? ", " : "", name);
    if (n > 0 && (size_t)n < l->size - l->length)
        l->length += (size_t)n;
    l->count++;
    return false;
}

unsigned es_bypass_list(char *text, size_t size)
{
    struct list l = {.text = text, .size = size};

    text[0] = '\0';
    es_elf_each(visit, &l);
    return l.count;
}

static bool reads_device_memory(const struct es_object *o, void *unused)
{
    static const char *const names[] = {"libibverbs.so", "libfabric.so", "libgdrapi.so"};

    (void)unused;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(o->soname, names[i]))
            return true;
    return false;
}

bool es_bypass_any(void)
{
    static _Atomic uint64_t looked_at; /* loads so far, times two, and the answer */
    uint64_t loads = es_elf_loads(), before = atomic_load(&looked_at);
    bool any;
    char name[8];

    if (before >> 1 == loads)
        return before & 1;
    any = es_elf_each(reads_device_memory, NULL) || es_bypass_list(name, sizeof name) > 0;
    atomic_store(&looked_at, loads << 1 | any);
    return any;
}

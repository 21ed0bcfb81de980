/* SPDX-License-Identifier: MIT */
#ifndef ES_INTERCEPT_ELF_LOOKUP_H
#define ES_INTERCEPT_ELF_LOOKUP_H
/* Looks into the objects that the loader has mapped, without asking the loader's dl* functions.
 *
 * A CUDA hook may not call dlsym: it would drop the program's pending dlerror, and take the
 * loader's lock that another thread may hold while its constructors call CUDA. dl_iterate_phdr does
 * neither (its lock guards the list alone), allocates nothing and opens nothing. */

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* strcmp() == 0 without the C library's: a sanitizer puts its own there, which may not be called
 * while its runtime looks symbols up to initialise itself. So it is with every string function. */
static inline bool es_same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

enum { ES_SEGMENTS = 4 };

struct es_object {
    ElfW(Addr) base;
    uintptr_t lo, hi; /* the mapped range, [lo, hi) */
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash; /* one of the two hash tables is there */
    const ElfW(Word) * sysv_hash;
    const char *soname; /* "" if it has none */
    const ElfW(Dyn) * dynamic;
    unsigned order;   /* of loading: 0 is the program */
    const char *path; /* as it was loaded; "" for the program */
    const ElfW(Rela) * jump_slots, *data_slots;
    size_t jump_slot_count, data_slot_count;
    struct {
        uintptr_t start;
        size_t bytes;
    } segments[ES_SEGMENTS]; /* the readable ones that are not written to */
    unsigned segment_count;
};

/* Before the first walk: takes the C library's dl_iterate_phdr. ThreadSanitizer puts its own in
 * front, which may not be called before its runtime is initialised, and that looks symbols up. */
void es_elf_begin(void);

/* Visits the mapped objects in the order of loading, the program first, until visit() says true.
 * Returns whether it did. visit() may not call a dl* function. */
bool es_elf_each(bool (*visit)(const struct es_object *, void *), void *arg);

/* The first mapped object with this DT_SONAME. False if there is none. */
bool es_elf_by_soname(const char *soname, struct es_object *out);

/* The mapped object that an address lies in. False if there is none. */
bool es_elf_by_address(const void *address, struct es_object *out);

/* A defined function of the object, by its unversioned name; NULL if it has none. */
void *es_elf_symbol(const struct es_object *object, const char *name);

/* The first function of this name in the order of loading, but for those that skip() is true of. */
void *es_elf_first(const char *name, bool (*skip)(const void *address));

/* The name of the i-th library that the object was linked to; NULL beyond the last. */
const char *es_elf_needed(const struct es_object *object, unsigned i);

/* How many objects the loader has unloaded so far: what was learnt of an address holds as long as
 * this does not change. */
uint64_t es_elf_unloads(void);

/* How many it has loaded so far. */
uint64_t es_elf_loads(void);

/* Whether an object was there when we were: those are never unloaded. */
bool es_elf_is_permanent(const struct es_object *object);

#endif

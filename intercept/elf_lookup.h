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

struct es_object {
    ElfW(Addr) base;
    uintptr_t lo, hi; /* the mapped range, [lo, hi) */
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash; /* one of the two hash tables is there */
    const ElfW(Word) * sysv_hash;
    const char *soname; /* "" if it has none */
};

/* The first mapped object with this DT_SONAME. False if there is none. */
bool es_elf_by_soname(const char *soname, struct es_object *out);

/* The mapped object that an address lies in. False if there is none. */
bool es_elf_by_address(const void *address, struct es_object *out);

/* A defined function of the object, by its unversioned name; NULL if it has none. */
void *es_elf_symbol(const struct es_object *object, const char *name);

#endif

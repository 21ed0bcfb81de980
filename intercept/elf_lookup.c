/* SPDX-License-Identifier: MIT */
/* Symbol look-up by hand, as the System V ABI (chapter 5, "Hash Table") and the GNU hash extension
 * describe it. The loader has relocated the addresses in the dynamic section of everything but the
 * vDSO; an address below the base is taken as relative. */
#include "intercept/elf_lookup.h"

#include <dlfcn.h>

static const void *dynamic_pointer(ElfW(Addr) base, ElfW(Addr) value)
{
    return (const void *)(value < base ? base + value : value);
}

static bool describe(const struct dl_phdr_info *info, struct es_object *o)
{
    const ElfW(Dyn) *d = NULL;
    ElfW(Word) soname = 0;

    *o = (struct es_object){
        .base = info->dlpi_addr, .lo = UINTPTR_MAX, .path = info->dlpi_name ? info->dlpi_name : ""};
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + p->p_vaddr;

        if (p->p_type == PT_DYNAMIC)
            d = (const ElfW(Dyn) *)start;
        if (p->p_type != PT_LOAD)
            continue;
        if (start < o->lo)
            o->lo = start;
        if (start + p->p_memsz > o->hi)
            o->hi = start + p->p_memsz;
        if ((p->p_flags & (PF_R | PF_W)) == PF_R && o->segment_count < ES_SEGMENTS) {
            o->segments[o->segment_count].start = start;
            o->segments[o->segment_count++].bytes = p->p_memsz;
        }
    }
    if (!d)
        return false;
    o->dynamic = d;
    for (; d->d_tag != DT_NULL; d++) {
        const void *p = dynamic_pointer(o->base, d->d_un.d_ptr);

        switch (d->d_tag) {
        case DT_SYMTAB:
            o->symbols = p;
            break;
        case DT_STRTAB:
            o->strings = p;
            break;
        case DT_GNU_HASH:
            o->gnu_hash = p;
            break;
        case DT_HASH:
            o->sysv_hash = p;
            break;
        case DT_JMPREL:
            o->jump_slots = p;
            break;
        case DT_PLTRELSZ:
            o->jump_slot_count = d->d_un.d_val / sizeof *o->jump_slots;
            break;
        case DT_RELA:
            o->data_slots = p;
            break;
        case DT_RELASZ:
            o->data_slot_count = d->d_un.d_val / sizeof *o->data_slots;
            break;
        case DT_SONAME:
            soname = (ElfW(Word))d->d_un.d_val;
            break;
        }
    }
    if (!o->symbols || !o->strings)
        return false;
    o->soname = soname ? o->strings + soname : "";
    return true;
}

struct each {
    bool (*visit)(const struct es_object *, void *);
    void *arg;
    unsigned seen;
};

static int visit_each(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct each *e = arg;
    struct es_object o;
    unsigned order = e->seen++;

    (void)size;
    if (!describe(info, &o))
        return 0;
    o.order = order;
    return e->visit(&o, e->arg);
}

typedef int walk_fn(int (*)(struct dl_phdr_info *, size_t, void *), void *);
static walk_fn *walk = dl_iterate_phdr;
static uint64_t loaded_at_start;

void es_elf_begin(void)
{
#if defined(__x86_64__)
    void *next = dlvsym(RTLD_NEXT, "dl_iterate_phdr", "GLIBC_2.2.5");
#else
    void *next = dlvsym(RTLD_NEXT, "dl_iterate_phdr", "GLIBC_2.17");
#endif

    if (next)
        walk = (walk_fn *)next;
    if (!loaded_at_start)
        loaded_at_start = es_elf_loads();
}

bool es_elf_is_permanent(const struct es_object *o)
{
    return o->order < loaded_at_start;
}

bool es_elf_each(bool (*visit)(const struct es_object *, void *), void *arg)
{
    return walk(visit_each, &(struct each){.visit = visit, .arg = arg}) != 0;
}

/* What to look for; out: where it was found. */
struct search {
    const char *name;
    uintptr_t address;
    bool (*skip)(const void *);
    struct es_object object;
    void *symbol;
};

static bool has_soname(const struct es_object *o, void *arg)
{
    struct search *s = arg;

    s->object = *o;
    return es_same(o->soname, s->name);
}

bool es_elf_by_soname(const char *soname, struct es_object *out)
{
    struct search s = {.name = soname};
    bool found = es_elf_each(has_soname, &s);

    *out = s.object;
    return found;
}

static bool has_address(const struct es_object *o, void *arg)
{
    struct search *s = arg;

    s->object = *o;
    return s->address >= o->lo && s->address < o->hi;
}

bool es_elf_by_address(const void *address, struct es_object *out)
{
    struct search s = {.address = (uintptr_t)address};
    bool found = es_elf_each(has_address, &s);

    *out = s.object;
    return found;
}

static bool is_match(const struct es_object *o, uint32_t index, const char *name)
{
    const ElfW(Sym) *s = &o->symbols[index];

    return s->st_shndx != SHN_UNDEF && s->st_value != 0 && ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
           es_same(o->strings + s->st_name, name);
}

static uint32_t find_gnu(const struct es_object *o, const char *name)
{
    const uint32_t *table = o->gnu_hash;
    uint32_t buckets = table[0], first = table[1], bloom_words = table[2];
    const uint32_t *bucket = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = 5381;

    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        hash = hash * 33 + *c;
    if (buckets == 0)
        return 0;
    for (uint32_t i = bucket[hash % buckets]; i >= first && i != 0; i++) {
        uint32_t h = chain[i - first];

        if ((h | 1) == (hash | 1) && is_match(o, i, name))
            return i;
        if (h & 1)
            break;
    }
    return 0;
}

static uint32_t find_sysv(const struct es_object *o, const char *name)
{
    const ElfW(Word) *bucket = o->sysv_hash + 2, *chain = bucket + o->sysv_hash[0];
    uint32_t hash = 0;

    for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
        hash = (hash << 4) + *c;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    if (o->sysv_hash[0] == 0)
        return 0;
    for (uint32_t i = bucket[hash % o->sysv_hash[0]]; i != STN_UNDEF; i = chain[i])
        if (is_match(o, i, name))
            return i;
    return 0;
}

void *es_elf_symbol(const struct es_object *o, const char *name)
{
    uint32_t i = o->gnu_hash ? find_gnu(o, name) : o->sysv_hash ? find_sysv(o, name) : 0;

    return i ? (void *)(o->base + o->symbols[i].st_value) : NULL;
}

static bool has_symbol(const struct es_object *o, void *arg)
{
    struct search *s = arg;

    s->symbol = es_elf_symbol(o, s->name);
    return s->symbol && !s->skip(s->symbol);
}

void *es_elf_first(const char *name, bool (*skip)(const void *address))
{
    struct search s = {.name = name, .skip = skip};

    return es_elf_each(has_symbol, &s) ? s.symbol : NULL;
}

const char *es_elf_needed(const struct es_object *o, unsigned i)
{
    for (const ElfW(Dyn) *d = o->dynamic; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_NEEDED && i-- == 0)
            return o->strings + d->d_un.d_val;
    return NULL;
}

static int read_changes(struct dl_phdr_info *info, size_t size, void *arg)
{
    uint64_t *changes = arg;

    (void)size;
    changes[0] = info->dlpi_adds;
    changes[1] = info->dlpi_subs;
    return 1;
}

uint64_t es_elf_loads(void)
{
    uint64_t n[2] = {0};

    walk(read_changes, n);
    return n[0];
}

uint64_t es_elf_unloads(void)
{
    uint64_t n[2] = {0};

    walk(read_changes, n);
    return n[1];
}

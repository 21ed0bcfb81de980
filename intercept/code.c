/* SPDX-License-Identifier: MIT */
/* dladdr knows the exported symbols alone, and a program's main is none of them: the full symbol
 * table is in the file, if it was not stripped. */
#include "intercept/code.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "intercept/driver.h"
#include "intercept/elf_lookup.h"

/* One mapped file; the last one is kept, since neighbours in the log are often of one object. */
static struct {
    ElfW(Addr) base;
    const char *bytes;
    size_t size;
} file;

static bool is_first(const struct es_object *o, void *base)
{
    *(ElfW(Addr) *)base = o->base;
    return true;
}

static void open_file(const struct es_object *o, const char *path)
{
    ElfW(Addr) program = 0;
    struct stat st;
    void *bytes;
    int fd;

    if (file.bytes && file.base == o->base)
        return;
    if (file.bytes)
        munmap((void *)(uintptr_t)file.bytes, file.size);
    file.bytes = NULL;
    /* The program's own path may be relative to a folder that it has left. */
    if (es_elf_each(is_first, &program) && program == o->base)
        path = "/proc/self/exe";
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size > (off_t)sizeof(ElfW(Ehdr))) {
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (bytes != MAP_FAILED) {
            file.base = o->base;
            file.bytes = bytes;
            file.size = (size_t)st.st_size;
        }
    }
    close(fd);
}

/* A section's contents, if they lie inside the file. */
static const void *contents(const ElfW(Shdr) * s)
{
    return s->sh_offset <= file.size && s->sh_size <= file.size - s->sh_offset
               ? file.bytes + s->sh_offset
               : NULL;
}

static const ElfW(Shdr) * section(size_t i)
{
    const ElfW(Ehdr) *head = (const void *)file.bytes;

    if (i >= head->e_shnum || head->e_shentsize != sizeof(ElfW(Shdr)) ||
        head->e_shoff > file.size ||
        (file.size - head->e_shoff) / sizeof(ElfW(Shdr)) < head->e_shnum)
        return NULL;
    return (const ElfW(Shdr) *)(const void *)(file.bytes + head->e_shoff) + i;
}

/* The function at an address relative to the base. A compiler's own part of one is named after it.
 */
static const char *find(ElfW(Addr) at, ElfW(Addr) * start)
{
    for (size_t i = 0; section(i); i++) {
        const ElfW(Shdr) *s = section(i), *names = section(s->sh_link);
        const ElfW(Sym) *symbols = contents(s);
        const char *strings = names ? contents(names) : NULL;

        if (s->sh_type != SHT_SYMTAB || !symbols || !strings)
            continue;
        for (size_t n = 0; n < s->sh_size / sizeof *symbols; n++) {
            const ElfW(Sym) *f = &symbols[n];

            if (ELF64_ST_TYPE(f->st_info) == STT_FUNC && at >= f->st_value &&
                at - f->st_value < f->st_size && f->st_name < names->sh_size) {
                *start = f->st_value;
                return strings + f->st_name;
            }
        }
    }
    return NULL;
}

/* The function around a return address: the call before it is meant, it may be the last there. */
static const char *function_of(const struct es_object *o, const char *path, uintptr_t address,
                               uintptr_t *start)
{
    ElfW(Addr) at = 0;
    const char *name;

    open_file(o, path);
    if (!file.bytes || memcmp(file.bytes, ELFMAG, SELFMAG) != 0)
        return NULL;
    name = find(address - 1 - o->base, &at);
    *start = o->base + at;
    return name;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool es_code_is_cuda(const void *address)
{
    struct es_object o;
    const char *name;
    uintptr_t start;
    Dl_info info;

    if (es_driver_is_ours(address))
        return true;
    if (!es_elf_by_address(address, &o))
        return false;
    if (begins(o.soname, "libcuda.so") || begins(o.soname, "libcudart.so"))
        return true;
    name =
        dladdr(address, &info) ? function_of(&o, info.dli_fname, (uintptr_t)address, &start) : NULL;
    return name && (begins(name, "libcudart_static_") || begins(name, "cudaMemcpy"));
}

void es_code_place(const void *address, char *text, size_t size)
{
    uintptr_t start = 0;
    struct es_object o;
    const char *name, *last;
    Dl_info info;

    if (!es_elf_by_address(address, &o) || !dladdr(address, &info) || !info.dli_fname) {
        snprintf(text, size, "%p", address);
        return;
    }
    last = strrchr(info.dli_fname, '/');
    last = last ? last + 1 : info.dli_fname;
    name = function_of(&o, info.dli_fname, (uintptr_t)address, &start);
    if (!name && info.dli_sname) {
        name = info.dli_sname;
        start = (uintptr_t)info.dli_saddr;
    }
    if (name)
        snprintf(text, size, "%s+0x%tx (%s)", name, (ptrdiff_t)((uintptr_t)address - start), last);
    else
        snprintf(text, size, "%s+0x%tx", last, (ptrdiff_t)((uintptr_t)address - o.base));
}

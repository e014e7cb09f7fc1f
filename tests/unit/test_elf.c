/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/elf.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A program of two segments: all of it loaded at 0x1000, and a dynamic section that needs two libraries. */
struct image {
    Elf64_Ehdr h;
    Elf64_Phdr p[2];
    Elf64_Dyn d[5];
    char strings[64];
};

static const char names[] = "\0libc.so.6\0libmpi.so.40";

static struct image image(void)
{
    struct image m = {0};

    memcpy(m.h.e_ident, ELFMAG, SELFMAG);
    m.h.e_ident[EI_CLASS] = ELFCLASS64;
    m.h.e_ident[EI_DATA] = BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
    m.h.e_phoff = offsetof(struct image, p);
    m.h.e_phnum = 2;
    m.h.e_phentsize = sizeof(m.p[0]);
    m.p[0].p_type = PT_LOAD;
    m.p[0].p_vaddr = 0x1000;
    m.p[0].p_filesz = sizeof(m);
    m.p[1].p_type = PT_DYNAMIC;
    m.p[1].p_offset = offsetof(struct image, d);
    m.p[1].p_filesz = sizeof(m.d);
    m.d[0] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = 1};
    m.d[1] = (Elf64_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = 11};
    m.d[2] = (Elf64_Dyn){.d_tag = DT_STRTAB, .d_un.d_val = 0x1000 + offsetof(struct image, strings)};
    memcpy(m.strings, names, sizeof(names));
    return m;
}

struct file {
    const void *p;
    size_t n;
};

static long read_at(uint64_t off, void *buf, size_t n, void *arg)
{
    const struct file *f = arg;

    if (off >= f->n)
        return 0;
    if (n > f->n - off)
        n = f->n - (size_t)off;
    memcpy(buf, (const char *)f->p + off, n);
    return (long)n;
}

static bool is_mpi(const char *name)
{
    return strcmp(name, "libmpi.so.40") == 0;
}

static bool is_other(const char *name)
{
    return strcmp(name, "libpmix.so.2") == 0;
}

static int is_it(enum elf_word kind, const char *text, void *arg)
{
    return kind == ELF_NEEDED && (*(bool (**)(const char *))arg)(text);
}

static int elf_needs(elf_read_fn read, void *arg, bool (*wanted)(const char *name))
{
    return elf_words(read, arg, is_it, &wanted);
}

static int needs(const struct image *m, size_t n, bool (*wanted)(const char *))
{
    struct file f = {m, n};

    return elf_needs(read_at, &f, wanted);
}

Test(elf, a_library_that_is_needed_and_one_that_is_not)
{
    struct image m = image();

    cr_expect_eq(needs(&m, sizeof(m), is_mpi), 1);
    cr_expect_eq(needs(&m, sizeof(m), is_other), 0);
}

static int note_folders(enum elf_word kind, const char *text, void *arg)
{
    if (kind == ELF_FOLDERS)
        *(const char **)arg = strdup(text);
    return 0;
}

Test(elf, the_folders_that_it_names)
{
    struct image m = image();
    struct file f = {&m, sizeof(m)};
    static const char folders_text[] = "/a:$ORIGIN/b";
    char *folders = NULL;

    cr_expect_eq(elf_words(read_at, &f, note_folders, &folders), 0);
    cr_expect_null(folders);
    m.d[3] = (Elf64_Dyn){.d_tag = DT_RUNPATH, .d_un.d_val = 25};
    memcpy(m.strings + 25, folders_text, sizeof(folders_text));
    cr_expect_eq(elf_words(read_at, &f, note_folders, &folders), 0);
    cr_expect_str_eq(folders, folders_text);
    free(folders);
}

Test(elf, every_cut_is_an_answer)
{
    struct image m = image();

    for (size_t n = 0; n < offsetof(struct image, strings); n++)
        cr_expect_lt(needs(&m, n, is_mpi), 0, "%zu bytes", n);
    for (size_t n = offsetof(struct image, strings); n < sizeof(m); n++)
        cr_expect_geq(needs(&m, n, is_mpi), 0, "%zu bytes", n);
}

Test(elf, a_script_is_none)
{
    struct file f = {"#!/bin/sh\nexec mpi_program with quite some arguments that make it long enough\n", 80};

    cr_expect_eq(elf_needs(read_at, &f, is_mpi), -ENOEXEC);
}

Test(elf, a_static_program_needs_nothing)
{
    struct image m = image();

    m.p[1].p_type = PT_NOTE;
    cr_expect_eq(needs(&m, sizeof(m), is_mpi), 0);
}

Test(elf, the_other_byte_order_is_not_ours)
{
    struct image m = image();

    m.h.e_ident[EI_DATA] ^= ELFDATA2LSB ^ ELFDATA2MSB;
    cr_expect_eq(needs(&m, sizeof(m), is_mpi), -ENOEXEC);
}

Test(elf, lies_about_offsets_and_counts)
{
    struct image m = image();

    m.d[2].d_un.d_val = 5; /* in no segment */
    cr_expect_eq(needs(&m, sizeof(m), is_mpi), -EPROTO);
    m = image();
    m.d[1].d_un.d_val = UINT64_MAX;
    cr_expect_eq(needs(&m, sizeof(m), is_mpi), -EPROTO);
    m = image();
    m.p[1].p_offset = UINT64_MAX - 4;
    cr_expect_eq(needs(&m, sizeof(m), is_mpi), -EPROTO);
    m = image();
    m.p[1].p_filesz = UINT64_MAX;
    cr_expect_eq(needs(&m, sizeof(m), is_mpi), -EPROTO);
    m = image();
    m.h.e_phnum = UINT16_MAX;
    cr_expect_eq(needs(&m, sizeof(m), is_mpi), -EPROTO);
    m = image();
    m.h.e_phentsize = 1;
    cr_expect_eq(needs(&m, sizeof(m), is_mpi), -EPROTO);
    m = image();
    m.h.e_phoff = UINT64_MAX - 8;
    cr_expect_lt(needs(&m, sizeof(m), is_mpi), 0);
}

Test(elf, a_program_of_32_bits)
{
    struct {
        Elf32_Ehdr h;
        Elf32_Phdr p[2];
        Elf32_Dyn d[3];
        char strings[64];
    } m = {0};
    struct file f = {&m, sizeof(m)};

    memcpy(m.h.e_ident, ELFMAG, SELFMAG);
    m.h.e_ident[EI_CLASS] = ELFCLASS32;
    m.h.e_ident[EI_DATA] = BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
    m.h.e_phoff = sizeof(m.h);
    m.h.e_phnum = 2;
    m.h.e_phentsize = sizeof(m.p[0]);
    m.p[0].p_type = PT_LOAD;
    m.p[0].p_filesz = sizeof(m);
    m.p[1].p_type = PT_DYNAMIC;
    m.p[1].p_offset = sizeof(m.h) + sizeof(m.p);
    m.p[1].p_filesz = sizeof(m.d);
    m.d[0] = (Elf32_Dyn){.d_tag = DT_NEEDED, .d_un.d_val = 11};
    m.d[1] = (Elf32_Dyn){.d_tag = DT_STRTAB, .d_un.d_val = sizeof(m.h) + sizeof(m.p) + sizeof(m.d)};
    memcpy(m.strings, names, sizeof(names));
    cr_expect_eq(elf_needs(read_at, &f, is_mpi), 1);
    cr_expect_eq(elf_needs(read_at, &f, is_other), 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/elf.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#define SEGMENTS_MAX 128
#define ENTRIES_MAX 4096 /* of the dynamic section */
#define ENTRIES_READ 64  /* at once */
#define NAME_MAX_LEN 255
#define TEXT_MAX_LEN 8191

/* What both classes of file have, in the wider one's types. */
struct segment {
    uint32_t type;
    uint64_t off, addr, size;
};

struct entry {
    uint64_t tag, value;
};

struct reader {
    elf_read_fn read;
    void *arg;
    bool wide; /* ELFCLASS64 */
    struct segment segment[SEGMENTS_MAX];
    unsigned count;
    uint64_t strings; /* offset in the file */
};

static int read_whole(const struct reader *r, uint64_t off, void *buf, size_t n)
{
    long got = r->read(off, buf, n, r->arg);

    return got < 0 ? (int)got : (size_t)got == n ? 0 : -EPROTO;
}

static int read_segment(struct reader *r, uint64_t off)
{
    struct segment *s = &r->segment[r->count];
    Elf64_Phdr p64;
    Elf32_Phdr p32;
    int rc;

    if (r->wide) {
        rc = read_whole(r, off, &p64, sizeof(p64));
        if (rc == 0)
            *s = (struct segment){p64.p_type, p64.p_offset, p64.p_vaddr, p64.p_filesz};
    } else {
        rc = read_whole(r, off, &p32, sizeof(p32));
        if (rc == 0)
            *s = (struct segment){p32.p_type, p32.p_offset, p32.p_vaddr, p32.p_filesz};
    }
    if (rc == 0)
        r->count++;
    return rc;
}

static int read_segments(struct reader *r, uint64_t off, unsigned count, unsigned size)
{
    int rc = 0;

    if (count > SEGMENTS_MAX || size < (r->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
        return -EPROTO;
    for (unsigned i = 0; rc == 0 && i < count; i++) {
        if (off > INT64_MAX)
            return -EPROTO;
        rc = read_segment(r, off);
        off += size;
    }
    return rc;
}

static int read_header(struct reader *r)
{
    union {
        unsigned char id[EI_NIDENT];
        Elf64_Ehdr h64;
        Elf32_Ehdr h32;
    } u;
    const unsigned char order = BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
    long got = r->read(0, &u, sizeof(u), r->arg);

    if (got < 0)
        return (int)got;
    if ((size_t)got < sizeof(u.h32) || memcmp(u.id, ELFMAG, SELFMAG) != 0 || u.id[EI_DATA] != order)
        return -ENOEXEC;
    r->wide = u.id[EI_CLASS] == ELFCLASS64;
    if (!r->wide)
        return read_segments(r, u.h32.e_phoff, u.h32.e_phnum, u.h32.e_phentsize);
    if ((size_t)got < sizeof(u.h64))
        return -EPROTO;
    return read_segments(r, u.h64.e_phoff, u.h64.e_phnum, u.h64.e_phentsize);
}

/* Calls `each` for every entry until one call is not 0, which is then returned. */
static int each_entry(struct reader *r, const struct segment *s,
                      int (*each)(struct reader *r, struct entry e, void *arg), void *arg)
{
    union {
        Elf64_Dyn d64[ENTRIES_READ];
        Elf32_Dyn d32[ENTRIES_READ];
    } u;
    size_t size = r->wide ? sizeof(u.d64[0]) : sizeof(u.d32[0]);
    uint64_t count = s->size / size;

    for (uint64_t i = 0; i < count && i < ENTRIES_MAX; i++) {
        size_t k = (size_t)(i % ENTRIES_READ);
        struct entry e;

        if (k == 0) {
            uint64_t n = count - i < ENTRIES_READ ? count - i : ENTRIES_READ;
            int rc = s->off > INT64_MAX ? -EPROTO : read_whole(r, s->off + i * size, &u, (size_t)n * size);

            if (rc < 0)
                return rc;
        }
        if (r->wide)
            e = (struct entry){(uint64_t)u.d64[k].d_tag, u.d64[k].d_un.d_val};
        else
            e = (struct entry){(uint64_t)u.d32[k].d_tag, u.d32[k].d_un.d_val};
        if (e.tag == DT_NULL)
            break;
        int rc = each(r, e, arg);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* The table of strings is given by its address; a loaded segment says where in the file that is. */
static int note_strings(struct reader *r, struct entry e, void *arg)
{
    (void)arg;
    if (e.tag != DT_STRTAB)
        return 0;
    for (unsigned i = 0; i < r->count; i++) {
        const struct segment *s = &r->segment[i];

        if (s->type == PT_LOAD && e.value >= s->addr && e.value - s->addr < s->size && s->off <= INT64_MAX) {
            r->strings = s->off + (e.value - s->addr);
            return 1;
        }
    }
    return -EPROTO;
}

struct teller {
    int (*each)(enum elf_word kind, const char *text, void *arg);
    void *arg;
};

static int tell_word(struct reader *r, struct entry e, void *arg)
{
    const struct teller *t = arg;
    char text[TEXT_MAX_LEN + 1];
    long got;

    if (e.tag != DT_NEEDED && e.tag != DT_RPATH && e.tag != DT_RUNPATH)
        return 0;
    if (e.value > UINT32_MAX || r->strings > INT64_MAX - e.value)
        return -EPROTO;
    got = r->read(r->strings + e.value, text, e.tag == DT_NEEDED ? NAME_MAX_LEN : TEXT_MAX_LEN, r->arg);
    if (got < 0)
        return (int)got;
    text[got] = '\0';
    if (memchr(text, '\0', (size_t)got) == NULL) /* longer than any that is of use, or cut off */
        return 0;
    return t->each(e.tag == DT_NEEDED ? ELF_NEEDED : ELF_FOLDERS, text, t->arg);
}

int elf_words(elf_read_fn read, void *arg, int (*each)(enum elf_word kind, const char *text, void *arg), void *each_arg)
{
    struct reader r = {.read = read, .arg = arg};
    struct teller t = {each, each_arg};
    int rc = read_header(&r);

    for (unsigned i = 0; rc == 0 && i < r.count; i++) {
        if (r.segment[i].type != PT_DYNAMIC)
            continue;
        rc = each_entry(&r, &r.segment[i], note_strings, NULL);
        if (rc == 0) /* without strings it can name nothing */
            return 0;
        return rc < 0 ? rc : each_entry(&r, &r.segment[i], tell_word, &t);
    }
    return rc;
}

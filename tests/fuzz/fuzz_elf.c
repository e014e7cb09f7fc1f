/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_elf.c - a program's header and dynamic section, as anybody may have written it */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include "common/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct file {
    const uint8_t *p;
    size_t n, reads;
};

static long read_at(uint64_t off, void *buf, size_t n, void *arg)
{
    struct file *f = arg;

    f->reads++;
    if (off >= f->n)
        return 0;
    if (n > f->n - off)
        n = f->n - (size_t)off;
    memcpy(buf, f->p + off, n);
    return (long)n;
}

static int look(enum elf_word kind, const char *text, void *arg)
{
    assert(arg == NULL && (kind == ELF_NEEDED || kind == ELF_FOLDERS));
    return strcmp(text, "libmpi.so.40") == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct file f = {data, size, 0};
    int rc = elf_words(read_at, &f, look, NULL);

    assert(rc <= 1);
    assert(f.reads < 20000);
    return 0;
}

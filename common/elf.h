/* SPDX-License-Identifier: BSD-3-Clause */
/* elf.h - does a program say that it needs a certain shared library?
 *
 * Reads the program's own header and dynamic section, not those of the libraries that it needs, by a few short reads.
 * The file is anybody's: every offset and count is held against a cap, and a read that comes out short is an answer.
 */
#ifndef COMMON_ELF_H
#define COMMON_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Up to `n` bytes from `off`; how many there were, 0 behind the end, or a negative errno. */
typedef long (*elf_read_fn)(uint64_t off, void *buf, size_t n, void *arg);

/* 1: `wanted` was true of one of the names (terminated, printable or not); 0: of none, or it needs none; -ENOEXEC: no
 * ELF file of this machine's byte order; -EPROTO: a broken one; or what `read` failed with. */
int elf_needs(elf_read_fn read, void *arg, bool (*wanted)(const char *name));

#endif

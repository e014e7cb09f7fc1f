/* SPDX-License-Identifier: BSD-3-Clause */
/* elf.h - what shared libraries does a program, or a library, say that it needs?
 *
 * Reads the file's own header and dynamic section, not those of the libraries that it needs, by a few short reads.
 * The file is anybody's: every offset and count is held against a cap, and a read that comes out short is an answer.
 */
#ifndef COMMON_ELF_H
#define COMMON_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Up to `n` bytes from `off`; how many there were, 0 behind the end, or a negative errno. */
typedef long (*elf_read_fn)(uint64_t off, void *buf, size_t n, void *arg);

enum elf_word { ELF_NEEDED, ELF_FOLDERS }; /* a library's name; where they are (RPATH, RUNPATH): folders and colons */

/* Calls `each` for every such word (terminated, printable or not) until a call is not 0, and returns that; 0: none was;
 * -ENOEXEC: no ELF file of this machine's byte order; -EPROTO: a broken one; or what `read` failed with. */
int elf_words(elf_read_fn read, void *arg, int (*each)(enum elf_word kind, const char *text, void *arg),
              void *each_arg);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* command.h - the words that start a provider */
#ifndef BOOTSTRAP_COMMAND_H
#define BOOTSTRAP_COMMAND_H

#include <stdint.h>
#include "bootstrap/bootstrap.h"

/* One run's words, all but --pmi-rank: appended to `*argv` (see strv.h). `size`: providers of the whole start, plus
 * one. A secret file takes the place of the key where `bc->key` is empty. 0, or as path_absolute(). */
int command_argv(const struct boot_conf *bc, const char *program, uint32_t size, uint32_t run, enum attach_mode attach,
                 char ***argv);

/* The words on one line, for a remote login shell whatever it is: only letters, digits and /._:,=-+@% may be in them.
 * What is not is refused: -EINVAL, the word quoted, with the hint --remote-path where the program is it. */
int command_line(char *const *argv, struct buf *out, struct err *err);

#endif

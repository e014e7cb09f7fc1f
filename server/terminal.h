/* SPDX-License-Identifier: BSD-3-Clause */
/* terminal.h - the launcher's own terminal under --pty: raw while the rank that has it lives, and put back after
 *
 * Raw, every key goes to that rank's terminal, where ^C and ^Z mean what they mean to its session.
 */
#ifndef SERVER_TERMINAL_H
#define SERVER_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <termios.h>
#include "common/err.h"

struct terminal {
    int fd; /* lent */
    bool is_raw;
    struct termios before;
};

/* Keeps how `fd` is set. -ENOTTY: it is no terminal. */
int terminal_open(struct terminal *t, int fd, struct err *err);
/* Also lets our own lines end as a raw terminal needs it. Raw for the second time makes it raw again: a shell may have
 * set it while we were stopped. NULL is fine. */
void terminal_set_raw(struct terminal *t, bool raw);
/* How large it is; 0 and 0 where it does not say. */
void terminal_size(const struct terminal *t, uint16_t *rows, uint16_t *cols);

/* For whoever outlives the launcher: put `fd` back, unless somebody else has set it meanwhile. */
void terminal_put_back(int fd, const struct termios *before);

#endif

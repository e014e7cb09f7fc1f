/* SPDX-License-Identifier: BSD-3-Clause */
/* err.h - why a call failed: a code for the program, a line for a person
 *
 * An int call returns >= 0 on success and a negative errno on failure (as libuv does). A call with more to say takes a
 * last `struct err *`; it may be NULL, and is written on failure only. Pure code never logs.
 */
#ifndef COMMON_ERR_H
#define COMMON_ERR_H

#include <errno.h>

#define ERR_TEXT_MAX 480

struct err {
    int code;                /* negative errno, 0 while nothing failed */
    char text[ERR_TEXT_MAX]; /* one line, no newline; ends in '+' where it was cut */
};

/* Fill `err` and return `code`, so that a caller writes `return err_set(...)`. `code` must be negative. */
int err_set(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Put "context: " before the text, keeping the code; returns the code. */
int err_prefix(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* keyline.h - find "pmi-start-provider 1 run=K index=N key=HEX" anywhere in what comes back over a login
 *
 * Incremental and pure: bytes in any pieces, banners, NUL bytes, "host: " prefixes and megabytes of anything around the
 * token. Holds at most one unfinished token.
 */
#ifndef BOOTSTRAP_KEYLINE_H
#define BOOTSTRAP_KEYLINE_H

#include <stddef.h>
#include <stdint.h>
#include "common/span.h"

#define KEYLINE_KEY_LEN 64 /* lower-case hex digits of a SHA-256 */
#define KEYLINE_MAX 128    /* longest token */

/* A zeroed struct is ready for use. */
struct keyline {
    char hold[KEYLINE_MAX]; /* the beginning of what may become a token */
    size_t len;
};

struct keyline_found {
    uint32_t run, index;
    char key[KEYLINE_KEY_LEN + 1];
};

/* Read from `*in` up to the end of the next token: 1, `*in` is what is left behind it. 0: all of `*in` is used up. */
int keyline_next(struct keyline *k, struct span *in, struct keyline_found *out);

#endif

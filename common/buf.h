/* SPDX-License-Identifier: BSD-3-Clause */
/* buf.h - a growable run of bytes with a cap
 *
 * A zeroed struct is a valid empty buffer without a cap. After a failed append nothing has changed.
 */
#ifndef COMMON_BUF_H
#define COMMON_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include "common/span.h"

struct buf {
    char *p;
    size_t len;
    size_t cap;
    size_t max;  /* most bytes it may hold; 0: no limit */
    bool secret; /* may hold a key: memory is wiped before it is given back */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);

/* 0, -ENOMEM or -E2BIG (over `max`). */
int buf_reserve(struct buf *b, size_t more);
int buf_add(struct buf *b, const void *data, size_t len);
int buf_add_str(struct buf *b, const char *s);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Add bytes as a person may see them: printable ASCII as it is, the rest as \n, \t, \xHH. */
int buf_add_escaped(struct buf *b, struct span s);

/* Take `len` bytes away from the front. */
void buf_drop(struct buf *b, size_t len);

/* The content with a terminator behind it (not counted in len), or NULL when out of memory. Lent. */
const char *buf_str(struct buf *b);

static inline struct span buf_span(const struct buf *b)
{
    return (struct span){b->p ? b->p : "", b->len};
}

#endif

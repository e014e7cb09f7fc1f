/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

void buf_done(struct buf *b)
{
    if (b->secret && b->p != NULL)
        explicit_bzero(b->p, b->cap);
    free(b->p);
    *b = (struct buf){.max = b->max, .secret = b->secret};
}

/* As realloc() does, but that of what it leaves nothing stays. */
static int resize(struct buf *b, size_t cap)
{
    char *p = b->secret ? malloc(cap) : realloc(b->p, cap);

    if (p == NULL)
        return -ENOMEM;
    if (b->secret && b->p != NULL) {
        memcpy(p, b->p, b->len);
        explicit_bzero(b->p, b->cap);
        free(b->p);
    }
    b->p = p;
    b->cap = cap;
    return 0;
}

int buf_reserve(struct buf *b, size_t more)
{
    size_t need = b->len + more, cap = b->cap ? b->cap : 64;

    if (need < more)
        return -ENOMEM;
    if (b->max != 0 && need > b->max)
        return -E2BIG;
    if (need <= b->cap)
        return 0;
    while (cap < need)
        cap = cap > ((size_t)-1) / 2 ? need : cap * 2;
    return resize(b, cap);
}

int buf_add(struct buf *b, const void *data, size_t len)
{
    int rc = buf_reserve(b, len);

    if (rc < 0)
        return rc;
    if (len > 0)
        memcpy(b->p + b->len, data, len);
    b->len += len;
    return 0;
}

int buf_add_str(struct buf *b, const char *s)
{
    return buf_add(b, s, strlen(s));
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int n, rc;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return -EINVAL;
    rc = buf_reserve(b, (size_t)n);
    if (rc < 0)
        return rc;
    /* vsnprintf writes a terminator too, which is not part of the content and must not count against max. */
    if (b->cap - b->len <= (size_t)n && resize(b, b->cap + 1) < 0)
        return -ENOMEM;
    va_start(ap, fmt);
    vsnprintf(b->p + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return 0;
}

int buf_add_escaped(struct buf *b, struct span s)
{
    size_t old = b->len;
    int rc = 0;

    for (size_t i = 0; i < s.n && rc == 0; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c == '\n')
            rc = buf_add(b, "\\n", 2);
        else if (c == '\t')
            rc = buf_add(b, "\\t", 2);
        else if (c == '\r')
            rc = buf_add(b, "\\r", 2);
        else if (c < 0x20 || c == 0x7f || c >= 0x80)
            rc = buf_printf(b, "\\x%02x", c);
        else
            rc = buf_add(b, &s.p[i], 1);
    }
    if (rc < 0)
        b->len = old;
    return rc;
}

void buf_drop(struct buf *b, size_t len)
{
    if (len == 0)
        return;
    b->len -= len;
    memmove(b->p, b->p + len, b->len);
}

const char *buf_str(struct buf *b)
{
    if (b->cap <= b->len && resize(b, b->len + 1) < 0)
        return NULL;
    b->p[b->len] = '\0';
    return b->p;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* span.h - a view of bytes that somebody else owns; never stored past the call that got it */
#ifndef COMMON_SPAN_H
#define COMMON_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct span {
    const char *p; /* NULL: absent */
    size_t n;
};

#define SPAN_NONE ((struct span){NULL, 0})
/* For printf("%.*s"). */
#define SPAN_FMT(s) (int)(s).n, (s).p

static inline struct span span_of(const char *s)
{
    return (struct span){s, s ? strlen(s) : 0};
}

static inline bool span_eq(struct span a, struct span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool span_is(struct span s, const char *text)
{
    return s.p != NULL && span_eq(s, span_of(text));
}

static inline bool span_starts(struct span s, const char *text)
{
    size_t n = strlen(text);

    return s.n >= n && memcmp(s.p, text, n) == 0;
}

static inline bool span_ends(struct span text, const char *end)
{
    size_t n = strlen(end);

    return text.n >= n && memcmp(text.p + text.n - n, end, n) == 0;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* hostitem.h - one item of a host list, "[user@]prefix[ranges]suffix[:slots]", checked and counted, then expanded
 *
 * Reading allocates nothing; the names are then written one by one, by an odometer whose wheels are the bracket groups,
 * the rightmost the fastest. Used by hostlist.c alone.
 */
#ifndef COMMON_HOSTITEM_H
#define COMMON_HOSTITEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/err.h"
#include "common/limits.h"
#include "common/span.h"

/* The text being read, for messages: errors give the position in it. */
struct hostitem_text {
    struct span all;
    unsigned lineno; /* 0: not a line of a file */
    struct err *err;
};

/* Literal text, then "[ranges]"; and where the odometer stands in it. */
struct hostitem_group {
    struct span literal;
    struct span ranges;
    uint64_t count; /* numbers, duplicates counted; stops above HOSTS_MAX */
    size_t longest; /* digits of the longest number */
    const char *next;
    uint64_t value, high;
    int width;
};

struct hostitem {
    struct span user; /* with its '@' */
    struct hostitem_group group[HOST_BRACKETS_MAX];
    size_t groups;
    struct span tail; /* literal text behind the last group */
    uint64_t slots;   /* 0: not said */
};

/* Say what is wrong at `at`, which points into the text. Returns `code`. */
int hostitem_refuse(const struct hostitem_text *t, const char *at, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* `s` is a part of the text without separators, and must outlive `it`. 0, -EINVAL or -E2BIG. */
int hostitem_read(const struct hostitem_text *t, struct span s, struct hostitem *it);

/* How many names it stands for; above HOSTS_MAX only that it is above. */
uint64_t hostitem_count(const struct hostitem *it);

/* Go to the first name, to the next (false: there is none). */
void hostitem_first(struct hostitem *it);
bool hostitem_next(struct hostitem *it);

/* Write the name it stands at, with a terminator that is not counted in the length returned. */
size_t hostitem_name(const struct hostitem *it, char name[HOST_NAME_MAX_LEN + 1]);

#endif

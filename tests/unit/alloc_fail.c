/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/alloc_fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_asprintf(char **out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static unsigned left; /* until one fails; 0: none will */
static bool all, failed;
static long blocks;

void alloc_fail_at(unsigned nth, bool on)
{
    left = nth;
    all = on;
    failed = false;
}

bool alloc_has_failed(void)
{
    return failed;
}

long alloc_blocks(void)
{
    return blocks;
}

static bool fails(void)
{
    if (failed && all && left == 1)
        return true;
    if (left == 0 || failed || (left > 1 && left--))
        return false;
    failed = true;
    return true;
}

static void *counted(void *p)
{
    blocks += p != NULL;
    return p;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *p, size_t size)
{
    void *q = fails() ? NULL : __real_realloc(p, size);

    blocks += p == NULL && q != NULL;
    return q;
}

void __wrap_free(void *p)
{
    blocks -= p != NULL;
    __real_free(p);
}

char *__wrap_strdup(const char *s)
{
    return fails() ? NULL : counted(__real_strdup(s));
}

char *__wrap_strndup(const char *s, size_t n)
{
    return fails() ? NULL : counted(__real_strndup(s, n));
}

int __wrap_asprintf(char **out, const char *fmt, ...)
{
    va_list ap;
    int n;

    if (fails())
        return -1;
    va_start(ap, fmt);
    n = vasprintf(out, fmt, ap);
    va_end(ap);
    blocks += n >= 0;
    return n;
}

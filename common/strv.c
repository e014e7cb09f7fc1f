/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/strv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t strv_count(char *const *v)
{
    size_t n = 0;

    while (v != NULL && v[n] != NULL)
        n++;
    return n;
}

/* Room for one more string behind `n` and the end mark. The array is always a power of two long, so it grows only when
 * n + 1 has reached one. */
static char **grown(char **v, size_t n)
{
    size_t used = n + 1;

    if (v != NULL && (used & (used - 1)) != 0)
        return v;
    return realloc(v, 2 * used * sizeof(*v));
}

int strv_add_len(char ***v, const char *s, size_t len)
{
    size_t n = strv_count(*v);
    char *copy = malloc(len + 1), **p;

    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, s, len);
    copy[len] = '\0';
    p = grown(*v, n);
    if (p == NULL) {
        free(copy);
        return -ENOMEM;
    }
    p[n] = copy;
    p[n + 1] = NULL;
    *v = p;
    return 0;
}

int strv_add(char ***v, const char *s)
{
    return strv_add_len(v, s, strlen(s));
}

char **strv_dup(char *const *v)
{
    size_t n = strv_count(v);
    char **copy = calloc(2, sizeof(*copy)); /* a power of two long, see grown() */

    for (size_t i = 0; copy != NULL && i < n; i++) {
        if (strv_add(&copy, v[i]) < 0) {
            strv_free(copy);
            return NULL;
        }
    }
    return copy;
}

void strv_free(char **v)
{
    for (size_t i = 0; v != NULL && v[i] != NULL; i++)
        free(v[i]);
    free(v);
}

/* Index of NAME in env, or -1. */
static long find(char *const *env, const char *name)
{
    size_t n = strlen(name);

    for (size_t i = 0; env != NULL && env[i] != NULL; i++)
        if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
            return (long)i;
    return -1;
}

const char *env_get(char *const *env, const char *name)
{
    long i = find(env, name);

    return i < 0 ? NULL : strchr(env[i], '=') + 1;
}

int env_set(char ***env, const char *name, const char *value)
{
    size_t n = strlen(name), m = strlen(value);
    char *entry = malloc(n + m + 2);
    long i = find(*env, name);
    int rc;

    if (entry == NULL)
        return -ENOMEM;
    memcpy(entry, name, n);
    entry[n] = '=';
    memcpy(entry + n + 1, value, m + 1);
    if (i >= 0) {
        free((*env)[i]);
        (*env)[i] = entry;
        return 0;
    }
    rc = strv_add(env, entry);
    free(entry);
    return rc;
}

void env_unset(char **env, const char *name)
{
    long i;

    while ((i = find(env, name)) >= 0) {
        size_t n = strv_count(env);

        free(env[i]);
        memmove(&env[i], &env[i + 1], (n - (size_t)i) * sizeof(*env));
    }
}

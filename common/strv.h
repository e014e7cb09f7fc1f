/* SPDX-License-Identifier: BSD-3-Clause */
/* strv.h - NULL-terminated arrays of strings: argument lists and environments */
#ifndef COMMON_STRV_H
#define COMMON_STRV_H

#include <stddef.h>

/* All of these: 0 or -ENOMEM, nothing changed on failure. An array that is NULL counts as empty. */
int strv_add(char ***v, const char *s);
int strv_add_len(char ***v, const char *s, size_t len);
char **strv_dup(char *const *v); /* NULL: out of memory; of a NULL array: an empty array */
size_t strv_count(char *const *v);
void strv_free(char **v); /* NULL is fine */

/* Environments. `env_get` is lent. `env_set` replaces or adds NAME=VALUE. */
const char *env_get(char *const *env, const char *name);
int env_set(char ***env, const char *name, const char *value);
void env_unset(char **env, const char *name);

#endif

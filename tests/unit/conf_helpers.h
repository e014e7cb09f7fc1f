/* SPDX-License-Identifier: BSD-3-Clause */
/* conf_helpers.h - load a configuration from one line of text, for the tests of conf/ */
#ifndef TESTS_UNIT_CONF_HELPERS_H
#define TESTS_UNIT_CONF_HELPERS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/strv.h"
#include "conf/conf.h"
#include "conf/option.h"

#define ARGS_MAX 32

static char *const no_env[] = {NULL};

static inline int load(char *const *argv, char *const *envp, struct conf **out, struct err *err)
{
    return conf_load_with(NULL, (int)strv_count(argv), argv, envp, out, err);
}

/* A line cut at blanks. */
static inline struct conf *load_line(const char *line, char *const *envp, struct err *err)
{
    char *copy = strdup(line), *argv[ARGS_MAX + 1] = {NULL}, *save = NULL, *word = strtok_r(copy, " ", &save);
    struct conf *conf = NULL;

    for (size_t i = 0; word != NULL && i < ARGS_MAX; i++, word = strtok_r(NULL, " ", &save))
        argv[i] = word;
    if (load(argv, envp, &conf, err) < 0)
        conf = NULL;
    free(copy);
    return conf;
}

static inline struct conf *good(const char *line)
{
    struct err err = {0};
    struct conf *conf = load_line(line, no_env, &err);

    cr_assert(conf != NULL, "%s: %s", line, err.text);
    return conf;
}

/* A file with `text` in a directory of this test's own; the path is returned, static. */
static inline const char *temp_file(const char *text)
{
    static char path[64];
    FILE *f;

    snprintf(path, sizeof(path), "/tmp/test_conf.%ld", (long)getpid());
    f = fopen(path, "w");
    cr_assert(f != NULL);
    fputs(text, f);
    fclose(f);
    return path;
}

static inline int load_yaml(const char *text, const char *line, struct conf **out, struct err *err)
{
    const char *path = temp_file(text);
    char *copy = strdup(line), *argv[ARGS_MAX + 1] = {NULL}, *save = NULL, *word = strtok_r(copy, " ", &save);
    int rc;

    for (size_t i = 0; word != NULL && i < ARGS_MAX; i++, word = strtok_r(NULL, " ", &save))
        argv[i] = word;
    rc = conf_load_with(path, (int)strv_count(argv), argv, no_env, out, err);
    unlink(path);
    free(copy);
    return rc;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_reader.c - three ways of taking a PMI-1 reply apart */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/progs/pmi_reader.h"

#define PAIRS_402_MAX 64
#define KEY_402_MAX 31
#define VALUE_402_MAX 1023

static int refuse(const char **why, const char *text)
{
    *why = text;
    return -1;
}

static void copy(char *out, const char *from, size_t len)
{
    memcpy(out, from, len);
    out[len] = '\0';
}

/* MPICH 4.0.2: blank-separated key=value pairs, every one of them with '=', in a table of fixed size. Later pairs of
 * one name do not replace the first.
 */
static int get_402(const char *line, const char *key, char out[READER_LINE_MAX], const char **why)
{
    int pairs = 0, found = 0;

    for (const char *p = line + strspn(line, " "); *p != '\0'; p += strspn(p, " ")) {
        size_t klen = strcspn(p, "= "), vlen;

        if (p[klen] != '=')
            return refuse(why, "a word without '='");
        if (klen > KEY_402_MAX)
            return refuse(why, "a key of more than 31 characters");
        if (++pairs > PAIRS_402_MAX)
            return refuse(why, "more than 64 pairs");
        vlen = strcspn(p + klen + 1, " ");
        if (vlen > VALUE_402_MAX)
            return refuse(why, "a value of more than 1023 characters");
        if (!found && strlen(key) == klen && memcmp(p, key, klen) == 0) {
            copy(out, p + klen + 1, vlen);
            found = 1;
        }
        p += klen + 1 + vlen;
    }
    return found;
}

/* One value of the rewrite: a backslash takes the next character as it is. Returns its length in the line. */
static size_t take_escaped(const char *p, char *out)
{
    const char *start = p;

    while (*p != '\0' && *p != ' ') {
        if (*p == '\\' && p[1] != '\0')
            p++;
        *out++ = *p++;
    }
    *out = '\0';
    return (size_t)(p - start);
}

/* MPICH since 4.1: "cmd=" must be the first four bytes (anything else is taken for PMI-2's length), words without '='
 * are let by, an empty value is an error.
 */
static int get_mpich(const char *line, const char *key, char out[READER_LINE_MAX], const char **why)
{
    char value[READER_LINE_MAX];
    int found = 0;

    if (strncmp(line, "cmd=", 4) != 0)
        return refuse(why, "does not begin with cmd=");
    for (const char *p = line; *p != '\0'; p += strspn(p, " ")) {
        size_t klen = strcspn(p, "= ");
        const char *name = p;

        p += klen;
        if (*p != '=')
            continue;
        p += 1 + take_escaped(p + 1, value);
        if (value[0] == '\0')
            return refuse(why, "an empty value");
        if (!found && strlen(key) == klen && memcmp(name, key, klen) == 0) {
            copy(out, value, strlen(value));
            found = 1;
        }
    }
    return found;
}

/* Flux: the first place where "key=" stands at the line's start or behind a blank, even inside of another value. Texts
 * run to the line's end, all else to the next blank. A trailing " found=TRUE", which some releases of Hydra append, is
 * cut off.
 */
static int get_flux(const char *line, const char *key, char out[READER_LINE_MAX], const char **why)
{
    static const char tail[] = " found=TRUE";
    size_t klen = strlen(key), len;

    (void)why;
    for (const char *p = strstr(line, key); p != NULL; p = strstr(p + 1, key)) {
        if ((p != line && !isspace((unsigned char)p[-1])) || p[klen] != '=')
            continue;
        p += klen + 1;
        if (strcmp(key, "value") != 0 && strcmp(key, "msg") != 0) {
            copy(out, p, strcspn(p, " \t\r\v\f"));
            return 1;
        }
        len = strlen(p);
        if (len >= sizeof(tail) - 1 && strcmp(p + len - (sizeof(tail) - 1), tail) == 0)
            len -= sizeof(tail) - 1;
        copy(out, p, len);
        return 1;
    }
    return 0;
}

static const struct reader readers[] = {
    {.name = "mpich402", .line_max = 1023, .get = get_402, .string_rc = 1},
    {.name = "mpich", .line_max = 0, .get = get_mpich},
    {.name = "flux", .line_max = 1215, .get = get_flux, .exact_version = 1, .cmd_is_prefix = 1, .value_has_blanks = 1},
};

const struct reader *reader_find(const char *name)
{
    for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
        if (strcmp(readers[i].name, name) == 0)
            return &readers[i];
    }
    return NULL;
}

/* The version in the answer to init, as this reader wants it. */
static int check_version(const struct reader *r, const char *line, const char **why)
{
    char major[READER_LINE_MAX], minor[READER_LINE_MAX];

    if (!r->exact_version)
        return 0;
    if (r->get(line, "pmi_version", major, why) != 1 || r->get(line, "pmi_subversion", minor, why) != 1)
        return refuse(why, "init's answer without a version");
    if (strcmp(major, "1") != 0 || strcmp(minor, "1") != 0)
        return refuse(why, "init's answer is not version 1.1");
    return 0;
}

int reader_check(const struct reader *r, const char *line, const char *cmd, const char **why)
{
    char text[READER_LINE_MAX], *end;
    int is_init = strcmp(cmd, "response_to_init") == 0;
    int rc = r->get(line, "cmd", text, why);
    long code;

    if (rc < 0)
        return -1;
    if (rc == 0 || (r->cmd_is_prefix ? strncmp(text, cmd, strlen(cmd)) : strcmp(text, cmd)) != 0)
        return refuse(why, "not the reply to what was asked");
    rc = r->get(line, "rc", text, why);
    if (rc == 0) {
        if (is_init && r->string_rc)
            return refuse(why, "init's answer without rc=");
        return is_init ? check_version(r, line, why) : 0;
    }
    if (is_init && r->string_rc)
        return strcmp(text, "0") == 0 ? 0 : 1;
    code = strtol(text, &end, 10);
    if (end == text || *end != '\0')
        return refuse(why, "rc is not a number");
    if (code != 0)
        return 1;
    return is_init ? check_version(r, line, why) : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* print.c - --help, and --print-config as YAML that loads again */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/buf.h"
#include "common/util.h"
#include "conf/option.h"

/* What is read from UTF-8 `s`, or 0 where it is none. */
static size_t utf8_take(struct span s, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)s.p[0];
    size_t n = c < 0x80 ? 1 : (c & 0xe0) == 0xc0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : (c & 0xf8) == 0xf0 ? 4 : 0;

    if (n == 0 || n > s.n)
        return 0;
    *code = n == 1 ? c : c & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s.p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (uint32_t)(s.p[i] & 0x3f);
    }
    return *code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : n;
}

static bool is_plain(struct span s)
{
    static const char *const taken[] = {"null", "Null", "NULL"};

    for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
        if (span_is(s, taken[i]))
            return false;
    for (size_t i = 0; i < s.n; i++)
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-", s.p[i]) == NULL)
            return false;
    return s.n > 0 && (s.p[0] != '-' || s.n > 1) && s.p[0] != '.';
}

/* One word of YAML. 0, -EILSEQ (not UTF-8: YAML cannot hold it) or -ENOMEM. */
static int add_word(struct buf *out, struct span s)
{
    int rc;

    if (is_plain(s))
        return buf_add(out, s.p, s.n);
    rc = buf_add_str(out, "\"");
    while (rc == 0 && s.n > 0) {
        uint32_t code;
        size_t n = utf8_take(s, &code);

        if (n == 0)
            return -EILSEQ;
        if (code == '"' || code == '\\')
            rc = buf_printf(out, "\\%c", (int)code);
        else if (code >= ' ' && code < 0x7f)
            rc = buf_add(out, s.p, 1);
        else
            rc = code < 0x100 ? buf_printf(out, "\\x%02x", code) : buf_printf(out, "\\U%08x", code);
        s = (struct span){s.p + n, s.n - n};
    }
    return rc < 0 ? rc : buf_add_str(out, "\"");
}

static int add_origin(struct buf *out, const char *origin)
{
    int rc = buf_add_str(out, "  # ");

    if (rc == 0)
        rc = buf_add_escaped(out, span_of(origin));
    return rc < 0 ? rc : buf_add_str(out, "\n");
}

static int add_entry(struct buf *out, const char *before, const struct conf_value *v)
{
    size_t start = out->len;
    int rc = buf_add_str(out, before);

    if (rc == 0)
        rc = add_word(out, span_of(v->text));
    if (rc == -EILSEQ) {
        out->len = start;
        rc = buf_add_str(out, "# ");
        if (rc == 0)
            rc = buf_add_escaped(out, span_of(v->text));
        if (rc == 0)
            rc = buf_add_str(out, " (left out: not UTF-8)");
    }
    return rc < 0 ? rc : add_origin(out, v->origin);
}

static int add_list(struct buf *out, const char *name, const struct conf_values *values)
{
    int rc = buf_printf(out, "%s:\n", name);

    for (size_t i = 0; rc == 0 && i < values->count; i++)
        rc = add_entry(out, "  - ", &values->v[i]);
    return rc;
}

static int add_option(struct buf *out, const struct conf *conf, const struct option *o)
{
    const struct conf_values *values = &conf->origins->of[o - options];
    char text[16], before[40];
    struct conf_value v;

    if (!(o->flags & OPTION_FILE) || (o->flags & (OPTION_LATER | OPTION_UNPRINTED)))
        return 0;
    if (values->count == 0) /* a comment: what is unset has no value to load again */
        return buf_printf(out, "# %s:  # default: not set\n", o->name);
    if (o->flags & (OPTION_LIST | OPTION_WORDS))
        return add_list(out, o->name, values);
    v = values->v[0];
    if (strcmp(o->name, "verbose") == 0) { /* the only one that counts up */
        snprintf(text, sizeof(text), "%d", conf->verbose);
        v.text = text;
    }
    snprintf(before, sizeof(before), "%s: ", o->name);
    return add_entry(out, before, &v);
}

static int add_further_part(struct buf *out, const struct conf_app *app, size_t i)
{
    int rc = buf_printf(out, "# part %zu:", i + 1);

    if (rc == 0 && app->ntasks >= 0)
        rc = buf_printf(out, " -n %d", app->ntasks);
    for (size_t a = 0; rc == 0 && a < app->argc; a++)
        if ((rc = buf_add_str(out, " ")) == 0)
            rc = buf_add_escaped(out, span_of(app->argv[a]));
    return rc < 0 ? rc : add_origin(out, "command line");
}

char *conf_print(const struct conf *conf)
{
    struct buf out;
    int rc = 0;

    buf_init(&out, 0);
    for (size_t i = 0; rc == 0 && i < option_count; i++)
        rc = add_option(&out, conf, &options[i]);
    for (size_t i = 1; rc == 0 && i < conf->app_count; i++)
        rc = add_further_part(&out, &conf->app[i], i);
    if (rc == 0 && buf_str(&out) != NULL)
        return out.p;
    buf_done(&out);
    return NULL;
}

static size_t help_line(char *out, size_t size, const struct option *o)
{
    char left[64], letter[8] = "    ";
    bool bare = o->flags & OPTION_BARE;
    int n;

    if (o->letter != 0)
        snprintf(letter, sizeof(letter), "-%c, ", o->letter);
    snprintf(left, sizeof(left), "%s--%s%s%s%s", letter, o->name,
             o->meta == NULL ? ""
             : bare          ? "[="
                             : "=",
             o->meta ? o->meta : "", o->meta && bare ? "]" : "");
    if (o->initial != NULL && o->meta != NULL && !bare)
        n = snprintf(out, size, "  %-28s %s (%s)\n", left, o->help, o->initial);
    else
        n = snprintf(out, size, "  %-28s %s\n", left, o->help);
    return n < 0 ? 0 : MIN((size_t)n, size - 1);
}

const char *conf_help(void)
{
    static char text[8192];
    size_t n;

    n = (size_t)snprintf(
        text, sizeof(text),
        "Usage: pmi-start [OPTIONS] [--] COMMAND [ARG...] [: [-n N] [-E ...] COMMAND [ARG...]]...\n"
        "Start COMMAND as the tasks of a parallel job, on this machine or on many, and serve PMI to it.\n"
        "\n");
    for (size_t i = 0; i < option_count; i++)
        if (options[i].help != NULL)
            n += help_line(text + n, sizeof(text) - n, &options[i]);
    snprintf(
        text + n, sizeof(text) - n,
        "\nTimes: 250ms, 10s, 5m, 1h; a bare number is seconds. The last of an option given twice counts.\n"
        "Options are also keys of pmi-start.yaml, see pmi-start.conf(5), and PMI_START_<OPTION> in the environment.\n");
    return text;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* set.c - the generic setters: flags, choices, numbers, durations, texts */
#include "conf/set.h"

#include <stdlib.h>
#include <string.h>
#include "common/buf.h"
#include "common/num.h"
#include "common/util.h"

static void *field(struct loader *ld, const struct option *o)
{
    return (char *)ld->conf + o->at;
}

int text_replace(char **field_text, struct span text)
{
    char *copy = NULL;

    if (text.p != NULL && (copy = strndup(text.p, text.n)) == NULL)
        return -ENOMEM;
    free(*field_text);
    *field_text = copy;
    return 0;
}

int set_nothing(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    (void)ld;
    if (text.p != NULL && text.n == 0)
        return err_set(err, -EINVAL, "'' is empty, %s was expected", o->meta ? o->meta : "a word");
    return 0;
}

int set_text(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    int rc = set_nothing(ld, o, text, err);

    return rc < 0 ? rc : text_replace(field(ld, o), text);
}

bool word_is_safe(struct span text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!alnum && (c == '\0' || strchr("/._:,=-+@%", c) == NULL))
            return false;
    }
    return text.n > 0 && text.p[0] != '-';
}

int set_word(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    if (text.p != NULL && !word_is_safe(text))
        return err_set(err, -EINVAL,
                       "'%s' passes through shells of other hosts: use letters, digits and /._:,=-+@%% only",
                       quoted(text).text);
    return set_text(ld, o, text, err);
}

int set_pattern(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    for (size_t i = 0; text.p != NULL && i < text.n; i++) {
        if (text.p[i] != '%')
            continue;
        if (++i == text.n || strchr("rhn%", text.p[i]) == NULL || text.p[i] == '\0')
            return err_set(err, -EINVAL, "'%s': behind %% comes r (rank), h (host), n (node) or another %%",
                           quoted(text).text);
    }
    return set_text(ld, o, text, err);
}

/* 1, 0, or -EINVAL. */
static int flag_parse(struct span text)
{
    static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off", "0"};

    for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
        if (span_is(text, yes[i]))
            return 1;
        if (span_is(text, no[i]))
            return 0;
    }
    return -EINVAL;
}

static int parse_flag(struct span text, bool *out, struct err *err)
{
    int v = text.p == NULL ? 0 : flag_parse(text);

    if (v < 0)
        return err_set(err, v, "'%s' is neither yes nor no", quoted(text).text);
    *out = v;
    return 0;
}

int set_flag(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    return parse_flag(text, field(ld, o), err);
}

int set_env_none(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    (void)o;
    return parse_flag(text, &(ld->part ? ld->part : &ld->common)->env_none, err);
}

int set_quiet(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    bool quiet = false;
    int rc = parse_flag(text, &quiet, err);

    (void)o;
    if (rc == 0)
        ld->conf->verbose = quiet ? -1 : MAX(ld->conf->verbose, 0);
    return rc;
}

static int bad_choice(const struct option *o, struct span text, struct err *err)
{
    struct buf names;
    int rc;

    buf_init(&names, 0);
    for (const struct option_choice *c = o->choices; c->name != NULL; c++)
        if (c->value != OPTION_CHOICE_LATER)
            (void)buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", c->name); /* cut short without memory */
    rc = err_set(err, -EINVAL, "'%s' is none of %.*s", quoted(text).text, SPAN_FMT(buf_span(&names)));
    buf_done(&names);
    return rc;
}

int set_choice(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    int *out = field(ld, o);

    for (const struct option_choice *c = o->choices; c->name != NULL; c++) {
        if (text.p != NULL && !span_is(text, c->name))
            continue;
        if (c->value == OPTION_CHOICE_LATER)
            return err_set(err, -EINVAL, "'%s' is not in this version", c->name);
        *out = c->value;
        return 0;
    }
    return bad_choice(o, text, err);
}

static int parse_number(const struct option *o, struct span text, int64_t *out, struct err *err)
{
    int rc = num_i64(text, o->min, o->max, out);

    if (rc < 0)
        return err_set(err, -EINVAL, "'%s' is not a number from %lld to %lld", quoted(text).text, (long long)o->min,
                       (long long)o->max);
    return 0;
}

int set_unsigned(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    int64_t v = 0;
    int rc = text.p == NULL ? 0 : parse_number(o, text, &v, err);

    if (rc == 0)
        *(unsigned *)field(ld, o) = (unsigned)v;
    return rc;
}

int set_int(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    int64_t v = -1;
    int rc = text.p == NULL ? 0 : parse_number(o, text, &v, err);

    if (rc == 0)
        *(int *)field(ld, o) = (int)v;
    return rc;
}

int set_ntasks(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    int64_t v = -1;
    int rc = text.p == NULL ? 0 : parse_number(o, text, &v, err);

    if (rc == 0)
        *(ld->part ? &ld->part->ntasks : &ld->conf->ntasks) = (int)v;
    return rc;
}

int set_verbose(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    int *verbose = &ld->conf->verbose;
    int64_t v = 0;
    int rc = 0, yes = text.p == NULL ? 0 : flag_parse(text);

    if (span_is(text, "more"))
        v = MIN(MAX(*verbose, 0) + 1, o->max);
    else if (yes == 1)
        v = 1;
    else if (yes < 0)
        rc = parse_number(o, text, &v, err);
    if (rc == 0)
        *verbose = (int)v;
    return rc;
}

int set_ms(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    uint64_t v = 0;
    int rc = text.p == NULL ? 0 : num_duration_ms(text, &v);

    if (rc < 0)
        return err_set(err, -EINVAL, "'%s' is not a time such as 250ms, 10s, 5m or 1h", quoted(text).text);
    if (text.p != NULL && v < (uint64_t)o->min)
        return err_set(err, -EINVAL, "'%s' is too short, at least %lldms", quoted(text).text, (long long)o->min);
    *(uint64_t *)field(ld, o) = v;
    return 0;
}

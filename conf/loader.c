/* SPDX-License-Identifier: BSD-3-Clause */
/* loader.c - set options one by one, and note for each value where it came from */
#include "conf/option.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "common/buf.h"
#include "common/util.h"

struct quoted quoted(struct span s)
{
    struct quoted q;
    struct buf b;
    size_t n;

    buf_init(&b, 0);
    (void)buf_add_escaped(&b, (struct span){s.p, MIN(s.n, sizeof(q.text))}); /* without memory: nothing is shown */
    n = MIN(b.len, sizeof(q.text) - 4);
    memcpy(q.text, buf_span(&b).p, n);
    memcpy(q.text + n, b.len > n || s.n > sizeof(q.text) ? "..." : "\0\0\0", 4);
    buf_done(&b);
    return q;
}

static struct conf_values *values_at(const struct conf *conf, const struct option *o)
{
    return &conf->origins->of[o - options];
}

const struct conf_values *conf_values(const struct conf *conf, const char *name)
{
    const struct option *o = option_by_name(span_of(name));

    assert(o != NULL);
    return values_at(conf, o);
}

static void value_done(struct conf_value *v)
{
    free(v->text);
    free(v->where);
    free(v->origin);
}

void conf_values_clear(struct conf_values *values)
{
    for (size_t i = 0; i < values->count; i++)
        value_done(&values->v[i]);
    free(values->v);
    *values = (struct conf_values){0};
}

bool conf_is_typed(const struct conf *conf, const char *name)
{
    const struct conf_values *values = conf_values(conf, name);

    return values->count > 0 && values->v[values->count - 1].layer == LAYER_CMDLINE;
}

static size_t name_len(struct span text)
{
    const char *eq = memchr(text.p, '=', text.n);

    return eq != NULL ? (size_t)(eq - text.p) : text.n;
}

/* Of a list: a value with the same name is out of force. */
static void drop_same_name(struct conf_values *values, struct span text)
{
    struct span name = {text.p, name_len(text)};

    for (size_t i = 0; i < values->count; i++) {
        struct span old = span_of(values->v[i].text);

        if (!span_eq(name, (struct span){old.p, name_len(old)}))
            continue;
        value_done(&values->v[i]);
        memmove(&values->v[i], &values->v[i + 1], (values->count - i - 1) * sizeof(values->v[0]));
        values->count--;
        return;
    }
}

static int note(struct conf_values *values, struct span text, const struct source *src)
{
    struct conf_value v = {strndup(text.p, text.n), strdup(src->where), strdup(src->origin), src->layer};
    struct conf_value *p = realloc(values->v, (values->count + 1) * sizeof(*p));

    if (p != NULL)
        values->v = p;
    if (p == NULL || v.text == NULL || v.where == NULL || v.origin == NULL) {
        value_done(&v);
        return -ENOMEM;
    }
    p[values->count++] = v;
    return 0;
}

int loader_note(struct loader *ld, const struct option *o, struct span text, const struct source *src)
{
    return note(values_at(ld->conf, o), text, src);
}

static int set_and_note(struct loader *ld, const struct option *o, struct span text, const struct source *src,
                        struct err *err)
{
    struct conf_values *values = values_at(ld->conf, o);
    int rc = o->set(ld, o, text, err);

    if (rc < 0 || ld->part != NULL) /* what stands behind a ':' is not shown as a value of the whole */
        return rc;
    if (o->flags & OPTION_LIST)
        drop_same_name(values, text);
    else if (!(o->flags & OPTION_WORDS))
        conf_values_clear(values);
    return note(values, text, src);
}

static int reset(struct loader *ld, const struct option *o, struct err *err)
{
    static const struct source built_in = {LAYER_DEFAULT, "default", "default"};

    conf_values_clear(values_at(ld->conf, o));
    if (o->initial != NULL)
        return set_and_note(ld, o, span_of(o->initial), &built_in, err);
    return o->set(ld, o, SPAN_NONE, err);
}

int loader_set(struct loader *ld, const struct option *o, struct span text, const struct source *src, struct err *err)
{
    struct err why = {0};
    int rc;

    if (o->flags & OPTION_LATER)
        return err_set(err, -EINVAL, "%s: not in this version of pmi-start", src->where);
    rc = text.p == NULL ? reset(ld, o, &why) : set_and_note(ld, o, text, src, &why);
    if (rc == -ENOMEM)
        return err_set(err, rc, "out of memory");
    if (rc < 0)
        return err_set(err, rc, "%s: %s", src->where, why.text);
    return 0;
}

int loader_init(struct loader *ld)
{
    struct conf *conf = calloc(1, sizeof(*conf));

    *ld = (struct loader){.conf = conf, .common = {.ntasks = -1}};
    if (conf == NULL)
        return -ENOMEM;
    conf->ntasks = -1;
    conf->ppn = -1;
    conf->node = -1;
    conf->origins = calloc(1, sizeof(*conf->origins));
    if (conf->origins == NULL || (conf->origins->of = calloc(option_count, sizeof(*conf->origins->of))) == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < option_count; i++)
        if (options[i].initial != NULL && reset(ld, &options[i], NULL) < 0)
            return -ENOMEM;
    return 0;
}

void loader_done(struct loader *ld)
{
    conf_app_done(&ld->common);
    conf_free(ld->conf);
    *ld = (struct loader){0};
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* set_special.c - setters that serve one option each */
#include "conf/set.h"

#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "common/num.h"
#include "common/util.h"

int set_input(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    uint64_t rank = 0;

    (void)o;
    if (span_is(text, "all"))
        ld->conf->input = INPUT_ALL;
    else if (span_is(text, "none"))
        ld->conf->input = INPUT_NONE;
    else if (text.p != NULL && num_u64(text, 0, TASKS_MAX - 1, &rank) < 0)
        return err_set(err, -EINVAL, "'%s' is neither a rank nor all nor none", quoted(text).text);
    else
        ld->conf->input = (int)rank;
    return 0;
}

int ports_parse(struct span text, struct conf_ports *out)
{
    const char *dash = text.n > 0 ? memchr(text.p, '-', text.n) : NULL;
    size_t n = dash ? (size_t)(dash - text.p) : text.n;
    uint64_t low, high;

    if (num_u64((struct span){text.p, n}, 1, UINT16_MAX, &low) < 0)
        return -EINVAL;
    high = low;
    if (dash != NULL && num_u64((struct span){dash + 1, text.n - n - 1}, low, UINT16_MAX, &high) < 0)
        return -EINVAL;
    *out = (struct conf_ports){true, dash != NULL, (uint16_t)low, (uint16_t)high};
    return 0;
}

int set_port(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    (void)o;
    if (text.p == NULL)
        ld->conf->port = (struct conf_ports){0};
    else if (ports_parse(text, &ld->conf->port) < 0)
        return err_set(err, -EINVAL, "'%s' is neither a port (1 to 65535) nor a range LOW-HIGH", quoted(text).text);
    return 0;
}

static bool word_is_one_of(struct span text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (span_is(text, words[i]))
            return true;
    return false;
}

int set_rsh_tree(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    static const char *const off[] = {"no", "false", "off"}, *const on[] = {"yes", "true", "on"};
    uint64_t v = 0;

    if (text.p == NULL || word_is_one_of(text, off, 3)) {
        ld->conf->rsh_tree = -1;
        return 0;
    }
    if (!word_is_one_of(text, on, 3) && num_u64(text, (uint64_t)o->min, (uint64_t)o->max, &v) < 0)
        return err_set(err, -EINVAL, "'%s': a number from 1 to %lld, yes or no was expected", quoted(text).text,
                       (long long)o->max);
    ld->conf->rsh_tree = (int)v;
    return 0;
}

int set_trace(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    static const char *const off[] = {"no", "false", "off", "0"}, *const on[] = {"yes", "true", "on", "1"};
    bool trace = text.p != NULL;
    int rc = set_nothing(ld, o, text, err);

    for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        if (span_is(text, off[i]))
            trace = false;
        if (span_is(text, off[i]) || span_is(text, on[i]))
            text = SPAN_NONE;
    }
    if (rc == 0)
        rc = text_replace(&ld->conf->pmi_trace_file, text);
    if (rc == 0)
        ld->conf->pmi_trace = trace;
    return rc;
}

static int split_pair(struct span text, struct span *name, struct span *value)
{
    const char *eq = text.n > 0 ? memchr(text.p, '=', text.n) : NULL;

    *name = text;
    *value = SPAN_NONE;
    if (eq == NULL)
        return -ENOENT;
    name->n = (size_t)(eq - text.p);
    *value = (struct span){eq + 1, text.n - name->n - 1};
    return 0;
}

static void forget_env(struct conf_app *app)
{
    for (size_t i = 0; i < app->env_count; i++) {
        free(app->env[i].name);
        free(app->env[i].value);
    }
    free(app->env);
    app->env = NULL;
    app->env_count = 0;
}

void conf_app_done(struct conf_app *app)
{
    forget_env(app);
    for (size_t i = 0; app->argv != NULL && i < app->argc; i++)
        free(app->argv[i]);
    free(app->argv);
    *app = (struct conf_app){0};
}

/* The entry called `name`, or a new empty one; NULL: out of memory. */
static struct conf_env *env_entry(struct conf_app *app, struct span name)
{
    struct conf_env *env;
    char *copy;

    for (size_t i = 0; i < app->env_count; i++)
        if (span_is(name, app->env[i].name))
            return &app->env[i];
    env = realloc(app->env, (app->env_count + 1) * sizeof(*env));
    if (env == NULL)
        return NULL;
    app->env = env;
    copy = strndup(name.p, name.n);
    if (copy == NULL)
        return NULL;
    env[app->env_count] = (struct conf_env){copy, NULL};
    return &env[app->env_count++];
}

int conf_app_env(struct conf_app *app, struct span name, struct span value)
{
    struct conf_env *e = env_entry(app, name);

    return e == NULL ? -ENOMEM : text_replace(&e->value, value);
}

/* What each task is told of itself: to set it for all alike would be lost. */
static bool is_ours(struct span name)
{
    static const char *const ours[] = {
        "PMI_FD",          "PMI_PORT",        "PMI_ID",    "PMI_RANK",       "PMI_SIZE",
        "PMI_SPAWNED",     "PMI_NODE",        "PMI_NODES", "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE",
        "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PWD"};

    for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
        if (span_is(name, ours[i]))
            return true;
    return false;
}

int set_env(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    struct conf_app *app = ld->part ? ld->part : &ld->common;
    struct span name, value;

    (void)o;
    if (text.p == NULL) {
        forget_env(app);
        return 0;
    }
    (void)split_pair(text, &name, &value); /* without '=' the value is absent */
    if (name.n == 0)
        return err_set(err, -EINVAL, "'%s' has no name, NAME or NAME=VALUE was expected", quoted(text).text);
    if (is_ours(name))
        return err_set(err, -EINVAL, "%.*s is set by pmi-start itself, for each task", SPAN_FMT(name));
    return conf_app_env(app, name, value);
}

static void forget_preputs(struct conf *conf)
{
    for (size_t i = 0; i < conf->preput_count; i++) {
        free(conf->preput[i].key);
        free(conf->preput[i].value);
    }
    free(conf->preput);
    conf->preput = NULL;
    conf->preput_count = 0;
}

static int add_preput(struct conf *conf, struct span key, struct span value)
{
    struct conf_preput *p;

    for (size_t i = 0; i < conf->preput_count; i++)
        if (span_is(key, conf->preput[i].key))
            return text_replace(&conf->preput[i].value, value);
    p = realloc(conf->preput, (conf->preput_count + 1) * sizeof(*p));
    if (p == NULL)
        return -ENOMEM;
    conf->preput = p;
    p += conf->preput_count;
    *p = (struct conf_preput){strndup(key.p, key.n), strndup(value.p, value.n)};
    if (p->key != NULL && p->value != NULL) {
        conf->preput_count++;
        return 0;
    }
    free(p->key);
    free(p->value);
    return -ENOMEM;
}

/* Why PMI could not carry this pair, or NULL. A key is one word of a line, a value the rest of one (RFC 13). */
static const char *preput_fault(struct span key, struct span value)
{
    if (key.n == 0)
        return "the key is empty";
    for (size_t i = 0; i < key.n; i++)
        if ((unsigned char)key.p[i] <= ' ' || key.p[i] == 0x7f)
            return "the key holds a blank";
    if (memchr(value.p, '\n', value.n) != NULL || memchr(value.p, '\0', value.n) != NULL)
        return "the value holds a newline";
    if (key.n >= PMI_KEY_MAX)
        return "the key is longer than 63 bytes";
    return value.n >= PMI_VALUE_MAX ? "the value is longer than 1023 bytes" : NULL;
}

int set_preput(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    struct span key, value;
    const char *fault;

    (void)o;
    if (text.p == NULL) {
        forget_preputs(ld->conf);
        return 0;
    }
    if (split_pair(text, &key, &value) < 0)
        return err_set(err, -EINVAL, "'%s' has no '=', KEY=VALUE was expected", quoted(text).text);
    fault = preput_fault(key, value);
    if (fault != NULL)
        return err_set(err, -EINVAL, "'%s': %s", quoted(text).text, fault);
    return add_preput(ld->conf, key, value);
}

int set_action(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    if (text.n > 0)
        return err_set(err, -EINVAL, "'%s' is too much, it takes no value", quoted(text).text);
    ld->conf->action = (enum conf_action)o->min;
    return 0;
}

int set_print_hosts(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    (void)o;
    if (span_is(text, "folded"))
        ld->conf->action = ACTION_PRINT_HOSTS_FOLDED;
    else if (span_is(text, "plain"))
        ld->conf->action = ACTION_PRINT_HOSTS;
    else
        return err_set(err, -EINVAL, "'%s' is not folded", quoted(text).text);
    return 0;
}

int set_new_secret(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    int rc = set_nothing(ld, o, text, err);

    if (rc == 0)
        rc = text_replace(&ld->conf->new_secret, text);
    if (rc == 0)
        ld->conf->action = ACTION_NEW_SECRET;
    return rc;
}

/* Any word is fine as an argument; COMMAND itself is looked at when it is known where it comes from. */
int set_word_of_command(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    (void)ld;
    (void)o;
    (void)text;
    (void)err;
    return 0;
}

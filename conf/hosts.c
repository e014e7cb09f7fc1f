/* SPDX-License-Identifier: BSD-3-Clause */
/* hosts.c - the hosts of a run: --hostlist and --hostfile joined, or those of an allocation, less --exclude
 *
 * --hostlist and --hostfile are two spellings of one thing: a later source that gives either replaces both of the
 * earlier ones.
 */
#include <string.h>
#include "common/buf.h"
#include "common/limits.h"
#include "common/util.h"
#include "conf/alloc.h"
#include "conf/option.h"

static const struct conf_value *only(const struct conf *conf, const char *name)
{
    const struct conf_values *values = conf_values(conf, name);

    return values->count > 0 ? &values->v[0] : NULL;
}

static int add_lines(struct hostlist *hl, struct span text, struct err *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* the byte order mark of some editors */
    unsigned lineno = 0;
    int rc = 0;

    if (span_starts(text, mark))
        text = (struct span){text.p + sizeof(mark) - 1, text.n - (sizeof(mark) - 1)};
    while (rc == 0 && text.n > 0) {
        const char *nl = memchr(text.p, '\n', text.n);
        size_t n = nl ? (size_t)(nl - text.p) : text.n, step = n + (nl != NULL);

        rc = hostlist_add_line(hl, (struct span){text.p, n}, ++lineno, err);
        text = (struct span){text.p + step, text.n - step};
    }
    return rc;
}

static int add_file(struct hostlist *hl, const char *path, void *arg, struct err *err)
{
    struct buf bytes;
    int rc;

    (void)arg;
    buf_init(&bytes, 0);
    rc = file_read(path, HOSTFILE_BYTES_MAX, &bytes, err);
    if (rc == 0)
        rc = add_lines(hl, buf_span(&bytes), err);
    buf_done(&bytes);
    if (rc < 0)
        err_prefix(err, "host file '%s'", quoted(span_of(path)).text);
    return rc;
}

static int add_list(struct hostlist *hl, const char *text, struct err *err)
{
    return hostlist_add(hl, span_of(text), add_file, NULL, err);
}

static int add_both(struct hostlist *hl, const struct conf_value *list, const struct conf_value *file, struct err *err)
{
    int rc = list != NULL ? add_list(hl, list->text, err) : 0;

    if (rc < 0)
        err_prefix(err, "%s", list->where);
    if (rc < 0 || file == NULL)
        return rc;
    rc = add_file(hl, file->text, NULL, err);
    if (rc < 0)
        err_prefix(err, "%s", file->where);
    return rc;
}

/* mpirun's -x passes a variable on; taken for a host to leave out it would silently do nothing. */
static int maybe_variable(const struct conf_value *exclude, const char *why, struct err *err)
{
    const char *text = exclude->text;

    return err_set(err, -EINVAL, "%s: '%s' %s; to pass a variable on, as mpirun's -x does, use -E %s", exclude->where,
                   quoted(span_of(text)).text, why, quoted(span_of(text)).text);
}

static int exclude_from(struct hostlist *hosts, const struct conf_value *exclude, struct err *err)
{
    struct hostlist *gone = hostlist_new();
    bool typed = exclude->layer == LAYER_CMDLINE;
    int rc = gone == NULL ? err_set(err, -ENOMEM, "out of memory") : 0;

    if (rc == 0 && typed && strchr(exclude->text, '=') != NULL)
        rc = maybe_variable(exclude, "is no host list", err);
    else if (rc == 0 && (rc = add_list(gone, exclude->text, err)) < 0)
        err_prefix(err, "%s", exclude->where);
    else if (rc == 0 && hostlist_exclude(hosts, gone) == 0 && typed)
        rc = maybe_variable(exclude, "is no host of the list", err);
    hostlist_free(gone);
    return rc;
}

static int load_given(struct conf *conf, const struct conf_value *list, const struct conf_value *file, struct err *err)
{
    int rc;

    conf->hosts = hostlist_new();
    rc = conf->hosts == NULL ? err_set(err, -ENOMEM, "out of memory") : add_both(conf->hosts, list, file, err);
    if (rc == 0 && hostlist_count(conf->hosts) == 0)
        rc = err_set(err, -EINVAL, "%s: '%s' names no host", (file ? file : list)->where,
                     quoted(span_of((file ? file : list)->text)).text);
    return rc;
}

/* Drop the values of --hostlist or --hostfile that a later source has replaced. */
static void drop_replaced(const struct conf *conf)
{
    const struct option *list = option_by_name(span_of("hostlist")), *file = option_by_name(span_of("hostfile"));
    struct conf_values *lists = &conf->origins->of[list - options], *files = &conf->origins->of[file - options];

    if (lists->count == 0 || files->count == 0)
        return;
    if (lists->v[0].layer < files->v[0].layer)
        conf_values_clear(lists);
    else if (lists->v[0].layer > files->v[0].layer)
        conf_values_clear(files);
}

static int exclude_some(struct conf *conf, const struct conf_value *exclude, struct err *err)
{
    int rc;

    if (conf->hosts == NULL)
        return exclude->layer == LAYER_CMDLINE
                   ? maybe_variable(exclude, "is no host of the list, as none is given", err)
                   : 0;
    rc = exclude_from(conf->hosts, exclude, err);
    if (rc == 0 && hostlist_count(conf->hosts) == 0)
        rc = err_set(err, -EINVAL, "%s: '%s' leaves no host", exclude->where, quoted(span_of(exclude->text)).text);
    return rc;
}

int hosts_load(struct conf *conf, char *const *envp, struct err *err)
{
    const struct conf_value *list, *file, *exclude = only(conf, "exclude");
    int rc = 0;

    drop_replaced(conf);
    list = only(conf, "hostlist");
    file = only(conf, "hostfile");
    if (list != NULL || file != NULL)
        rc = load_given(conf, list, file, err);
    if (rc == 0)
        rc = alloc_decide(conf, envp, err);
    return rc == 0 && exclude != NULL ? exclude_some(conf, exclude, err) : rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* pm_self.c - no launcher: rank 0 of 1, with keys of its own */
#include <stdlib.h>
#include <string.h>
#include "client/pm.h"

static int no_server(struct err *err, const char *what)
{
    return pm_fail(err, PM_FAIL, "there is no PMI server that could %s", what);
}

static int get_name(struct pm *pm, struct err *err)
{
    pm->name = strdup("singleton");
    return pm->name != NULL ? PM_OK : pm_fail(err, PM_NOMEM, "no memory");
}

static int store(struct pm *pm, struct kvtab *t, const char *key, const char *value, struct err *err)
{
    struct kvtab_stamp stamp = {.seq = ++pm->puts};

    if (kvtab_add(t, stamp, span_of(key), span_of(value)) < 0 || kvtab_index(t) < 0)
        return pm_fail(err, PM_NOMEM, "no memory");
    if (kvtab_wants_squeeze(t))
        kvtab_squeeze(t, NULL, 0);
    return PM_OK;
}

static int find(const struct kvtab *t, const char *key, struct span *value, struct err *err)
{
    struct kvtab_view view = kvtab_view(t);

    if (kvtab_find(&view, span_of(key), kvtab_hash(span_of(key)), value) < 0)
        return pm_fail(err, PM_INVALID_KEY, "there is no key '%.80s'", key);
    return PM_OK;
}

static int put(struct pm *pm, const char *name, const char *key, const char *value, struct err *err)
{
    (void)name;
    return store(pm, &pm->kvs, key, value, err);
}

static int get(struct pm *pm, const char *name, const char *key, struct span *value, struct err *err)
{
    (void)name;
    return find(&pm->kvs, key, value, err);
}

static int nothing(struct pm *pm, struct err *err)
{
    (void)pm, (void)err;
    return PM_OK;
}

static int appnum(struct pm *pm, int *n, struct err *err)
{
    (void)pm, (void)err;
    *n = 0;
    return PM_OK;
}

static int universe(struct pm *pm, int *n, struct err *err)
{
    (void)pm, (void)err;
    *n = 1;
    return PM_OK;
}

static int node_put(struct pm *pm, const char *key, const char *value, struct err *err)
{
    return store(pm, &pm->attrs, key, value, err);
}

/* There is nobody else who could put what is waited for. */
static int node_get(struct pm *pm, const char *key, bool wait, struct span *value, struct err *err)
{
    int rc = find(&pm->attrs, key, value, err);

    return rc == PM_OK || !wait ? rc
                                : pm_fail(err, PM_FAIL, "a wait for '%.80s', which only this process could put", key);
}

static int job_get(struct pm *pm, const char *key, struct span *value, struct err *err)
{
    (void)pm;
    if (strcmp(key, "PMI_process_mapping") == 0)
        *value = span_of("(vector,(0,1,1))");
    else if (strcmp(key, "universeSize") == 0)
        *value = span_of("1");
    else
        return pm_fail(err, PM_INVALID_KEY, "there is no attribute '%.80s'", key);
    return PM_OK;
}

static int publish(struct pm *pm, const char *service, const char *port, struct err *err)
{
    (void)pm, (void)service, (void)port;
    return no_server(err, "publish a name");
}

static int unpublish(struct pm *pm, const char *service, struct err *err)
{
    (void)pm, (void)service;
    return no_server(err, "unpublish a name");
}

static int lookup(struct pm *pm, const char *service, struct span *port, struct err *err)
{
    (void)pm, (void)service, (void)port;
    return no_server(err, "look up a name");
}

static int spawn(struct pm *pm, const struct pm_spawn *s, struct span *name, int *errors, struct err *err)
{
    (void)pm, (void)s, (void)name, (void)errors;
    return no_server(err, "start processes");
}

static void give_up(struct pm *pm, int code, const char *text)
{
    (void)pm, (void)code, (void)text;
}

static const struct pm_ops ops = {
    .get_name = get_name,
    .put = put,
    .get = get,
    .fence = nothing,
    .appnum = appnum,
    .universe = universe,
    .node_put = node_put,
    .node_get = node_get,
    .job_get = job_get,
    .publish = publish,
    .unpublish = unpublish,
    .lookup = lookup,
    .spawn = spawn,
    .abort = give_up,
    .finalize = nothing,
};

void pm_self_begin(struct pm *pm)
{
    pm->ops = &ops;
}

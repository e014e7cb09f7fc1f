/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/pm.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "client/clique.h"
#include "common/limits.h"
#include "common/num.h"

int pm_code(int rc)
{
    /* 1 says "not initialized", which no server can know of; Hydra means just a failure by it. */
    return rc == 0 || (rc > PM_INIT && rc <= 14) ? rc : PM_FAIL;
}

int pm_fail(struct err *err, int code, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    err_set(err, -EINVAL, "%s", text);
    return code;
}

bool pm_is_word(const char *s)
{
    for (const char *p = s; *p != '\0'; p++)
        if ((unsigned char)*p <= ' ' || *p == '=' || *p == 127)
            return false;
    return *s != '\0';
}

bool pm_is_line(const char *s)
{
    return strchr(s, '\n') == NULL;
}

static int begin(struct pm *pm, const struct where *where, bool pmi2, struct err *err)
{
    int rc = wire_open(&pm->wire, where, err);

    if (rc == 0 && pmi2) {
        rc = pm2_begin(pm, where, err);
        if (rc != -EPROTONOSUPPORT)
            return rc;
        /* Flux, for one. A server that was to learn from fullinit who we are wants initack now, and that first. */
        rc = 0;
        if (where->fd < 0) {
            wire_close(&pm->wire);
            rc = wire_open(&pm->wire, where, err);
        }
    }
    return rc < 0 ? rc : pm1_begin(pm, where, err);
}

/* The very one: a launcher that was started by ours leaves our variables to its tasks, with a socket of its own. */
static bool is_socket(int fd, int64_t number)
{
    struct stat st;

    return number > 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == (uint64_t)number;
}

int pm_open(struct pm *pm, char *const *env, bool pmi2, struct err *err)
{
    struct where where;
    int rc;

    *pm = (struct pm){.wire = WIRE_CLOSED,
                      .appnum = APPNUM_UNKNOWN,
                      .name_max = PMI_KVSNAME_MAX,
                      .key_max = PMI_KEY_MAX,
                      .value_max = PMI_VALUE_MAX};
    rc = where_read(env, &where, err);
    if (rc < 0)
        return PM_FAIL;
    pm->rank = where.rank;
    pm->size = where.size;
    pm->spawned = where.spawned;
    if (rc == 0)
        pm_self_begin(pm);
    else if (begin(pm, &where, pmi2, err) < 0)
        return PM_FAIL;
    pm->may_map = pm->may_bell = rc != 0 && is_socket(pm->wire.fd, where.map);
    return PM_OK;
}

void pm_close(struct pm *pm)
{
    pm_unmap(pm);
    pm_bell_close(pm);
    wire_close(&pm->wire);
    buf_done(&pm->out);
    kvtab_done(&pm->kvs);
    kvtab_done(&pm->attrs);
    free(pm->name);
    free(pm->clique);
    *pm = (struct pm){.wire = WIRE_CLOSED};
}

int pm_name(struct pm *pm, const char **name, struct err *err)
{
    int rc = pm->name == NULL ? pm->ops->get_name(pm, err) : PM_OK;

    if (rc == PM_OK)
        *name = pm->name;
    return rc;
}

static int check_key(const struct pm *pm, const char *name, const char *key, struct err *err)
{
    if (name != NULL && strlen(name) >= (size_t)pm->name_max)
        return pm_fail(err, PM_INVALID_LENGTH, "the name '%.80s' has more than %d bytes", name, pm->name_max - 1);
    if (strlen(key) >= (size_t)pm->key_max)
        return pm_fail(err, PM_INVALID_KEY_LENGTH, "the key '%.80s' has more than %d bytes", key, pm->key_max - 1);
    if (*key == '\0')
        return pm_fail(err, PM_INVALID_KEY, "the key is empty");
    return PM_OK;
}

int pm_put(struct pm *pm, const char *name, const char *key, const char *value, struct err *err)
{
    int rc = check_key(pm, name, key, err);

    if (rc != PM_OK)
        return rc;
    if (strlen(value) >= (size_t)pm->value_max)
        return pm_fail(err, PM_INVALID_VAL_LENGTH, "the value for '%s' has %zu bytes, more than %d", key, strlen(value),
                       pm->value_max - 1);
    return pm->ops->put(pm, name, key, value, err);
}

int pm_get(struct pm *pm, const char *name, const char *key, struct span *value, struct err *err)
{
    int rc = check_key(pm, name, key, err);

    return rc != PM_OK ? rc : pm->ops->get(pm, name, key, value, err);
}

int pm_appnum(struct pm *pm, int *appnum, struct err *err)
{
    int rc = PM_OK;

    if (pm->appnum == APPNUM_UNKNOWN)
        rc = pm->ops->appnum(pm, &pm->appnum, err);
    if (rc == PM_OK)
        *appnum = pm->appnum;
    return rc;
}

int pm_clique(struct pm *pm, const int **ranks, int *count, struct err *err)
{
    struct span text = SPAN_NONE;
    struct err why;
    int rc;

    if (pm->clique == NULL) {
        if (pm->size > 1 && pm->ops->job_get(pm, "PMI_process_mapping", &text, &why) != PM_OK) {
            if (pm->wire.is_broken)
                return pm_fail(err, PM_FAIL, "%s", why.text);
            text = SPAN_NONE; /* not said: every rank is by itself */
        }
        rc = clique_read(text, pm->rank, pm->size, &pm->clique, &pm->clique_size);
        if (rc < 0)
            return rc == -ENOMEM ? pm_fail(err, PM_NOMEM, "no memory")
                                 : pm_fail(err, PM_FAIL, "PMI_process_mapping is '%.*s', which says nothing of rank %d",
                                           (int)(text.n < 80 ? text.n : 80), text.p, pm->rank);
    }
    *ranks = pm->clique;
    *count = pm->clique_size;
    return PM_OK;
}

int pm_spawn(struct pm *pm, const struct pm_spawn *s, struct span *name, int *errors, struct err *err)
{
    *name = SPAN_NONE;
    for (int i = 0; errors != NULL && i < s->nprocs; i++)
        errors[i] = PM_OK;
    return pm->ops->spawn(pm, s, name, errors, err);
}

int pm_errors(struct span list, int *errors, int count, struct err *err)
{
    for (int i = 0; list.p != NULL && i < count; i++) {
        const char *comma = memchr(list.p, ',', list.n);
        size_t n = comma != NULL ? (size_t)(comma - list.p) : list.n;
        int64_t v;

        if (num_i64((struct span){list.p, n}, INT_MIN, INT_MAX, &v) < 0)
            return pm_fail(err, PM_FAIL, "the PMI server's list of spawn errors is no list of %d numbers", count);
        if (errors != NULL)
            errors[i] = (int)v;
        list.p += n + (comma != NULL);
        list.n -= n + (comma != NULL);
    }
    return PM_OK;
}

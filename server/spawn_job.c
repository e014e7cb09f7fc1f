/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/spawn_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/hostlist.h"
#include "common/limits.h"
#include "common/strv.h"
#include "server/env.h"

static const char *info(const struct spawn_cmd *c, const char *key)
{
    for (uint32_t i = 0; i < c->ninfo; i++)
        if (strcmp(c->info[2 * i], key) == 0)
            return c->info[2 * i + 1];
    return NULL;
}

/* --- where its ranks go ----------------------------------------------------------------------------------------- */

static int find_node(const struct plan *plan, const char *host, uint32_t *node)
{
    for (uint32_t i = 0; i < plan->node_count; i++)
        if (strcmp(plan->node[i].host, host) == 0 || strcmp(plan->node[i].login, host) == 0) {
            *node = i;
            return 0;
        }
    return -EINVAL;
}

/* On the hosts named, in turn. */
static int place_on(const struct plan *plan, const char *hosts, uint32_t count, uint32_t *node_of, struct err *err)
{
    struct hostlist *hl = hostlist_new();
    uint32_t placed = 0;
    int rc = hl == NULL ? -ENOMEM : hostlist_add(hl, span_of(hosts), NULL, NULL, err);

    for (size_t i = 0; rc == 0 && placed < count; i = (i + 1) % hostlist_count(hl)) {
        struct host h = hostlist_get(hl, i);
        uint32_t node, n = h.slots > 0 ? h.slots : 1;

        rc = find_node(plan, h.name, &node);
        if (rc < 0)
            err_set(err, rc, "%s is none of the run's hosts", h.name);
        for (uint32_t k = 0; rc == 0 && k < n && placed < count; k++)
            node_of[placed++] = node;
    }
    hostlist_free(hl);
    return rc;
}

static int place(const struct spawn_base *base, const struct spawn_want *want, uint32_t *node_of, struct err *err)
{
    uint32_t rank = 0, next = *base->next_node;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < want->count; i++) {
        const struct spawn_cmd *c = &want->cmd[i];
        const char *hosts = info(c, "host") != NULL ? info(c, "host") : info(c, "hosts");

        if (hosts != NULL) {
            rc = place_on(base->plan, hosts, c->nprocs, node_of + rank, err);
        } else {
            for (uint32_t k = 0; k < c->nprocs; k++)
                node_of[rank + k] = next++ % base->plan->node_count;
        }
        rank += c->nprocs;
    }
    if (rc == 0)
        *base->next_node = next % base->plan->node_count;
    return rc;
}

static int set_tree(struct job *j, const struct job *first)
{
    j->places = first->places;
    j->nodes = first->nodes;
    j->parent = calloc(j->places, sizeof(*j->parent));
    j->node_at = calloc(j->places, sizeof(*j->node_at));
    if (j->parent == NULL || j->node_at == NULL)
        return -ENOMEM;
    memcpy(j->parent, first->parent, j->places * sizeof(*j->parent));
    memcpy(j->node_at, first->node_at, j->places * sizeof(*j->node_at));
    return 0;
}

/* --- what runs -------------------------------------------------------------------------------------------------- */

static int set_dir(struct job_app *a, const struct job *first, const char *wdir)
{
    if (wdir == NULL || wdir[0] == '\0')
        return 0;
    if (wdir[0] == '/')
        a->dir = strdup(wdir);
    else if (asprintf(&a->dir, "%s/%s", first->dir, wdir) < 0)
        a->dir = NULL;
    return a->dir == NULL ? -ENOMEM : 0;
}

/* What Open MPI sends along of its rank's environment, and was for that rank alone. */
static bool is_of_one_rank(struct span name)
{
    return env_is_local(name) || span_ends(name, "_backing_directory");
}

/* Variables that the request brings. */
static int set_env(struct job_app *a, const struct spawn_cmd *c)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < c->ninfo; i++) {
        const char *text = c->info[2 * i + 1], *eq = strchr(text, '=');
        char *name;

        if (strcmp(c->info[2 * i], SPAWN_INFO_ENV) != 0 || eq == NULL || eq == text)
            continue;
        if (is_of_one_rank((struct span){text, (size_t)(eq - text)}))
            continue;
        name = strndup(text, (size_t)(eq - text));
        rc = name == NULL ? -ENOMEM : env_set(&a->env, name, eq + 1);
        free(name);
    }
    return rc;
}

static int set_apps(struct job *j, const struct job *first, const struct spawn_want *want)
{
    j->app = calloc(want->count, sizeof(*j->app));
    if (j->app == NULL)
        return -ENOMEM;
    j->app_count = want->count;
    for (uint32_t i = 0; i < want->count; i++) {
        const struct spawn_cmd *c = &want->cmd[i];
        struct job_app *a = &j->app[i];
        const char *path = info(c, "path");

        a->ntasks = c->nprocs;
        a->argv = strv_dup(c->argv);
        a->env = strv_dup(first->app[0].env);
        a->search = path == NULL ? NULL : strdup(path);
        if (a->argv == NULL || a->env == NULL || (path != NULL && a->search == NULL) ||
            set_dir(a, first, info(c, "wdir")) < 0 || set_env(a, c) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int set_preputs(struct job *j, const struct spawn_want *want, struct err *err)
{
    for (uint32_t i = 0; i < want->npreput; i++) {
        const char *key = want->preput[2 * i], *value = want->preput[2 * i + 1];

        if (key[0] == '\0' || strlen(key) >= PMI_KEY_MAX || strlen(value) >= PMI_VALUE_MAX ||
            strpbrk(value, "\n") != NULL)
            return err_set(err, -EINVAL, "the key '%.70s' or its value is none for the KVS", key);
        if (strv_add(&j->preput, key) < 0 || strv_add(&j->preput, value) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int set_names(struct job *j, const struct spawn_base *base)
{
    j->spawner = strdup(base->spawner);
    j->dir = strdup(base->first->dir);
    if (asprintf(&j->kvsname, "%.50s.%u", base->first->kvsname, base->number) < 0)
        j->kvsname = NULL;
    return j->kvsname == NULL || j->spawner == NULL || j->dir == NULL ? -ENOMEM : 0;
}

int spawn_job_make(const struct spawn_base *base, const struct spawn_want *want, struct job **out, struct err *err)
{
    struct job *j = calloc(1, sizeof(*j));
    uint32_t *node_of;
    int rc;

    if (j == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    *j = (struct job){.id = base->number, .size = spawn_want_tasks(want), .limits = base->first->limits};
    j->input = -1;
    /* COMMAND of --serve has no PMI; what ranks spawn has. */
    j->connect = base->first->connect == CONNECT_NONE ? CONNECT_FD : base->first->connect;
    j->subversion2 = base->first->subversion2;
    j->trace = base->first->trace;
    j->keep_going = base->first->keep_going;
    j->barrier_warn_ms = base->first->barrier_warn_ms;
    j->log_level = base->first->log_level;
    node_of = calloc(j->size, sizeof(*node_of));
    rc = node_of == NULL ? -ENOMEM : place(base, want, node_of, err);
    if (rc == 0)
        rc = set_preputs(j, want, err);
    if (rc == 0 && (job_place(j, node_of) < 0 || set_tree(j, base->first) < 0 || set_apps(j, base->first, want) < 0 ||
                    set_names(j, base) < 0))
        rc = -ENOMEM;
    free(node_of);
    if (rc < 0) {
        job_free(j);
        return rc == -ENOMEM ? err_set(err, rc, "out of memory") : rc;
    }
    *out = j;
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/spawn.h"

#include <stdlib.h>
#include "client/lib.h"
#include "common/limits.h"

/* Everything that points into what the caller gave, in arrays of our own. */
struct plan {
    struct pm_cmd *cmd;
    struct pm_pair *info, *preput;
};

static void plan_done(struct plan *p)
{
    free(p->cmd);
    free(p->info);
    free(p->preput);
}

static size_t count_args(const struct spawn_args *a, int i)
{
    size_t n = 0;

    if (a->argvs == NULL || a->argvs[i] == NULL)
        return 0;
    if (a->argcs != NULL)
        return a->argcs[i] > 0 ? (size_t)a->argcs[i] : 0;
    while (a->argvs[i][n] != NULL)
        n++;
    return n;
}

static size_t count_info(const struct spawn_args *a, int i)
{
    return a->ninfo != NULL && a->info != NULL && a->info[i] != NULL && a->ninfo[i] > 0 ? (size_t)a->ninfo[i] : 0;
}

static int take_pairs(struct pm_pair *out, const void *from, size_t count, spawn_pair_fn at)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = at(from, i);
        if (out[i].key == NULL || out[i].value == NULL)
            return PM_INVALID_ARG;
    }
    return PM_OK;
}

static int take_cmd(const struct spawn_args *a, int i, struct pm_pair *info, struct pm_cmd *cmd)
{
    *cmd = (struct pm_cmd){
        .path = a->cmds[i],
        .args = a->argvs != NULL ? (const char *const *)a->argvs[i] : NULL,
        .nargs = count_args(a, i),
        .nprocs = a->maxprocs[i],
        .info = info,
        .ninfo = count_info(a, i),
    };
    if (cmd->path == NULL || cmd->nprocs < 1 || (unsigned)cmd->nprocs > TASKS_MAX)
        return PM_INVALID_ARG;
    for (size_t k = 0; k < cmd->nargs; k++)
        if (cmd->args[k] == NULL)
            return PM_INVALID_ARG;
    return cmd->ninfo > 0 ? take_pairs(info, a->info[i], cmd->ninfo, a->info_at) : PM_OK;
}

static int make_plan(const struct spawn_args *a, struct plan *p, struct pm_spawn *s)
{
    size_t pairs = 0, npreput = a->npreput > 0 ? (size_t)a->npreput : 0;
    int rc;

    if (a->count < 1 || a->cmds == NULL || a->maxprocs == NULL || (npreput > 0 && a->preput == NULL))
        return PM_INVALID_ARG;
    for (int i = 0; i < a->count; i++)
        pairs += count_info(a, i);
    p->cmd = calloc((size_t)a->count, sizeof(*p->cmd));
    p->info = calloc(pairs + 1, sizeof(*p->info));
    p->preput = calloc(npreput + 1, sizeof(*p->preput));
    if (p->cmd == NULL || p->info == NULL || p->preput == NULL)
        return PM_NOMEM;
    *s = (struct pm_spawn){.cmd = p->cmd, .count = (size_t)a->count, .preput = p->preput, .npreput = npreput};
    rc = take_pairs(p->preput, a->preput, npreput, a->preput_at);
    pairs = 0;
    for (int i = 0; rc == PM_OK && i < a->count; i++) {
        rc = take_cmd(a, i, p->info + pairs, &p->cmd[i]);
        pairs += p->cmd[i].ninfo;
        s->nprocs += p->cmd[i].nprocs;
        if (rc == PM_OK && (unsigned)s->nprocs > TASKS_MAX)
            rc = PM_INVALID_ARG;
    }
    return rc;
}

int spawn_call(const struct spawn_args *a, char *name, int room, int *errors)
{
    struct err err = {0};
    struct plan plan = {0};
    struct pm_spawn s = {0};
    struct span id;
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PM_OK)
        return rc;
    rc = make_plan(a, &plan, &s);
    if (rc == PM_OK)
        rc = pm_spawn(pm, &s, &id, errors, &err);
    else
        pm_fail(&err, rc, "bad arguments to spawn");
    if (rc == PM_OK && name != NULL && room > 0)
        rc = lib_copy(id, name, room, &err);
    plan_done(&plan);
    return lib_leave(rc, &err);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn_want.c - struct spawn_want: its memory, and its place in a message */
#include <stdlib.h>
#include "common/limits.h"
#include "common/strv.h"
#include "server/session_spawn.h"

void spawn_want_done(struct spawn_want *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        /* A command that is being read may have no program yet, which is not the end of its arguments. */
        for (uint32_t k = 0; k < w->cmd[i].argc; k++)
            free(w->cmd[i].argv[k]);
        free(w->cmd[i].argv);
        strv_free(w->cmd[i].info);
    }
    free(w->cmd);
    strv_free(w->preput);
    *w = (struct spawn_want){0};
}

uint32_t spawn_want_tasks(const struct spawn_want *w)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < w->count; i++)
        n += w->cmd[i].nprocs;
    return n;
}

/* All commands' numbers, arguments and info one behind the other. */
int spawn_want_pack(const struct spawn_want *w, struct msg_out *m)
{
    uint32_t *v = calloc(3u * w->count + 1u, sizeof(*v)), nargv = 0, ninfo = 0;
    char **argv, **info;
    int rc = -ENOMEM;

    for (uint32_t i = 0; i < w->count; i++) {
        nargv += w->cmd[i].argc;
        ninfo += 2 * w->cmd[i].ninfo;
    }
    argv = calloc(nargv + 1u, sizeof(*argv));
    info = calloc(ninfo + 1u, sizeof(*info));
    if (v != NULL && argv != NULL && info != NULL) {
        nargv = ninfo = 0;
        for (uint32_t i = 0; i < w->count; i++) {
            v[i] = w->cmd[i].argc;
            v[w->count + i] = w->cmd[i].ninfo;
            v[2 * w->count + i] = w->cmd[i].nprocs;
            for (uint32_t k = 0; k < w->cmd[i].argc; k++)
                argv[nargv++] = w->cmd[i].argv[k];
            for (uint32_t k = 0; k < 2 * w->cmd[i].ninfo; k++)
                info[ninfo++] = w->cmd[i].info[k];
        }
        msg_put_u32v(m, "spawn_argc", v, w->count);
        msg_put_u32v(m, "spawn_ninfo", v + w->count, w->count);
        msg_put_u32v(m, "spawn_nprocs", v + (size_t)2 * w->count, w->count);
        msg_put_strv(m, "spawn_argv", argv, nargv);
        msg_put_strv(m, "spawn_info", info, ninfo);
        msg_put_strv(m, "spawn_preput", w->preput, 2u * w->npreput);
        rc = 0;
    }
    free(v);
    free(argv);
    free(info);
    return rc;
}

/* What a message has, before it is a struct spawn_want. */
struct packed {
    uint32_t *argc, *ninfo, *nprocs;
    size_t nargc, nninfo, nnprocs;
    char **argv, **info, **preput;
    size_t nargv, ninfos, npreput;
};

static int read_packed(const struct msg_in *m, struct packed *k, struct err *err)
{
    int rc;

    if ((rc = msg_get_u32v(m, "spawn_argc", SPAWN_CMDS_MAX, &k->argc, &k->nargc, err)) < 0 ||
        (rc = msg_get_u32v(m, "spawn_ninfo", SPAWN_CMDS_MAX, &k->ninfo, &k->nninfo, err)) < 0 ||
        (rc = msg_get_u32v(m, "spawn_nprocs", SPAWN_CMDS_MAX, &k->nprocs, &k->nnprocs, err)) < 0 ||
        (rc = msg_get_strv(m, "spawn_argv", SPAWN_STRINGS_MAX, &k->argv, &k->nargv, err)) < 0 ||
        (rc = msg_get_strv(m, "spawn_info", SPAWN_STRINGS_MAX, &k->info, &k->ninfos, err)) < 0 ||
        (rc = msg_get_strv(m, "spawn_preput", SPAWN_STRINGS_MAX, &k->preput, &k->npreput, err)) < 0)
        return rc;
    return 0;
}

static int check_packed(const struct packed *k, struct err *err)
{
    uint64_t argv = 0, info = 0, tasks = 0;

    if (k->nargc == 0 || k->nninfo != k->nargc || k->nnprocs != k->nargc || k->npreput % 2 != 0)
        return err_set(err, -EPROTO, "spawn: arrays of different lengths");
    for (size_t i = 0; i < k->nargc; i++) {
        if (k->argc[i] == 0 || k->nprocs[i] == 0)
            return err_set(err, -EPROTO, "spawn: a command without program or processes");
        argv += k->argc[i];
        info += 2 * (uint64_t)k->ninfo[i];
        tasks += k->nprocs[i];
    }
    if (argv != k->nargv || info != k->ninfos || tasks > TASKS_MAX)
        return err_set(err, -EPROTO, "spawn: counts that do not fit");
    return 0;
}

/* Move `count` strings from `from` to a fresh array. */
static char **slice(char **from, size_t count)
{
    char **v = calloc(count + 1, sizeof(*v));

    for (size_t i = 0; v != NULL && i < count; i++) {
        v[i] = from[i];
        from[i] = NULL;
    }
    return v;
}

static int fill(struct spawn_want *w, struct packed *k)
{
    size_t argv = 0, info = 0;

    w->cmd = calloc(k->nargc, sizeof(*w->cmd));
    if (w->cmd == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < k->nargc; i++) {
        struct spawn_cmd *cmd = &w->cmd[i];

        w->count++;
        cmd->nprocs = k->nprocs[i];
        if ((cmd->argv = slice(k->argv + argv, k->argc[i])) == NULL)
            return -ENOMEM;
        cmd->argc = k->argc[i];
        if ((cmd->info = slice(k->info + info, 2 * (size_t)k->ninfo[i])) == NULL)
            return -ENOMEM;
        cmd->ninfo = k->ninfo[i];
        argv += cmd->argc;
        info += 2 * (size_t)cmd->ninfo;
    }
    w->preput = k->preput;
    w->npreput = (uint32_t)(k->npreput / 2);
    k->preput = NULL;
    return 0;
}

/* Of which some may have been moved away. */
static void free_strings(char **v, size_t count)
{
    for (size_t i = 0; v != NULL && i < count; i++)
        free(v[i]);
    free(v);
}

int spawn_want_unpack(const struct msg_in *m, struct spawn_want *w, struct err *err)
{
    struct packed k = {0};
    int rc = read_packed(m, &k, err);

    if (rc == 0)
        rc = check_packed(&k, err);
    if (rc == 0 && (rc = fill(w, &k)) < 0) {
        spawn_want_done(w);
        err_set(err, rc, "no memory for a spawn request");
    }
    free(k.argc);
    free(k.ninfo);
    free(k.nprocs);
    free_strings(k.argv, k.nargv);
    free_strings(k.info, k.ninfos);
    free_strings(k.preput, k.npreput);
    return rc;
}

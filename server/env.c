/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "common/strv.h"
#include "common/util.h"

/* A '*' at the end stands for anything. */
static const char *const local_names[] = {
    "PMI_*",
    "PMIX_*",
    "HYDI_*",
    "HYDRA_*",
    /* Open MPI 3 to 5 set these for each process that they start. */
    "OMPI_APP_CTX_*",
    "OMPI_ARGV",
    "OMPI_COMMAND",
    "OMPI_COMM_WORLD_*",
    "OMPI_FILE_LOCATION",
    "OMPI_FIRST_RANKS",
    "OMPI_MCA_ess",
    "OMPI_MCA_ess_*",
    "OMPI_MCA_initial_wdir",
    "OMPI_MCA_orte_*",
    "OMPI_MCA_pmix*",
    "OMPI_MCA_shmem_RUNTIME_QUERY_hint",
    "OMPI_NUM_APP_CTX",
    "OMPI_UNIVERSE_SIZE",
    /* What srun sets for a step or a task of it; see "Output environment variables" in srun(1). */
    "SLURMD_NODENAME",
    "SLURM_GTIDS",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_PMI*",
    "SLURM_PROCID",
    "SLURM_SRUN_*",
    "SLURM_STEPID",
    "SLURM_STEPMGR",
    "SLURM_STEP_*",
    "SLURM_TASK_PID",
    "SLURM_TOPOLOGY_ADDR*",
    /* This session and this host. */
    "DBUS_*",
    "DISPLAY",
    "HOSTNAME",
    "JOB_COMPLETION_INDEX",
    "SSH_*",
    "WINDOWID",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_SESSION_*",
};

static bool matches(struct span name, const char *pattern)
{
    size_t n = strlen(pattern);

    if (pattern[n - 1] == '*')
        return name.n >= n - 1 && memcmp(name.p, pattern, n - 1) == 0;
    return span_is(name, pattern);
}

bool env_is_local(struct span name)
{
    for (size_t i = 0; i < ARRAY_SIZE(local_names); i++)
        if (matches(name, local_names[i]))
            return true;
    return false;
}

static int add_own(char ***env, char *const *own)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && own != NULL && own[i] != NULL; i++) {
        const char *eq = strchrnul(own[i], '=');

        if (!env_is_local((struct span){own[i], (size_t)(eq - own[i])}))
            rc = strv_add(env, own[i]);
    }
    return rc;
}

static int edit(char ***env, char *const *own, const struct conf_env *e)
{
    const char *value = e->value != NULL ? e->value : env_get(own, e->name);

    if (value != NULL)
        return env_set(env, e->name, value);
    env_unset(*env, e->name);
    return 0;
}

int env_for_app(char *const *own, const struct conf_app *app, char ***out)
{
    char **env = strv_dup(NULL);
    int rc = env == NULL ? -ENOMEM : 0;

    if (rc == 0 && !app->env_none)
        rc = add_own(&env, own);
    for (size_t i = 0; rc == 0 && i < app->env_count; i++)
        rc = edit(&env, own, &app->env[i]);
    if (rc == 0)
        *out = env;
    else
        strv_free(env);
    return rc;
}

static int set_number(char ***env, const char *name, uint32_t value)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", value);
    return env_set(env, name, text);
}

static int set_rank(char ***env, const struct env_rank *r)
{
    const struct {
        const char *name;
        uint32_t value;
    } vars[] = {
        {"PMI_RANK", r->rank},
        {"PMI_SIZE", r->size},
        {"MPI_LOCALRANKID", r->local_rank},
        {"MPI_LOCALNRANKS", r->local_size},
        {"PMI_LOCAL_RANK", r->local_rank},
        {"PMI_LOCAL_SIZE", r->local_size},
        {"PMI_NODE", r->node},
        {"PMI_NODES", r->nodes},
    };
    char text[32];
    int rc = 0;

    if (r->pmi_fd)
        rc = set_number(env, "PMI_FD", 3);
    if (rc == 0 && r->map != 0) {
        snprintf(text, sizeof(text), "%" PRIu64, r->map);
        rc = env_set(env, "PMI_KVS_MAP", text);
    }
    if (rc == 0 && r->port != 0) {
        snprintf(text, sizeof(text), "127.0.0.1:%u", r->port);
        rc = env_set(env, "PMI_PORT", text);
        if (rc == 0)
            rc = set_number(env, "PMI_ID", r->rank);
    }
    if (rc == 0 && r->spawned)
        rc = set_number(env, "PMI_SPAWNED", 1);
    for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(vars); i++)
        rc = set_number(env, vars[i].name, vars[i].value);
    return rc;
}

int env_for_rank(char *const *app, const struct env_rank *rank, char ***out)
{
    char **env = strv_dup(app);
    int rc = env == NULL ? -ENOMEM : set_rank(&env, rank);

    if (rc == 0)
        rc = env_set(&env, "PWD", rank->dir);
    if (rc == 0)
        *out = env;
    else
        strv_free(env);
    return rc;
}

int env_for_command(char *const *app, const char *port, uint32_t size, const char *dir, char ***out)
{
    char **env = strv_dup(app);
    int rc = env == NULL ? -ENOMEM : env_set(&env, "PMI_PORT", port);

    if (rc == 0)
        rc = set_number(&env, "PMI_SIZE", size);
    if (rc == 0)
        rc = env_set(&env, "PWD", dir);
    if (rc == 0)
        *out = env;
    else
        strv_free(env);
    return rc;
}

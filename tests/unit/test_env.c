/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/env.h"

#include <criterion/criterion.h>
#include "common/strv.h"
#include "common/util.h"

#define ENV(...) ((char *const *)(const void *)(const char *const[]){__VA_ARGS__, NULL})

static void expect(char *const *got, char *const *want)
{
    cr_expect_eq(strv_count(got), strv_count(want));
    for (size_t i = 0; got[i] != NULL && want[i] != NULL; i++)
        cr_expect_str_eq(got[i], want[i]);
}

static char *str(const char *s)
{
    return (char *)(uintptr_t)s;
}

static const struct {
    const char *name;
    bool local;
} names[] = {
    {"PMI_RANK", true},
    {"PMI_", true},
    {"PMI", false},
    {"PMIX_RANK", true},
    {"PMI_START_HOSTLIST", true},
    {"PMI_KVS_MAP", true},
    {"HYDI_CONTROL_FD", true},
    {"HYDRA_LAUNCHER", true},
    {"OMPI_COMM_WORLD_RANK", true},
    {"OMPI_UNIVERSE_SIZE", true},
    {"OMPI_MCA_orte_ess_num_procs", true},
    {"OMPI_MCA_ess", true},
    {"OMPI_MCA_ess_base_jobid", true},
    {"OMPI_MCA_btl", false},
    {"OMPI_MCA_btl_tcp_if_include", false},
    {"OMPI_MCA_plm_rsh_agent", false},
    {"OMPI_CC", false},
    {"SLURM_PROCID", true},
    {"SLURM_STEP_NODELIST", true},
    {"SLURM_STEPID", true},
    {"SLURM_SRUN_COMM_PORT", true},
    {"SLURM_PMIXP_ABORT_AGENT_PORT", true},
    {"SLURM_JOB_ID", false},
    {"SLURM_JOB_NODELIST", false},
    {"SLURM_TASKS_PER_NODE", false},
    {"DISPLAY", true},
    {"DISPLAY2", false},
    {"SSH_AUTH_SOCK", true},
    {"DBUS_SESSION_BUS_ADDRESS", true},
    {"XDG_RUNTIME_DIR", true},
    {"XDG_SESSION_ID", true},
    {"XDG_CONFIG_HOME", false},
    {"HOSTNAME", true},
    {"HOST", false},
    {"PATH", false},
    {"", false},
};

Test(env, names_that_stay_behind)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        cr_expect_eq(env_is_local(span_of(names[i].name)), names[i].local, "%s", names[i].name);
}

Test(env, goes_along_byte_for_byte_and_in_order)
{
    struct conf_app app = {0};
    char **env = NULL;

    cr_assert_eq(env_for_app(ENV("Z= a=b\n\xff", "PMI_FD=9", "rubbish", "A=", "DISPLAY=:0", "B=1"), &app, &env), 0);
    expect(env, ENV("Z= a=b\n\xff", "rubbish", "A=", "B=1"));
    strv_free(env);
}

Test(env, edits)
{
    struct conf_env edits[] = {
        {str("A"), str("2")},   {str("DISPLAY"), NULL}, {str("NEW"), str("x=y")},
        {str("UNKNOWN"), NULL}, {str("A"), str("3")},
    };
    struct conf_app app = {.env = edits, .env_count = ARRAY_SIZE(edits)};
    char *const *own = ENV("A=1", "DISPLAY=:0", "B=1");
    char **env = NULL;

    cr_assert_eq(env_for_app(own, &app, &env), 0);
    expect(env, ENV("A=3", "B=1", "DISPLAY=:0", "NEW=x=y"));
    strv_free(env);
    app.env_none = true;
    cr_assert_eq(env_for_app(own, &app, &env), 0);
    expect(env, ENV("A=3", "DISPLAY=:0", "NEW=x=y"));
    strv_free(env);
    app.env_count = 0;
    cr_assert_eq(env_for_app(own, &app, &env), 0);
    cr_expect_null(env[0]);
    strv_free(env);
}

Test(env, a_rank_knows_who_it_is)
{
    struct env_rank rank = {
        .rank = 5, .size = 8, .local_rank = 1, .local_size = 4, .node = 1, .nodes = 2, .pmi_fd = true, .dir = "/tmp"};
    char **env = NULL;

    cr_assert_eq(env_for_rank(ENV("PWD=/home", "A=1", "PMI_SIZE=77"), &rank, &env), 0);
    expect(env, ENV("PWD=/tmp", "A=1", "PMI_SIZE=8", "PMI_FD=3", "PMI_RANK=5", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=4",
                    "PMI_LOCAL_RANK=1", "PMI_LOCAL_SIZE=4", "PMI_NODE=1", "PMI_NODES=2"));
    strv_free(env);
    rank.map = 1234567890123;
    cr_assert_eq(env_for_rank(ENV("PMI_KVS_MAP=7"), &rank, &env), 0);
    cr_expect_str_eq(env_get(env, "PMI_KVS_MAP"), "1234567890123");
    strv_free(env);
    rank.map = 0;
    rank.pmi_fd = false;
    rank.spawned = true;
    cr_assert_eq(env_for_rank(NULL, &rank, &env), 0);
    cr_expect_null(env_get(env, "PMI_FD"));
    cr_expect_null(env_get(env, "PMI_KVS_MAP"));
    cr_expect_str_eq(env_get(env, "PMI_SPAWNED"), "1");
    cr_expect_str_eq(env_get(env, "PWD"), "/tmp");
    strv_free(env);
}

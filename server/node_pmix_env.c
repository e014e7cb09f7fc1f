/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pmix_env.c - what a rank is told beside PMI when it has PMIx */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/strv.h"
#include "common/util.h"
#include "server/node_pmix.h"
#include "server/scratch.h"

/* Unless the user has said it. */
static int set_text(char ***env, const char *name, const char *value)
{
    return value == NULL || env_get(*env, name) != NULL ? 0 : env_set(env, name, value);
}

static int set_number(char ***env, const char *name, uint32_t value)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", value);
    return env_set(env, name, text);
}

/* More ranks than processors: who waits in Open MPI 4 must not hold up who works. */
static bool is_crowded(const struct task *t)
{
    uint32_t ranks = 0;
    cpu_set_t *set = CPU_ALLOC(8192);
    size_t size = CPU_ALLOC_SIZE(8192);
    bool crowded = false;

    for (const struct node_job *j = t->job->node->jobs; j != NULL; j = j->next)
        ranks += j->task_count;
    if (set != NULL && sched_getaffinity(0, size, set) == 0)
        crowded = ranks > (uint32_t)CPU_COUNT_S(size, set);
    if (set != NULL)
        CPU_FREE(set);
    return crowded;
}

/* Open MPI 4 asks its environment who has started it. It would take each of our ranks for one that was started alone,
 * but for the mark of a launcher that it knows to be none of its own; of those this one (IBM's) makes it do the least.
 * Open MPI 5 looks for no mark. MPICH from 5.0 on refuses to choose between PMI and PMIx. Open MPI removes its session
 * folder and its shared memory at the end of a rank that ends well; of others they stay: so it is given folders of
 * ours. */
static int set_marks(const struct task *t, char ***env)
{
    static const char *const shm[] = {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory",
                                      "OMPI_MCA_osc_rdma_backing_directory", "OMPI_MCA_osc_sm_backing_directory"};
    int rc = set_text(env, "JSM_JSRUN_PORT", "1");

    if (rc == 0)
        rc = set_text(env, "MPIR_CVAR_PMI_VERSION", "1");
    if (rc == 0)
        rc = set_text(env, "OMPI_MCA_orte_tmpdir_base", scratch_path(SCRATCH_TMP));
    for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(shm); i++)
        rc = set_text(env, shm[i], scratch_path(SCRATCH_SHM));
    if (rc == 0 && is_crowded(t))
        rc = set_text(env, "OMPI_MCA_mpi_yield_when_idle", "1");
    return rc;
}

int node_pmix_env(const struct task *t, char ***env)
{
    const struct node_job *j = t->job;
    const struct {
        const char *name;
        uint32_t value;
    } vars[] = {
        {"OMPI_COMM_WORLD_RANK", t->rank},       {"OMPI_COMM_WORLD_SIZE", j->job->size},
        {"OMPI_COMM_WORLD_LOCAL_RANK", t->slot}, {"OMPI_COMM_WORLD_LOCAL_SIZE", j->task_count},
        {"OMPI_COMM_WORLD_NODE_RANK", t->slot},  {"OMPI_UNIVERSE_SIZE", j->job->size},
    };
    int rc = 0;

    if (j->job->nspace == NULL || j->node->pmix == NULL || j->node->pmix->host == NULL)
        return 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(vars); i++)
        rc = set_number(env, vars[i].name, vars[i].value);
    if (rc == 0)
        rc = set_marks(t, env);
    return rc < 0 ? rc : pmix_host_env(j->node->pmix->host, j->job->nspace, t->rank, env);
}

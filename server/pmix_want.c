/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_want.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/strv.h"
#include "server/pmix_host.h"
#include "server/program_libs.h"

/* --- the program -------------------------------------------------------------------------------------------------- */

/* MPICH's is libmpi.so.12; 40 is Open MPI's from 3 to 5, with libmpi_mpifh.so.40 and the like for Fortran. */
static bool is_wanted(const char *name, bool direct)
{
    struct span s = span_of(name);

    if ((span_starts(s, "libmpi") && span_ends(s, ".so.40")) || span_starts(s, "liboshmem.so"))
        return true;
    return direct && span_starts(s, "libpmix.so"); /* otherwise another MPI may have it as one way among others */
}

static bool app_needs(const struct job *j, const struct job_app *a)
{
    char *path = NULL;
    bool needs;

    if (env_get(a->env, "FLUX_PMI_LIBRARY_PATH") != NULL || job_app_program(j, a, &path, NULL) < 0)
        return false;
    needs = program_needs(path, a->env, is_wanted);
    free(path);
    return needs;
}

static bool is_needed(const struct job *j)
{
    for (uint32_t i = 0; i < j->app_count; i++)
        if (app_needs(j, &j->app[i]))
            return true;
    return false;
}

/* --- names -------------------------------------------------------------------------------------------------------- */

struct named {
    const char *name;
    uint32_t node;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int c = strcmp(x->name, y->name);

    return c != 0 ? c : x->node < y->node ? -1 : 1;
}

static int set_host(char **out, const char *name, uint32_t node, bool again)
{
    if (!again)
        *out = strdup(name);
    else if (asprintf(out, "%s-%u", name, node) < 0)
        *out = NULL;
    return *out == NULL ? -ENOMEM : 0;
}

/* As in the list. Two nodes of one name, as when they are played or a host is listed twice, would be taken for one:
 * from the second on they have their number in it. */
static int set_hosts(const struct plan *plan, struct job *j)
{
    struct named *v = calloc(plan->node_count, sizeof(*v));
    int rc = 0;

    j->hosts = calloc(plan->node_count + 1u, sizeof(*j->hosts));
    if (v == NULL || j->hosts == NULL) {
        free(v);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < plan->node_count; i++)
        v[i] = (struct named){plan->node[i].host, i};
    qsort(v, plan->node_count, sizeof(*v), by_name);
    for (uint32_t i = 0; rc == 0 && i < plan->node_count; i++)
        rc = set_host(&j->hosts[v[i].node], v[i].name, v[i].node, i > 0 && strcmp(v[i].name, v[i - 1].name) == 0);
    free(v);
    return rc;
}

/* libpmix believes a client what user it says it is; the name is what others on the host do not know. */
static int set_namespace(struct job *j)
{
    uint64_t secret;

    if (getrandom(&secret, sizeof(secret), 0) != sizeof(secret))
        return -EIO;
    if (asprintf(&j->nspace, "%s.%016" PRIx64, j->kvsname, secret) < 0)
        j->nspace = NULL;
    return j->nspace == NULL ? -ENOMEM : 0;
}

int pmix_want(const struct conf *conf, const struct plan *plan, struct job *j, struct err *err)
{
    bool asked = conf->pmix == PMIX_MODE_YES;

    if (asked && conf->serve_count > 0)
        return err_set(err, -EINVAL, "--pmix=yes and --serve: ranks that come from elsewhere have PMI alone");
    if (conf->pmix == PMIX_MODE_NO || conf->serve_count > 0 || (!asked && !is_needed(j)))
        return 0;
    if (!pmix_host_is_built()) {
        if (asked)
            return err_set(err, -EINVAL, "--pmix=yes: this pmi-start was built without PMIx (libpmix-dev)");
        log_warn("%s needs PMIx, without which this pmi-start was built: each rank will be a job of its own",
                 j->app[0].argv[0]);
        return 0;
    }
    if (set_namespace(j) < 0 || set_hosts(plan, j) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    return 0;
}

int pmix_want_spawned(const struct job *first, const struct job *parent, uint32_t rank, struct job *j)
{
    if (first->nspace == NULL)
        return 0;
    if (asprintf(&j->nspace, "%s.%u", first->nspace, j->id) < 0)
        j->nspace = NULL;
    j->hosts = strv_dup(first->hosts);
    j->parent_nspace = parent->nspace == NULL ? NULL : strdup(parent->nspace);
    j->parent_rank = rank;
    return j->nspace == NULL || j->hosts == NULL || (parent->nspace != NULL && j->parent_nspace == NULL) ? -ENOMEM : 0;
}

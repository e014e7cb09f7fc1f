/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc.c - which resource manager's allocation this is, and whether it is asked for */
#include "conf/alloc.h"

#include <stdlib.h>
#include <string.h>
#include "common/strv.h"
#include "common/util.h"
#include "conf/option.h"

void alloc_done(struct alloc *a)
{
    hostlist_free(a->hosts);
    free(a->job);
    *a = (struct alloc){0};
}

const char *alloc_get(char *const *envp, const char *name)
{
    const char *value = env_get(envp, name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Slurm's where there is one: variables of others may be there for the scripts' sake, as by its wrappers for PBS. Else
 * that of the only other manager of which there is a trace. */
static int read_any(char *const *envp, struct alloc *out, struct err *err)
{
    static const struct {
        const char *name;
        int (*read)(char *const *envp, struct alloc *out, struct err *err);
    } manager[] = {{"Slurm", alloc_slurm},
                   {"PBS", alloc_pbs},
                   {"LSF", alloc_lsf},
                   {"Grid Engine", alloc_sge},
                   {"Flux", alloc_flux}};
    struct alloc a = {0};
    size_t found = 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && a.kind != ALLOC_SLURM && i < ARRAY_SIZE(manager); i++) {
        struct alloc more = {0};

        rc = manager[i].read(envp, &more, err);
        if (rc == 0 && more.kind != ALLOC_NONE && a.kind != ALLOC_NONE) {
            rc = err_set(err, -EINVAL, "this is job %s of %s and job %s of %s at once", a.job, manager[found].name,
                         more.job, manager[i].name);
            alloc_done(&more);
        } else if (rc == 0 && more.kind != ALLOC_NONE) {
            a = more;
            found = i;
        }
    }
    if (rc == 0)
        *out = a;
    else
        alloc_done(&a);
    return rc;
}

static int name_cmp(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* The first host that is not in `all`; NULL: there is none. -ENOMEM. */
static int find_stranger(const struct hostlist *hosts, const struct hostlist *all, const char **stranger)
{
    size_t count = hostlist_count(all);
    const char **names = calloc(count + 1, sizeof(*names));

    if (names == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        names[i] = hostlist_get(all, i).name;
    qsort(names, count, sizeof(*names), name_cmp);
    *stranger = NULL;
    for (size_t i = 0; *stranger == NULL && i < hostlist_count(hosts); i++) {
        const char *name = hostlist_get(hosts, i).name;

        if (bsearch(&name, names, count, sizeof(*names), name_cmp) == NULL)
            *stranger = name;
    }
    free(names);
    return 0;
}

/* It is ours. What is left of `a` is alloc_done()'s. */
static void take(struct conf *conf, struct alloc *a)
{
    conf->alloc = a->kind;
    conf->alloc_job = a->job;
    a->job = NULL;
    if (conf->hosts != NULL)
        return;
    conf->hosts = a->hosts;
    a->hosts = NULL;
}

static bool is_asked_for(const struct conf *conf)
{
    if (conf->serve_count > 0)
        return false;
    if (conf->action != ACTION_RUN && conf->action != ACTION_PRINT_HOSTS && conf->action != ACTION_PRINT_HOSTS_FOLDED)
        return false;
    switch (conf->bootstrap) {
    case BOOT_AUTO:
        return conf->hosts != NULL || conf->nodes == 0;
    case BOOT_SLURM:
        return true;
    case BOOT_RSH:
        return conf->hosts == NULL;
    default:
        return false;
    }
}

/* There is an allocation, and hosts were given: theirs is the first word. */
static int compare(struct conf *conf, struct alloc *a, struct err *err)
{
    const char *stranger = NULL;

    if (find_stranger(conf->hosts, a->hosts, &stranger) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    if (stranger == NULL)
        take(conf, a);
    else if (conf->bootstrap == BOOT_SLURM)
        return err_set(err, -EINVAL, "--bootstrap=slurm: host '%s' is not in the allocation of job %s",
                       quoted(span_of(stranger)).text, a->job);
    return 0;
}

int alloc_decide(struct conf *conf, char *const *envp, struct err *err)
{
    struct err why = {0};
    struct alloc a = {0};
    int rc;

    if (!is_asked_for(conf))
        return 0;
    rc = conf->bootstrap == BOOT_SLURM ? alloc_slurm(envp, &a, &why) : read_any(envp, &a, &why);
    if (rc == 0 && a.kind == ALLOC_NONE && conf->bootstrap != BOOT_SLURM && conf->hosts == NULL)
        rc = alloc_flux_instance(envp, &a, &why);
    if (rc == -EINVAL && conf->bootstrap == BOOT_AUTO) {
        if (conf->hosts != NULL) /* not known to be in any: so there is a login */
            return 0;
        return err_set(err, rc, "%s (--bootstrap=local runs here, without an allocation)", why.text);
    }
    if (rc < 0)
        return err_set(err, rc, "%s", why.text);
    if (a.kind == ALLOC_NONE && conf->bootstrap == BOOT_SLURM)
        rc = err_set(err, -EINVAL,
                     "--bootstrap=slurm works within an allocation of Slurm, and SLURM_JOB_ID is not set: "
                     "begin with salloc or sbatch");
    else if (a.kind != ALLOC_NONE && conf->hosts != NULL)
        rc = compare(conf, &a, err);
    else if (a.kind != ALLOC_NONE)
        take(conf, &a);
    alloc_done(&a);
    return rc;
}

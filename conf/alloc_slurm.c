/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc_slurm.c - a Slurm job, from what salloc, sbatch and srun put in the environment (see "OUTPUT ENVIRONMENT
 * VARIABLES" of their manuals) */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "common/num.h"
#include "common/strv.h"
#include "common/util.h"
#include "conf/alloc.h"
#include "conf/option.h"

/* The shell that salloc has on the first node where the site is set up so: a step, with all of the job's CPUs there, in
 * which srun leaves the job's counts as they are. */
#define INTERACTIVE_STEP "4294967290"

static bool is_in_step(char *const *envp)
{
    const char *id = alloc_get(envp, "SLURM_STEP_ID");

    return id != NULL && strcmp(id, INTERACTIVE_STEP) != 0;
}

static int contradicts(const char *name, const char *value, const char *other, const char *other_value, struct err *err)
{
    return err_set(err, -EINVAL, "%s is '%s', but %s is '%s'", name, quoted(span_of(value)).text, other,
                   quoted(span_of(other_value)).text);
}

struct var {
    const char *name;  /* under which it is there, for messages; that of today where it is not there */
    const char *value; /* NULL: not there */
};

/* A variable under its name of today and that of old, which must agree where both are there. */
static int get_either(char *const *envp, const char *name, const char *old, struct var *out, struct err *err)
{
    const char *value = alloc_get(envp, name), *old_value = alloc_get(envp, old);

    if (value != NULL && old_value != NULL && strcmp(value, old_value) != 0)
        return contradicts(name, value, old, old_value, err);
    *out = value != NULL || old_value == NULL ? (struct var){name, value} : (struct var){old, old_value};
    return 0;
}

/* "3" or "2(x3)" from the front of `*in`, and the comma behind it. */
static int next_count(struct span *in, uint64_t *count, uint64_t *times)
{
    const char *comma = memchr(in->p, ',', in->n);
    struct span item = {in->p, comma != NULL ? (size_t)(comma - in->p) : in->n};
    const char *open = memchr(item.p, '(', item.n);
    struct span digits = {item.p, open != NULL ? (size_t)(open - item.p) : item.n};

    *times = 1;
    if (num_u64(digits, 1, UINT32_MAX, count) < 0)
        return -EINVAL;
    if (open != NULL) {
        size_t left = item.n - digits.n;

        if (left < 4 || open[1] != 'x' || open[left - 1] != ')' ||
            num_u64((struct span){open + 2, left - 3}, 1, HOSTS_MAX, times) < 0)
            return -EINVAL;
    }
    if (comma != NULL && item.n + 1 == in->n)
        return -EINVAL; /* nothing behind the comma */
    *in = comma != NULL ? (struct span){comma + 1, in->n - item.n - 1} : (struct span){in->p + in->n, 0};
    return 0;
}

int alloc_slurm_slots(const struct hostlist *names, struct span text, unsigned per_slot, struct hostlist *out,
                      struct err *err)
{
    struct span left = text;
    uint64_t count = 0, times = 0;
    size_t hosts = hostlist_count(names);

    for (size_t i = 0; i < hosts; i++, times--) {
        unsigned slots;
        int rc;

        if (times == 0) {
            if (left.n == 0)
                return err_set(err, -EINVAL, "'%s' is for %zu nodes, but there are %zu", quoted(text).text, i, hosts);
            if (next_count(&left, &count, &times) < 0)
                return err_set(err, -EINVAL, "'%s' is no list of counts such as 2(x3),1", quoted(text).text);
        }
        if (count / per_slot > SLOTS_MAX)
            return err_set(err, -EINVAL, "'%s': more than %d on one node", quoted(text).text, SLOTS_MAX);
        slots = (unsigned)MAX(1, count / per_slot);
        rc = hostlist_add_host(out, span_of(hostlist_get(names, i).name), slots);
        if (rc < 0)
            return err_set(err, rc, rc == -ENOMEM ? "out of memory" : "'%s' is no name of a host",
                           quoted(span_of(hostlist_get(names, i).name)).text);
    }
    if (left.n > 0 || times > 0)
        return err_set(err, -EINVAL, "'%s' is for more than the %zu nodes that there are", quoted(text).text, hosts);
    return 0;
}

static int read_names(const struct var *list, struct hostlist **out, struct err *err)
{
    struct hostlist *names = hostlist_new();
    int rc = names == NULL ? err_set(err, -ENOMEM, "out of memory") : 0;

    if (rc == 0)
        rc = hostlist_add(names, span_of(list->value), NULL, NULL, err);
    for (size_t i = 0; rc == 0 && i < hostlist_count(names); i++) {
        struct host h = hostlist_get(names, i);

        if (h.slots > 0 || strchr(h.name, '@') != NULL)
            rc = err_set(err, -EINVAL, "'%s' is no list of Slurm's nodes", quoted(span_of(list->value)).text);
    }
    if (rc == 0)
        *out = names;
    else
        hostlist_free(names);
    return rc < 0 ? err_prefix(err, "%s", list->name) : rc;
}

/* How many nodes they say there are. SLURM_NNODES is the step's in a step. */
static int check_count(char *const *envp, const char *list_name, size_t hosts, bool in_step, struct err *err)
{
    struct var count = {"SLURM_JOB_NUM_NODES", alloc_get(envp, "SLURM_JOB_NUM_NODES")};
    uint64_t n;
    int rc = 0;

    if (!in_step)
        rc = get_either(envp, "SLURM_JOB_NUM_NODES", "SLURM_NNODES", &count, err);
    if (rc < 0 || count.value == NULL)
        return rc;
    if (num_u64(span_of(count.value), 1, HOSTS_MAX, &n) < 0 || n != hosts)
        return err_set(err, -EINVAL, "%s is '%s', but %s names %zu", count.name, quoted(span_of(count.value)).text,
                       list_name, hosts);
    return 0;
}

/* Within a step SLURM_TASKS_PER_NODE is the step's, so there the CPUs count. */
static int add_slots(char *const *envp, const char *job_name, const struct hostlist *names, struct alloc *a,
                     struct err *err)
{
    const char *name = a->in_step ? "SLURM_JOB_CPUS_PER_NODE" : "SLURM_TASKS_PER_NODE";
    const char *counts = alloc_get(envp, name), *per_task = alloc_get(envp, "SLURM_CPUS_PER_TASK");
    uint64_t per_slot = 1;
    int rc;

    if (counts == NULL)
        return err_set(err, -EINVAL, "%s is set, but %s is not", job_name, name);
    if (a->in_step && per_task != NULL && num_u64(span_of(per_task), 1, UINT32_MAX, &per_slot) < 0)
        return err_set(err, -EINVAL, "SLURM_CPUS_PER_TASK: '%s' is not a number from 1",
                       quoted(span_of(per_task)).text);
    rc = alloc_slurm_slots(names, span_of(counts), (unsigned)per_slot, a->hosts, err);
    return rc < 0 ? err_prefix(err, "%s", name) : 0;
}

/* Each of several tasks of a step would start everything. */
static int check_step(char *const *envp, struct err *err)
{
    const char *tasks = alloc_get(envp, "SLURM_STEP_NUM_TASKS");

    if (tasks == NULL || strcmp(tasks, "1") == 0)
        return 0;
    return err_set(err, -EINVAL,
                   "SLURM_STEP_NUM_TASKS is '%s': each of the tasks that srun has started would start the whole run; "
                   "leave out srun, or say srun -n1",
                   quoted(span_of(tasks)).text);
}

static int read_job(char *const *envp, const char *job_name, const struct var *list, struct alloc *a, struct err *err)
{
    struct hostlist *names = NULL;
    int rc = a->in_step ? check_step(envp, err) : 0;

    if (rc == 0)
        rc = read_names(list, &names, err);
    if (rc == 0)
        rc = check_count(envp, list->name, hostlist_count(names), a->in_step, err);
    if (rc == 0 && (a->hosts = hostlist_new()) == NULL)
        rc = err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        rc = add_slots(envp, job_name, names, a, err);
    hostlist_free(names);
    return rc;
}

int alloc_slurm(char *const *envp, struct alloc *out, struct err *err)
{
    const char *many = alloc_get(envp, "SLURM_HET_SIZE");
    struct var job, list = {"SLURM_JOB_NODELIST", alloc_get(envp, "SLURM_JOB_NODELIST")};
    struct alloc a = {.kind = ALLOC_SLURM, .in_step = is_in_step(envp)};
    uint64_t number;
    int rc = get_either(envp, "SLURM_JOB_ID", "SLURM_JOBID", &job, err);

    if (rc == 0 && (!a.in_step || list.value == NULL))
        rc = get_either(envp, "SLURM_JOB_NODELIST", "SLURM_NODELIST", &list, err);
    if (rc < 0)
        return rc;
    if (job.value == NULL && list.value == NULL) {
        *out = (struct alloc){0};
        return 0;
    }
    if (many != NULL) /* which has no list of all its nodes */
        return err_set(err, -EINVAL, "SLURM_HET_SIZE is '%s': a job of several components is not in this version",
                       quoted(span_of(many)).text);
    if (job.value == NULL || list.value == NULL)
        return err_set(err, -EINVAL, "%s is set, but %s is not", job.value != NULL ? job.name : list.name,
                       job.value != NULL ? list.name : job.name);
    if (num_u64(span_of(job.value), 1, UINT32_MAX, &number) < 0)
        return err_set(err, -EINVAL, "%s: '%s' is not the number of a job", job.name, quoted(span_of(job.value)).text);
    rc = read_job(envp, job.name, &list, &a, err);
    if (rc == 0 && (a.job = strdup(job.value)) == NULL)
        rc = err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        *out = a;
    else
        alloc_done(&a);
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc_files.c - allocations of PBS, LSF and Grid Engine: a file of hosts, or a variable, beside the job's number
 *
 * PBS_NODEFILE and LSB_DJOB_HOSTFILE have a host a line, once for each slot; LSB_MCPU_HOSTS has "host N host N";
 * PE_HOSTFILE has "host N queue processors" a line (see qsub(1B), LSF's reference of variables, sge_pe(5)).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/buf.h"
#include "common/limits.h"
#include "common/num.h"
#include "common/strv.h"
#include "common/util.h"
#include "conf/alloc.h"
#include "conf/option.h"

struct entry {
    struct span name;
    uint64_t slots;
    size_t first; /* where it stands in the text, among the entries */
};

struct entries {
    struct entry *v;
    size_t count, cap;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* From the front of `*in`; n 0: there is none. */
static struct span next_word(struct span *in)
{
    struct span word;

    while (in->n > 0 && is_blank(in->p[0]))
        *in = (struct span){in->p + 1, in->n - 1};
    word = (struct span){in->p, 0};
    while (word.n < in->n && !is_blank(in->p[word.n]))
        word.n++;
    *in = (struct span){in->p + word.n, in->n - word.n};
    return word;
}

static int add_entry(struct entries *e, struct span name, uint64_t slots)
{
    if (e->count == HOSTS_MAX)
        return -E2BIG;
    if (e->count == e->cap) {
        size_t cap = e->cap == 0 ? 64 : e->cap * 2;
        struct entry *more = realloc(e->v, cap * sizeof(*more));

        if (more == NULL)
            return -ENOMEM;
        e->v = more;
        e->cap = cap;
    }
    e->v[e->count] = (struct entry){name, slots, e->count};
    e->count++;
    return 0;
}

static int by_name(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int rc = memcmp(a->name.p, b->name.p, MIN(a->name.n, b->name.n));

    if (rc == 0)
        rc = (a->name.n > b->name.n) - (a->name.n < b->name.n);
    return rc != 0 ? rc : (a->first > b->first) - (a->first < b->first);
}

static int by_place(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;

    return (a->first > b->first) - (a->first < b->first);
}

/* Each host once, where it stood first, with the slots of all its entries. */
static void merge(struct entries *e)
{
    size_t kept = 0;

    if (e->count == 0)
        return;
    qsort(e->v, e->count, sizeof(*e->v), by_name);
    for (size_t i = 1; i < e->count; i++) {
        if (span_eq(e->v[kept].name, e->v[i].name))
            e->v[kept].slots += e->v[i].slots;
        else
            e->v[++kept] = e->v[i];
    }
    e->count = kept + 1;
    qsort(e->v, e->count, sizeof(*e->v), by_place);
}

static int add_hosts(const struct entries *e, struct hostlist *out, struct err *err)
{
    for (size_t i = 0; i < e->count; i++) {
        struct quoted name = quoted(e->v[i].name);
        int rc;

        if (e->v[i].slots > SLOTS_MAX)
            return err_set(err, -EINVAL, "'%s' has more than %d slots", name.text, SLOTS_MAX);
        rc = hostlist_add_host(out, e->v[i].name, (unsigned)e->v[i].slots);
        if (rc == -ENOMEM)
            return err_set(err, rc, "out of memory");
        if (rc < 0)
            return err_set(err, -EINVAL, "'%s' is no name of a host", name.text);
    }
    return e->count > 0 ? 0 : err_set(err, -EINVAL, "there is no host in it");
}

/* A name and, unless `format` has none, a number behind it; what follows in the line is only for ALLOC_QUEUES. */
static int read_entry(struct entries *e, struct span line, enum alloc_format format, struct span *left, struct err *err)
{
    struct span name = next_word(&line), number = {0};
    uint64_t slots = 1;
    int rc;

    if (name.n > 0 && format != ALLOC_REPEATED)
        number = next_word(&line);
    *left = line;
    if (name.n == 0)
        return 0;
    if (format != ALLOC_REPEATED && number.n == 0)
        return err_set(err, -EINVAL, "behind '%s' a number of slots is missing", quoted(name).text);
    if (format != ALLOC_REPEATED && num_u64(number, 1, SLOTS_MAX, &slots) < 0)
        return err_set(err, -EINVAL, "'%s' behind '%s' is no number of slots, 1 to %d", quoted(number).text,
                       quoted(name).text, SLOTS_MAX);
    if (format == ALLOC_REPEATED && next_word(left).n > 0)
        return err_set(err, -EINVAL, "'%s' is not alone in its line", quoted(name).text);
    rc = add_entry(e, name, slots);
    return rc < 0 ? err_set(err, rc == -E2BIG ? -EINVAL : rc, rc == -E2BIG ? "too many hosts" : "out of memory") : 0;
}

int alloc_hosts(struct span text, enum alloc_format format, struct hostlist *out, struct err *err)
{
    struct entries e = {0};
    int rc = 0;

    while (rc == 0 && text.n > 0) {
        const char *nl = format == ALLOC_PAIRS ? NULL : memchr(text.p, '\n', text.n);
        size_t n = nl != NULL ? (size_t)(nl - text.p) : text.n;
        struct span left;

        rc = read_entry(&e, (struct span){text.p, n}, format, &left, err);
        if (format == ALLOC_PAIRS)
            text = left;
        else
            text = (struct span){text.p + n + (nl != NULL), text.n - n - (nl != NULL)};
    }
    if (rc == 0) {
        merge(&e);
        rc = add_hosts(&e, out, err);
    }
    free(e.v);
    return rc;
}

/* --- managers --- */

static int hosts_of_text(struct span text, enum alloc_format format, struct hostlist **out, struct err *err)
{
    struct hostlist *hl = hostlist_new();
    int rc = hl == NULL ? err_set(err, -ENOMEM, "out of memory") : alloc_hosts(text, format, hl, err);

    if (rc == 0)
        *out = hl;
    else
        hostlist_free(hl);
    return rc;
}

static int hosts_of_file(const char *path, enum alloc_format format, struct hostlist **out, struct err *err)
{
    struct buf bytes;
    int rc;

    buf_init(&bytes, 0);
    rc = file_read(path, HOSTFILE_BYTES_MAX, &bytes, err);
    if (rc == 0)
        rc = hosts_of_text(buf_span(&bytes), format, out, err);
    buf_done(&bytes);
    if (rc < 0) {
        err_prefix(err, "'%s'", quoted(span_of(path)).text);
        return rc == -ENOMEM ? rc : -EINVAL; /* a file that is not there, too: it was promised */
    }
    return 0;
}

/* Both are there, or none (0, and `*job` is NULL). */
static int job_and(char *const *envp, const char *job_name, const char *name, const char **job, const char **value,
                   struct err *err)
{
    *job = alloc_get(envp, job_name);
    *value = alloc_get(envp, name);
    if ((*job == NULL) == (*value == NULL))
        return 0;
    return err_set(err, -EINVAL, "%s is set, but %s is not", *job != NULL ? job_name : name,
                   *job != NULL ? name : job_name);
}

static int finish(struct alloc *a, enum alloc_kind kind, const char *job, const char *name, int rc, struct alloc *out,
                  struct err *err)
{
    if (rc < 0)
        return err_prefix(err, "%s", name);
    a->kind = kind;
    a->job = strdup(job);
    if (a->job == NULL) {
        alloc_done(a);
        return err_set(err, -ENOMEM, "out of memory");
    }
    *out = *a;
    return 0;
}

int alloc_pbs(char *const *envp, struct alloc *out, struct err *err)
{
    const char *job, *path;
    struct alloc a = {0};
    int rc = job_and(envp, "PBS_JOBID", "PBS_NODEFILE", &job, &path, err);

    if (rc < 0 || job == NULL)
        return rc;
    rc = hosts_of_file(path, ALLOC_REPEATED, &a.hosts, err);
    return finish(&a, ALLOC_PBS, job, "PBS_NODEFILE", rc, out, err);
}

static int host_cmp(const void *x, const void *y)
{
    return strcmp(((const struct host *)x)->name, ((const struct host *)y)->name);
}

static struct host *sorted(const struct hostlist *hl)
{
    size_t n = hostlist_count(hl);
    struct host *v = calloc(n + 1, sizeof(*v));

    for (size_t i = 0; v != NULL && i < n; i++)
        v[i] = hostlist_get(hl, i);
    if (v != NULL)
        qsort(v, n, sizeof(*v), host_cmp);
    return v;
}

static bool is_same(const struct hostlist *a, const struct hostlist *b, int *rc)
{
    struct host *x = sorted(a), *y = sorted(b);
    bool same = hostlist_count(a) == hostlist_count(b);

    *rc = x == NULL || y == NULL ? -ENOMEM : 0;
    for (size_t i = 0; *rc == 0 && same && i < hostlist_count(a); i++)
        same = strcmp(x[i].name, y[i].name) == 0 && x[i].slots == y[i].slots;
    free(x);
    free(y);
    return same;
}

/* The file and LSB_MCPU_HOSTS say the same, in whatever order. On failure the hosts of `a` are gone. */
static int same_as(struct alloc *a, struct span pairs, struct err *err)
{
    struct hostlist *other = NULL;
    int rc = hosts_of_text(pairs, ALLOC_PAIRS, &other, err);
    bool same = rc == 0 && is_same(a->hosts, other, &rc);

    if (other == NULL)
        err_prefix(err, "LSB_MCPU_HOSTS");
    else if (rc == -ENOMEM)
        err_set(err, rc, "out of memory");
    else if (!same)
        rc = err_set(err, -EINVAL, "LSB_MCPU_HOSTS is '%s', which are other hosts or slots", quoted(pairs).text);
    hostlist_free(other);
    if (rc < 0)
        alloc_done(a);
    return rc;
}

int alloc_lsf(char *const *envp, struct alloc *out, struct err *err)
{
    const char *file = alloc_get(envp, "LSB_DJOB_HOSTFILE"), *job, *value;
    const char *name = file != NULL ? "LSB_DJOB_HOSTFILE" : "LSB_MCPU_HOSTS";
    struct alloc a = {0};
    int rc = job_and(envp, "LSB_JOBID", name, &job, &value, err);

    if (rc < 0 || job == NULL)
        return rc;
    if (file != NULL)
        rc = hosts_of_file(file, ALLOC_REPEATED, &a.hosts, err);
    else
        rc = hosts_of_text(span_of(value), ALLOC_PAIRS, &a.hosts, err);
    if (rc == 0 && file != NULL && (value = alloc_get(envp, "LSB_MCPU_HOSTS")) != NULL)
        rc = same_as(&a, span_of(value), err);
    return finish(&a, ALLOC_LSF, job, name, rc, out, err);
}

/* JOB_ID alone is too common a name to mean anything. */
int alloc_sge(char *const *envp, struct alloc *out, struct err *err)
{
    const char *path = alloc_get(envp, "PE_HOSTFILE"), *slots = alloc_get(envp, "NSLOTS"), *job;
    struct alloc a = {0};
    uint64_t sum = 0, n;
    int rc;

    if (path == NULL)
        return 0;
    rc = job_and(envp, "JOB_ID", "PE_HOSTFILE", &job, &path, err);
    if (rc < 0)
        return rc;
    rc = hosts_of_file(path, ALLOC_QUEUES, &a.hosts, err);
    for (size_t i = 0; rc == 0 && i < hostlist_count(a.hosts); i++)
        sum += hostlist_get(a.hosts, i).slots;
    if (rc == 0 && slots != NULL && (num_u64(span_of(slots), 1, UINT32_MAX, &n) < 0 || n != sum)) {
        rc = err_set(err, -EINVAL, "'%s' has %" PRIu64 " slots, but NSLOTS is '%s'", quoted(span_of(path)).text, sum,
                     quoted(span_of(slots)).text);
        alloc_done(&a);
    }
    return finish(&a, ALLOC_SGE, job, "PE_HOSTFILE", rc, out, err);
}

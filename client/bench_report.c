/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/bench_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/num.h"

/* All that one rank has to tell. */
struct figures {
    struct summary of[MEASURES];
    uint64_t faults, cpu_user_us, cpu_sys_us;
};

/* How lines begin, and of how many ranks they tell. */
struct page {
    const struct team *team;
    const struct bench_opts *opts;
    int ranks;
};

static const char *command_name(enum bench_command c)
{
    static const char *const names[] = {
        [BENCH_GET] = "get",         [BENCH_BARRIER] = "barrier", [BENCH_EXCHANGE] = "exchange",
        [BENCH_PUT_GET] = "put-get", [BENCH_SPAWN] = "spawn",
    };

    return names[c];
}

static double us(uint64_t ns)
{
    return (double)ns / 1e3;
}

static void begin_line(const struct page *p, const char *measure)
{
    const struct talk_job *job = &p->team->job;

    if (p->opts->is_json)
        printf("{\"command\":\"%s\",\"pmi\":\"%s\",\"rank\":%d,\"ranks\":%d,\"size\":%d,\"sessions\":%" PRIu32
               ",\"value_size\":%zu,\"measure\":\"%s\"",
               command_name(p->opts->command), job->kind->name, job->rank, p->ranks, job->size, p->team->count,
               p->opts->value_size, measure);
    else if (p->ranks == 1 && job->size > 1)
        printf("rank %d: %s:", job->rank, measure);
    else
        printf("%s:", measure);
}

static void print_measure(const struct page *p, enum measure m, const struct summary *s)
{
    begin_line(p, measure_name(m));
    printf(p->opts->is_json ? ",\"count\":%" PRIu64
                              ",\"min_us\":%.3f,\"median_us\":%.3f,\"mean_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f}\n"
                            : " count %" PRIu64
                              ", min %.2f us, median %.2f us, mean %.2f us, p99 %.2f us, max %.2f us\n",
           s->count, us(s->min), us(s->median), us(s->mean), us(s->p99), us(s->max));
}

static void print_figures(const struct page *p, const struct figures *f)
{
    bool is_measured = false;

    for (int m = MEASURE_NONE + 1; m < MEASURES; m++) {
        /* Opening is not what a measurement is about, unless it opens many. */
        if (f->of[m].count == 0 || (m == MEASURE_OPEN && p->team->count == 1))
            continue;
        print_measure(p, (enum measure)m, &f->of[m]);
        is_measured = true;
    }
    if (!is_measured)
        return;
    begin_line(p, "cpu");
    printf(p->opts->is_json ? ",\"user_s\":%.6f,\"system_s\":%.6f,\"faults\":%" PRIu64 "}\n"
                            : " user %.3f s, system %.3f s, of the clients; %" PRIu64 " faults\n",
           (double)f->cpu_user_us / 1e6, (double)f->cpu_sys_us / 1e6, f->faults);
}

static void collect_own(const struct team *t, struct figures *f)
{
    for (int m = 0; m < MEASURES; m++)
        stats_sum(&t->stats[m], &f->of[m]);
    f->faults = t->faults;
    f->cpu_user_us = t->cpu_user_us;
    f->cpu_sys_us = t->cpu_sys_us;
}

/* As text, which is sent as a value. The last three go as the numbers of one more summary. */
static int write_figures(struct buf *out, const struct figures *f)
{
    const struct summary rest = {.count = f->faults, .min = f->cpu_user_us, .max = f->cpu_sys_us};
    int rc = 0;

    for (int m = MEASURE_NONE + 1; m < MEASURES; m++)
        rc |= summary_write(out, &f->of[m]);
    return rc | summary_write(out, &rest);
}

static int read_figures(struct span text, struct figures *f)
{
    struct summary rest;

    for (int m = MEASURE_NONE + 1; m < MEASURES; m++)
        if (summary_read(&text, &f->of[m]) < 0)
            return -EPROTO;
    if (summary_read(&text, &rest) < 0)
        return -EPROTO;
    f->faults = rest.count;
    f->cpu_user_us = rest.min;
    f->cpu_sys_us = rest.max;
    return 0;
}

static void merge(const struct figures *each, int ranks, struct summary *room, struct figures *all)
{
    *all = (struct figures){0};
    for (int m = MEASURE_NONE + 1; m < MEASURES; m++) {
        for (int r = 0; r < ranks; r++)
            room[r] = each[r].of[m];
        summary_merge(room, (size_t)ranks, &all->of[m]);
    }
    for (int r = 0; r < ranks; r++) {
        all->faults += each[r].faults;
        all->cpu_user_us += each[r].cpu_user_us;
        all->cpu_sys_us += each[r].cpu_sys_us;
    }
}

static void figures_key(int rank, char key[PMI_KEY_MAX])
{
    snprintf(key, PMI_KEY_MAX, "bench-figures.%d", rank);
}

/* Rank 0: one rank's figures. */
static int fetch(struct team *t, int rank, struct figures *f, struct err *err)
{
    char key[PMI_KEY_MAX];
    struct talk_request get = {.op = TALK_GET, .key = key};
    struct talk_answer a;
    int rc;

    figures_key(rank, key);
    rc = talk_do(team_first(t), &get, &a, err);
    if (rc < 0)
        return rc;
    if (a.rc != 0 || a.value.p == NULL || read_figures(a.value, f) < 0) {
        *f = (struct figures){0};
        team_fault(t, "key %s: what was put there is not what is got (rc=%d)", key, a.rc);
    }
    return 0;
}

static int print_all(struct team *t, const struct bench_opts *o, struct err *err)
{
    const struct page page = {t, o, t->job.size};
    size_t size = (size_t)t->job.size;
    struct figures *each = calloc(size, sizeof(*each)), all;
    struct summary *room = calloc(size, sizeof(*room));
    int rc = each == NULL || room == NULL ? err_set(err, -ENOMEM, "no room for %zu ranks' figures", size) : 0;

    for (int r = 0; rc == 0 && r < t->job.size; r++)
        rc = fetch(t, r, &each[r], err);
    if (rc == 0) {
        merge(each, t->job.size, room, &all);
        print_figures(&page, &all);
        t->faults = all.faults + (t->faults - each[0].faults);
    }
    free(each);
    free(room);
    return rc;
}

int report(struct team *t, const struct bench_opts *o, struct err *err)
{
    static const struct talk_request barrier = {.op = TALK_BARRIER};
    const struct page page = {t, o, 1};
    char key[PMI_KEY_MAX];
    struct talk_request put = {.op = TALK_PUT, .key = key};
    struct figures own = {0};
    struct talk_answer a;
    struct buf text = {0};
    int rc;

    figures_key(t->job.rank, key);
    collect_own(t, &own);
    if (o->is_verbose)
        print_figures(&page, &own);
    if (write_figures(&text, &own) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    put.value = buf_span(&text);
    rc = talk_do(team_first(t), &put, &a, err);
    if (rc == 0 && a.rc != 0)
        team_fault(t, "put of key %s failed: rc=%d", key, a.rc);
    buf_done(&text);
    if (rc == 0)
        rc = talk_do(team_first(t), &barrier, &a, err);
    if (rc == 0 && a.rc != 0)
        team_fault(t, "barrier failed: rc=%d", a.rc);
    return rc == 0 && t->job.rank == 0 ? print_all(t, o, err) : rc;
}

/* What the server itself says, if it does. */
static int print_attr(struct team *t, const char *key, struct err *err)
{
    const struct talk_request get = {.op = TALK_ATTR, .key = key};
    struct talk_answer a;
    int rc = talk_do(team_first(t), &get, &a, err);

    if (rc == 0 && a.rc == 0)
        printf("%s: %.*s\n", key, (int)a.value.n, a.value.n > 0 ? a.value.p : "");
    else if (rc == 0)
        printf("%s: not known (rc=%d)\n", key, a.rc);
    return rc;
}

int report_info(struct team *t, const struct bench_opts *o, struct err *err)
{
    const struct talk_job *job = &t->job;
    char universe[24] = "unknown";

    if (job->rank != 0 && !o->is_verbose)
        return 0;
    if (job->universe >= 0)
        snprintf(universe, sizeof(universe), "%d", job->universe);
    printf("speaks: %s\n", job->kind->name);
    printf("task: rank %d of %d, application %d, universe %s%s\n", job->rank, job->size, job->appnum, universe,
           job->is_spawned ? ", spawned" : "");
    printf("key-value space: %s, keys of at most %u bytes, values of at most %u\n", job->name, job->key_most,
           job->value_most);
    return print_attr(t, "PMI_process_mapping", err);
}

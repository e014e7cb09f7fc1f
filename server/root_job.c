/* SPDX-License-Identifier: BSD-3-Clause */
/* root_job.c - the launcher's account of the jobs of the run: their ranks, names and ends */
#include <stdio.h>
#include <stdlib.h>
#include "common/io/log.h"
#include "server/root_priv.h"

static void job_account_free(struct root_job *j)
{
    job_free(j->job);
    free(j->node_of);
    free(j->ended);
    free(j->blamed);
    free(j->addr);
    free(j->errcodes);
    free(j->started);
    free(j);
}

/* Room for one more number: that of a power of two doubles it. */
static int make_room(struct root *r)
{
    struct root_job **more;

    if ((r->next_job & (r->next_job - 1)) != 0)
        return 0;
    more = realloc(r->job_at, (r->next_job == 0 ? 1 : 2 * (size_t)r->next_job) * sizeof(*more));
    if (more == NULL)
        return -ENOMEM;
    r->job_at = more;
    return 0;
}

struct root_job *root_job_new(struct root *r, struct job *job)
{
    struct root_job *j = make_room(r) < 0 ? NULL : calloc(1, sizeof(*j));

    if (j == NULL) {
        job_free(job);
        return NULL;
    }
    *j = (struct root_job){.root = r, .job = job, .id = r->next_job, .size = job->size, .base = r->task_total};
    j->node_of = job_node_of(job);
    j->ended = calloc(job->size, sizeof(*j->ended));
    j->blamed = calloc(job->size, sizeof(*j->blamed));
    j->errcodes = calloc(job->size, sizeof(*j->errcodes));
    j->started = calloc(job->size, sizeof(*j->started));
    if (j->node_of == NULL || j->ended == NULL || j->blamed == NULL || j->errcodes == NULL || j->started == NULL) {
        job_account_free(j);
        return NULL;
    }
    job->id = j->id;
    r->job_at[r->next_job++] = j;
    r->jobs_live++;
    if (job->connect != CONNECT_SERVE) /* else there is no output of theirs */
        r->task_total += job->size;
    j->next = r->jobs;
    r->jobs = j;
    return j;
}

void root_jobs_free(struct root *r)
{
    struct root_job *next;

    for (struct root_job *j = r->jobs; j != NULL; j = next) {
        next = j->next;
        job_account_free(j);
    }
    free(r->job_at);
}

struct root_job *root_job_numbered(const struct root *r, uint64_t id)
{
    return id < r->next_job ? r->job_at[id] : NULL;
}

struct root_job *root_job_of(const struct root *r, const struct msg_in *m)
{
    uint64_t id;

    return msg_get_u64(m, "job", 0, UINT32_MAX, &id, NULL) < 0 ? NULL : root_job_numbered(r, id);
}

struct msg_out *root_job_map(const struct root_job *j)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL)
        msg_put_u64(m, "job", j->id);
    return m;
}

const char *root_host(const struct root_job *j, uint32_t rank)
{
    return rank < j->size ? j->root->plan->node[j->node_of[rank]].host : "?";
}

void root_who(const struct root_job *j, uint32_t rank, uint32_t pid, char *out, size_t size)
{
    char job[24] = "", process[24] = "";

    if (j == j->root->served || (j->id == 0 && j->root->conf->serve_count > 0)) {
        root_serve_who(j, rank, pid, out, size);
        return;
    }
    if (j->id > 0)
        snprintf(job, sizeof(job), " of job %u", j->id);
    if (pid != 0)
        snprintf(process, sizeof(process), " (pid %u)", pid);
    snprintf(out, size, "rank %u%s on %s%s", rank, job, root_host(j, rank), process);
}

void root_rank_name(const struct root_job *j, uint32_t rank, char *out, size_t size)
{
    if (j->id > 0 && j != j->root->served)
        snprintf(out, size, "%u.%u", j->id, rank);
    else
        snprintf(out, size, "%u", rank);
}

const struct root_job *root_job_at(const struct root *r, uint32_t task, uint32_t *rank)
{
    const struct root_job *j = r->jobs; /* the newest first, which are the last tasks */

    while (j->next != NULL && task < j->base)
        j = j->next;
    *rank = task - j->base;
    return j;
}

/* Lost before it was whole. */
static void answer_late(struct root_job *j)
{
    for (uint32_t i = 0; j->state == JOB_STARTING && i < j->size; i++)
        if (j->errcodes[i] == 0)
            j->errcodes[i] = 1;
    root_spawn_answer(j);
}

static void job_ended(struct root_job *j)
{
    struct root *r = j->root;

    r->jobs_live--;
    if (j->id > 0)
        answer_late(j);
    j->state = JOB_OVER;
    if (r->phase < ROOT_RUNNING)
        return;
    if (r->jobs_live == 0) {
        root_drain(r);
    } else if (j != r->first) {
        root_send_map(r, MSG_JOB_OVER, root_job_map(j), false);
        job_free(j->job);
        j->job = NULL;
    }
}

void root_mark_ended(struct root_job *j, uint32_t rank)
{
    if (j->ended[rank])
        return;
    j->ended[rank] = true;
    if (j->id == 0)
        root_input_rank_ended(j->root->input, rank);
    if (++j->ended_count == j->size)
        job_ended(j);
}

void root_job_over(struct root_job *j)
{
    for (uint32_t rank = 0; rank < j->size; rank++)
        root_mark_ended(j, rank);
}

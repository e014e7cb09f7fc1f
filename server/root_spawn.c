/* SPDX-License-Identifier: BSD-3-Clause */
/* root_spawn.c - what tasks ask of the whole run: further jobs, and names
 *
 * A job is spawned as the first one is started: job, ready, go. The asker is answered once every task of it has come to
 * its exec, or could not: then nothing of the job is left, and the answer says which tasks it was.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/log.h"
#include "server/pmix_want.h"
#include "server/root_priv.h"
#include "server/session.h"
#include "server/spawn_job.h"

static int read_asker(const struct root *r, const struct msg_in *m, struct root_asker *a, struct err *err)
{
    int rc;

    if ((rc = msg_get_u64(m, "place", 0, r->first->job->places - 1, &a->place, err)) < 0 ||
        (rc = msg_get_u64(m, "job", 0, UINT32_MAX, &a->job, err)) < 0 ||
        (rc = msg_get_u64(m, "rank", 0, TASKS_MAX, &a->rank, err)) < 0 ||
        (rc = msg_get_u64(m, "set", 0, UINT32_MAX, &a->set, err)) < 0)
        return rc;
    return msg_get_u64(m, "req", 0, UINT32_MAX, &a->req, err);
}

static struct msg_out *answer_map(const struct root_asker *a, int rc)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_u64(m, "place", a->place);
        msg_put_u64(m, "job", a->job);
        msg_put_u64(m, "rank", a->rank);
        msg_put_u64(m, "set", a->set);
        msg_put_u64(m, "req", a->req);
        msg_put_i64(m, "rc", rc);
    }
    return m;
}

/* --- spawn ------------------------------------------------------------------------------------------------------ */

static void refuse(struct root *r, const struct root_job *asking, const struct root_asker *a, const struct err *err)
{
    char name[300];

    root_who(asking, (uint32_t)a->rank, 0, name, sizeof(name));
    log_warn("%s: its request to spawn is refused: %s", name, err->text);
    root_send_map(r, MSG_SPAWNED, answer_map(a, err->code), false);
}

void root_spawn_answer(struct root_job *j)
{
    struct msg_out *m;

    if (j->answered)
        return;
    j->answered = true;
    m = answer_map(&j->asker, 0);
    if (m != NULL) {
        msg_put_str(m, "kvsname", j->job->kvsname);
        msg_put_str(m, "nspace", j->job->nspace);
        msg_put_u32v(m, "errcodes", j->errcodes, j->size);
    }
    root_send_map(j->root, MSG_SPAWNED, m, false);
}

static int send_job(struct root_job *j, struct err *err)
{
    struct buf body;
    int rc;

    buf_init(&body, MESSAGE_MAX);
    rc = job_pack(j->job, &body);
    if (rc == 0)
        j->root->ops->send(MSG_JOB, buf_span(&body), false, j->root->arg);
    else
        err_set(err, rc, rc == -E2BIG ? "the environment and arguments are too large" : "out of memory");
    buf_done(&body);
    return rc;
}

static int begin(struct root *r, const struct root_job *asking, const struct root_asker *a, const struct msg_in *m,
                 struct err *err)
{
    struct spawn_want want = {0};
    struct spawn_base base = {.plan = r->plan,
                              .first = r->first->job,
                              .number = r->next_job,
                              .next_node = &r->spawn_node,
                              .spawner = asking->job->kvsname};
    struct root_job *j;
    struct job *job = NULL;
    int rc = spawn_want_unpack(m, &want, err);

    if (rc < 0)
        return rc;
    if (r->task_total + (uint64_t)spawn_want_tasks(&want) > TASKS_MAX)
        rc = err_set(err, -ENOSPC, "no more than %u tasks in one run", TASKS_MAX);
    if (rc == 0)
        rc = spawn_job_make(&base, &want, &job, err);
    spawn_want_done(&want);
    if (rc < 0)
        return rc;
    rc = outmux_grow(r->out, job->size, err);
    if (rc < 0) {
        job_free(job);
        return rc;
    }
    job->id = r->next_job;
    rc = pmix_want_spawned(r->first->job, asking->job, (uint32_t)a->rank, job);
    if (rc < 0) {
        job_free(job);
        return err_set(err, rc, "out of memory");
    }
    j = root_job_new(r, job);
    if (j == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    j->asker = *a;
    for (uint32_t place = 1; place < j->job->places; place++)
        if (r->place_lost[place])
            root_lose_ranks(j, place);
    rc = send_job(j, err);
    if (rc < 0) {
        j->answered = true; /* by the caller */
        root_job_over(j);
    }
    return rc;
}

int root_spawn(struct root *r, const struct msg_in *m, struct err *err)
{
    const struct root_job *asking = root_job_of(r, m);
    struct err why = {0};
    struct root_asker a;
    int rc = read_asker(r, m, &a, err);

    if (rc < 0)
        return rc;
    if (asking == NULL || a.rank >= asking->size)
        return err_set(err, -EPROTO, "there is no such rank");
    /* When the run ends its tasks are ended, and nobody waits for an answer. */
    if (r->phase == ROOT_RUNNING && asking->job != NULL && begin(r, asking, &a, m, &why) < 0)
        refuse(r, asking, &a, &why);
    return 0;
}

/* The first that is wrong with it is said; which tasks it concerns goes to the asker. */
static void note_failure(struct root_job *j, uint32_t rank, uint32_t code, const char *text)
{
    char name[300];

    if (!j->failed) {
        root_who(j, rank, 0, name, sizeof(name));
        log_warn("%s: cannot be spawned: %s", name, text);
    }
    j->failed = true;
    j->errcodes[rank] = code;
}

/* No ranks: a node can have nothing of the job. */
static int note_failures(struct root_job *j, const struct msg_in *m, uint32_t code, const char *text, struct err *err)
{
    uint32_t *ranks;
    size_t count;
    int rc = msg_get_u32v(m, "ranks", j->size, &ranks, &count, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++)
        if (ranks[i] < j->size)
            note_failure(j, ranks[i], code, text);
    for (uint32_t rank = 0; count == 0 && rank < j->size; rank++)
        note_failure(j, rank, code, text);
    if (count == 0)
        root_job_over(j);
    free(ranks);
    return 0;
}

int root_spawn_refused(struct root_job *j, const struct msg_in *m, struct err *err)
{
    char *text = NULL;
    uint64_t status;
    int rc;

    if (j->state != JOB_PREPARING)
        return 0;
    if ((rc = msg_get_u64(m, "status", 1, 255, &status, err)) < 0 || (rc = msg_get_str(m, "text", &text, err)) < 0)
        return rc;
    rc = note_failures(j, m, (uint32_t)status, text, err);
    free(text);
    return rc;
}

void root_spawn_ready(struct root_job *j)
{
    if (j->state != JOB_PREPARING)
        return;
    if (j->failed || j->root->phase != ROOT_RUNNING) {
        root_job_over(j);
        return;
    }
    j->state = JOB_STARTING;
    root_send_map(j->root, MSG_GO, root_job_map(j), false);
}

/* Some run, some could not be started: MPI has no use for a part of a job. */
static void end_part(struct root_job *j)
{
    struct msg_out *m = root_job_map(j);

    if (m != NULL)
        msg_put_u64(m, "signal", SIGKILL);
    root_send_map(j->root, MSG_SIGNAL, m, false);
}

static void note_started(struct root_job *j, uint32_t rank)
{
    j->started_count += !j->started[rank];
    j->started[rank] = true;
}

static void check_started(struct root_job *j)
{
    if (j->started_count < j->size)
        return;
    j->state = JOB_RUNNING;
    if (j->failed)
        end_part(j);
    root_spawn_answer(j);
}

int root_spawn_started(struct root_job *j, const struct msg_in *m, struct err *err)
{
    char *text = NULL;
    uint64_t place;
    int rc;

    if (j->state != JOB_STARTING)
        return 0;
    rc = msg_get_u64(m, "place", 0, j->job->places - 1, &place, err);
    if (rc == 0 && msg_get_str(m, "text", &text, NULL) == 0)
        rc = note_failures(j, m, 126, text, err);
    free(text);
    if (rc < 0 || j->state != JOB_STARTING)
        return rc;
    for (uint32_t rank = 0; rank < j->size; rank++)
        if (j->node_of[rank] == j->job->node_at[place])
            note_started(j, rank);
    check_started(j);
    return 0;
}

void root_spawn_lost(struct root_job *j, uint32_t rank)
{
    /* That the host is lost has been said. */
    if (j->state < JOB_RUNNING && !j->started[rank]) {
        j->failed = true;
        j->errcodes[rank] = EXIT_HOST;
    }
    if (j->state == JOB_STARTING)
        note_started(j, rank);
    if (j->state == JOB_PREPARING) /* ended by the other nodes' being ready */
        return;
    root_mark_ended(j, rank);
    if (j->state == JOB_STARTING)
        check_started(j);
}

/* --- names ------------------------------------------------------------------------------------------------------ */

int root_name(struct root *r, const struct msg_in *m, struct err *err)
{
    struct span service, port = SPAN_NONE;
    struct root_asker a;
    struct msg_out *out;
    uint64_t op;
    int rc;

    if ((rc = read_asker(r, m, &a, err)) < 0 ||
        (rc = msg_get_u64(m, "op", SESSION_PUBLISH, SESSION_UNPUBLISH, &op, err)) < 0 ||
        (rc = msg_get_bin(m, "service", &service, err)) < 0)
        return rc;
    (void)msg_get_bin(m, "port", &port, NULL);
    if (op == SESSION_PUBLISH)
        rc = names_publish(r->names, service, port);
    else if (op == SESSION_LOOKUP)
        rc = names_lookup(r->names, service, &port);
    else
        rc = names_unpublish(r->names, service);
    out = answer_map(&a, rc);
    if (out != NULL && rc == 0 && op == SESSION_LOOKUP)
        msg_put_bin(out, "port", port);
    root_send_map(r, MSG_NAMED, out, false);
    return 0;
}

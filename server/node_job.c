/* SPDX-License-Identifier: BSD-3-Clause */
/* node_job.c - a job on this node: its message, checks before the start, failures, the end */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include "common/io/log.h"
#include "conf/conf.h"
#include "server/node_edge.h"
#include "server/node_pmix.h"

#define MANY_PLACES 256

struct msg_out *node_job_map(const struct node_job *j)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL)
        msg_put_u64(m, "job", j->job->id);
    return m;
}

/* --- life ------------------------------------------------------------------------------------------------------- */

void node_job_unref(struct node_job *j)
{
    struct node *n = j->node;

    assert(j->handles > 0);
    if (--j->handles > 0)
        return;
    node_tasks_free(j);
    node_edges_done(j); /* which holds the keys */
    kvs_free(j->kvs);
    attrs_free(j->attrs);
    barriers_free(j->barriers);
    ringer_free(j->ringer);
    job_free(j->job);
    tree_free(j->tree);
    node_pmix_job_free(j);
    free(j->kid_ranks);
    free(j->kid_ready);
    free(j->place_of);
    free(j->group_kids);
    exits_done(&j->exits);
    node_serve_free(j->serve);
    free(j);
    node_unref(n);
}

static void on_timer_closed(uv_handle_t *h)
{
    node_job_unref(h->data);
}

void node_job_close(struct node_job *j)
{
    struct node *n = j->node;

    if (j->closing)
        return;
    j->closing = true;
    for (struct node_job **p = &n->jobs; *p != NULL; p = &(*p)->next)
        if (*p == j) {
            *p = j->next;
            break;
        }
    node_port_close(j);
    node_serve_close(j);
    node_pmix_forget(j);
    for (uint32_t i = 0; i < j->task_count; i++) {
        task_pmi_close(&j->task[i]);
        task_stdio_close(&j->task[i]);
    }
    uv_close((uv_handle_t *)&j->check, on_timer_closed);
    uv_close((uv_handle_t *)&j->slow, on_timer_closed);
    uv_close((uv_handle_t *)&j->attr, on_timer_closed);
    uv_close((uv_handle_t *)&j->port_again, on_timer_closed);
}

/* --- job, ready, go --------------------------------------------------------------------------------------------- */

/* The children are the same for every job; the first one tells. */
static int find_kids(struct node *n, const struct tree *t)
{
    if (n->kid_place != NULL)
        return 0;
    for (uint32_t p = 1; p < t->count; p++)
        n->kid_count += t->parent[p] == n->conf.place;
    n->kid_place = calloc(n->kid_count + 1u, sizeof(*n->kid_place));
    n->kid_finished = calloc(n->kid_count + 1u, sizeof(*n->kid_finished));
    if (n->kid_place == NULL || n->kid_finished == NULL) {
        n->kid_count = 0;
        return -ENOMEM;
    }
    for (uint32_t p = 1, i = 0; p < t->count; p++)
        if (t->parent[p] == n->conf.place)
            n->kid_place[i++] = p;
    return 0;
}

static int count_ranks(struct node_job *j)
{
    const struct node *n = j->node;

    j->kid_ranks = calloc(n->kid_count + 1u, sizeof(*j->kid_ranks));
    j->kid_ready = calloc(n->kid_count + 1u, sizeof(*j->kid_ready));
    if (j->kid_ranks == NULL || j->kid_ready == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < n->kid_count; i++)
        j->kid_ranks[i] = j->tree->ranks[n->kid_place[i]];
    return 0;
}

/* Ranks at each place, from the placement's runs. */
static int make_tree(struct node_job *nj, struct err *err)
{
    const struct job *j = nj->job;
    uint32_t *at = calloc(j->places, sizeof(*at)), *place_of = job_place_of_node(j);
    int rc = at == NULL || place_of == NULL ? err_set(err, -ENOMEM, "out of memory") : 0;

    for (uint32_t i = 0; rc == 0 && i < j->runs; i++) {
        if (place_of[j->run_node[i]] == TREE_NONE)
            rc = err_set(err, -EPROTO, "node %u has no place", j->run_node[i]);
        else
            at[place_of[j->run_node[i]]] += j->run_len[i];
    }
    if (rc == 0)
        rc = tree_make(j->parent, j->node_at, at, j->places, &nj->tree, err);
    free(at);
    free(place_of);
    return rc;
}

static void send_ready(struct node_job *j)
{
    struct msg_out *m;

    if (!j->ready || j->ready_sent)
        return;
    for (uint32_t i = 0; i < j->node->kid_count; i++)
        if (!j->kid_ready[i] && !j->node->kid_finished[i]) /* one that is lost has no say any more */
            return;
    j->ready_sent = true;
    m = node_job_map(j);
    if (m != NULL && j->node->strangers > 0)
        msg_put_u64(m, "strangers", j->node->strangers);
    if (m != NULL)
        node_pmix_seen_put(j, m);
    j->node->strangers = 0;
    node_send_map(j->node, MSG_READY, m, false);
}

void node_job_kid_ready(struct node_job *j, uint32_t kid, const struct msg_in *m)
{
    uint64_t strangers;

    if (!j->kid_ready[kid] && m != NULL && msg_get_u64(m, "strangers", 0, UINT32_MAX, &strangers, NULL) == 0)
        j->node->strangers += strangers;
    if (!j->kid_ready[kid] && m != NULL)
        node_pmix_seen_read(j, m);
    j->kid_ready[kid] = true;
    send_ready(j);
}

/* `status` is what the launcher exits with; the ranks are this node's of the app, first to last. */
static void start_failed(struct node_job *j, const struct task *first, int status, const char *text)
{
    struct msg_out *m = node_job_map(j);
    uint32_t *ranks = calloc(j->task_count + 1u, sizeof(*ranks)), count = 0;

    for (uint32_t i = 0; ranks != NULL && first != NULL && i < j->task_count; i++)
        if (j->task[i].app == first->app)
            ranks[count++] = j->task[i].rank;
    if (m != NULL && ranks != NULL) {
        msg_put_u64(m, "place", j->node->conf.place);
        msg_put_u64(m, "rank", first == NULL ? 0 : first->rank);
        msg_put_u32v(m, "ranks", ranks, count);
        msg_put_u64(m, "status", (uint64_t)status);
        msg_put_str(m, "text", text);
    }
    node_send_map(j->node, MSG_START_FAILED, m, false);
    free(ranks);
}

int node_exec_status(int rc)
{
    return rc == -ENOENT || rc == -ENOTDIR ? 127 : 126;
}

static bool check_app(struct node_job *j, const struct task *t)
{
    const struct job_app *a = &j->job->app[t->app];
    struct err err = {0};
    char *path = NULL;
    int rc;

    if (dir_check(job_app_dir(j->job, a), &err) < 0) {
        start_failed(j, t, 1, err.text);
        return false;
    }
    rc = job_app_program(j->job, a, &path, &err);
    free(path);
    if (rc < 0)
        start_failed(j, t, node_exec_status(rc), err.text);
    return rc == 0;
}

/* Directories and programs are looked at before anything runs anywhere. Of the first job one failure is enough; of a
 * spawned one its asker is told of all, once every node has looked. */
static bool check_start(struct node_job *j)
{
    for (uint32_t i = 0; i < j->task_count; i++)
        if ((i == 0 || j->task[i].app != j->task[i - 1].app) && !check_app(j, &j->task[i]) && j->job->id == 0)
            return false;
    return true;
}

static int prepare(struct node_job *j, struct err *err)
{
    int rc = make_tree(j, err);

    if (rc < 0)
        return rc;
    if (find_kids(j->node, j->tree) < 0 || count_ranks(j) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    rc = node_tasks_prepare(j, err);
    if (rc < 0)
        return rc;
    if (node_pmi_setup(j) < 0 || node_barriers_setup(j) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    if (j->job->connect == CONNECT_SERVE)
        return node_serve_open(j, err);
    if (!(j->job->connect & CONNECT_PORT) || j->task_count == 0)
        return 0;
    rc = node_port_open(j);
    return rc < 0 ? err_set(err, rc, "cannot listen for its tasks: %s", strerror(-rc)) : 0;
}

/* To unpack the tables of many nodes takes five times the memory that they need; what is free goes back, as it is the
 * same on each node of the run. */
static void give_back(const struct job *j)
{
    (void)j;
#ifdef __GLIBC__
    if (j->places >= MANY_PLACES)
        (void)malloc_trim(0);
#endif
}

void node_job_new(struct node *n, struct span body)
{
    struct node_job *j = calloc(1, sizeof(*j));
    struct err err = {0};
    int rc = j == NULL ? err_set(&err, -ENOMEM, "out of memory") : job_unpack(body, &j->job, &err);

    if (rc < 0) {
        free(j);
        node_refuse(n, FAULT_PARENT, MSG_JOB, &err); /* whatever it was: it has no part here that could answer */
        return;
    }
    if (n->jobs == NULL)
        n->strangers += n->ops->all_in(n->arg);
    j->node = n;
    uv_timer_init(n->loop, &j->check);
    uv_timer_init(n->loop, &j->slow);
    uv_timer_init(n->loop, &j->attr);
    uv_timer_init(n->loop, &j->port_again);
    j->check.data = j->slow.data = j->attr.data = j->port_again.data = j;
    j->handles = 4;
    n->handles++;
    j->next = n->jobs;
    n->jobs = j;
    rc = prepare(j, &err);
    if (rc < 0) {
        start_failed(j, NULL, 1, err.text);
        node_job_close(j); /* what is said of it from now on would find half of it */
        return;
    }
    if (n->conf.place != 0)
        log_set_level((enum log_level)j->job->log_level);
    give_back(j->job);
    if (j->serve == NULL && !check_start(j))
        return;
    if (!node_pmix_begin(j))
        node_job_prepared(j);
}

void node_job_prepared(struct node_job *j)
{
    j->ready = true;
    send_ready(j);
}

void node_job_refused(struct node_job *j, const char *text)
{
    start_failed(j, j->task_count > 0 ? &j->task[0] : NULL, 1, text);
    if (j->job->id > 0) /* its asker is told once all have looked */
        node_job_prepared(j);
}

/* --- failures --------------------------------------------------------------------------------------------------- */

void node_task_failure(struct task *t, int kind, int code, const char *text)
{
    struct msg_out *m;

    if (t->judged)
        return;
    t->judged = true;
    m = node_job_map(t->job);
    if (m != NULL) {
        msg_put_u64(m, "rank", t->rank);
        msg_put_u64(m, "pid", (uint64_t)t->pid);
        msg_put_u64(m, "kind", (uint64_t)kind);
        msg_put_u64(m, "code", (uint64_t)code);
        msg_put_str(m, "text", text);
    }
    node_send_map(t->job->node, MSG_FAILED, m, false);
}

/* To the root, for the one who asked for the job. */
static void send_started(struct node_job *j)
{
    uint32_t *ranks = calloc(j->task_count + 1u, sizeof(*ranks)), count = 0;
    struct msg_out *m = ranks == NULL ? NULL : node_job_map(j);

    for (uint32_t i = 0; m != NULL && i < j->task_count; i++)
        if (j->task[i].no_start)
            ranks[count++] = j->task[i].rank;
    if (m != NULL) {
        msg_put_u64(m, "place", j->node->conf.place);
        msg_put_u64(m, "count", j->task_count);
        msg_put_u32v(m, "ranks", ranks, count);
        if (count > 0)
            msg_put_str(m, "text", j->start_text.text);
    }
    node_send_map(j->node, MSG_STARTED, m, false);
    free(ranks);
}

void node_job_task_known(struct task *t)
{
    struct node_job *j = t->job;

    if (j->starting > 0 && --j->starting == 0 && j->job->id > 0)
        send_started(j);
}

void node_job_over(struct node_job *j)
{
    if (j->over)
        return;
    j->over = true;
    if (node_streams_open(j))
        node_streams_drain(j->node);
    node_job_check_over(j);
}

void node_job_check_over(struct node_job *j)
{
    if (j->over && j->job->id > 0 && !j->node->ending && j->running == 0 && !node_streams_open(j))
        node_job_close(j);
}

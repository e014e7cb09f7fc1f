/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/node.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/log.h"
#include "server/blame.h"
#include "server/node_priv.h"

static void on_flush(uv_timer_t *h)
{
    node_flush_exits(h->data);
}

struct node *node_new(uv_loop_t *loop, const struct node_conf *conf, const struct node_ops *ops, void *arg)
{
    struct node *n = calloc(1, sizeof(*n));

    if (n == NULL)
        return NULL;
    *n = (struct node){.loop = loop, .conf = *conf, .ops = ops, .arg = arg};
    uv_timer_init(loop, &n->flush);
    uv_timer_init(loop, &n->silence);
    n->flush.data = n->silence.data = n;
    n->handles = 2;
    return n;
}

void node_unref(struct node *n)
{
    assert(n->handles > 0);
    if (--n->handles > 0)
        return;
    free(n->kid_place);
    free(n->kid_finished);
    free(n);
}

static void on_timer_closed(uv_handle_t *h)
{
    node_unref(h->data);
}

void node_close(struct node *n)
{
    struct node_job *next;

    if (n == NULL || n->closing)
        return;
    n->closing = true;
    for (struct node_job *j = n->jobs; j != NULL; j = next) {
        next = j->next;
        node_job_close(j);
    }
    uv_close((uv_handle_t *)&n->flush, on_timer_closed);
    uv_close((uv_handle_t *)&n->silence, on_timer_closed);
}

void node_send_map(struct node *n, unsigned type, struct msg_out *m, bool data)
{
    struct span body;

    if (m != NULL && msg_out_done(m, &body) == 0)
        n->ops->send_up(type, body, data, n->arg);
    else
        log_error("out of memory for a message (%s)", msg_name(type));
    msg_out_free(m);
}

int node_kid_index(const struct node *n, uint32_t place)
{
    for (uint32_t i = 0; i < n->kid_count; i++)
        if (n->kid_place[i] == place)
            return (int)i;
    return -1;
}

struct node_job *node_find_job(const struct node *n, const struct msg_in *m)
{
    uint64_t id;

    if (msg_get_u64(m, "job", 0, UINT32_MAX, &id, NULL) < 0)
        return NULL;
    for (struct node_job *j = n->jobs; j != NULL; j = j->next)
        if (j->job->id == id)
            return j;
    return NULL;
}

static struct task *find_task(const struct node *n, uint32_t id)
{
    for (const struct node_job *j = n->jobs; j != NULL; j = j->next)
        if (id - j->id_base < j->task_count)
            return &j->task[id - j->id_base];
    return NULL;
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

void node_check_finished(struct node *n)
{
    if (!n->ending || n->finished_sent)
        return;
    for (const struct node_job *j = n->jobs; j != NULL; j = j->next)
        if (j->running > 0 || node_streams_open(j))
            return;
    for (uint32_t i = 0; i < n->kid_count; i++)
        if (!n->kid_finished[i])
            return;
    node_flush_exits(n);
    n->finished_sent = true;
    uv_timer_stop(&n->silence);
    node_send_map(n, MSG_FINISHED, msg_out_new(), true);
    n->ops->on_finished(n->arg);
}

static void node_end(struct node *n)
{
    if (n->ending)
        return;
    n->ending = true;
    for (uint32_t i = 0; i < n->kid_count; i++)
        if (!links_has(n->conf.links, n->kid_place[i]))
            n->kid_finished[i] = true;
    for (struct node_job *j = n->jobs; j != NULL; j = j->next)
        j->over = true;
    node_streams_drain(n);
    node_check_finished(n);
}

/* --- from the keeper -------------------------------------------------------------------------------------------- */

void node_task_started(struct node *n, uint32_t id, pid_t pid)
{
    struct task *t = find_task(n, id);

    if (t == NULL)
        return;
    t->pid = pid;
    t->state = TASK_STARTED;
    task_pmi_start(t);
    node_job_task_known(t);
}

void node_task_over(struct task *t, int wstatus)
{
    struct node_job *j = t->job;

    t->state = TASK_ENDED;
    t->wstatus = wstatus;
    j->running--;
    j->ended_slot[j->ended_count++] = t->slot;
    uv_timer_start(&j->node->flush, on_flush, 0, 0);
    node_task_gone(t);
    if (j->serve == NULL)
        node_serve_command_over(j->node);
    node_check_finished(j->node);
}

void node_task_failed(struct node *n, uint32_t id, enum spawn_stage stage, int err_no)
{
    static const char *const stages[] = {"fork", "set limits for", "enter the directory of", "set up descriptors for",
                                         "execute"};
    struct task *t = find_task(n, id);
    struct err err = {0};

    if (t == NULL || t->state == TASK_ENDED)
        return;
    err_set(&err, -EIO, "cannot %s %s: %s", stages[stage], t->job->job->app[t->app].argv[0], strerror(err_no));
    t->no_start = true;
    if (t->job->job->id > 0)
        t->job->start_text = err; /* for the one who asked for the job: not the run's failure */
    else
        node_task_failure(t, BLAME_STATUS, stage == SPAWN_EXEC ? node_exec_status(-err_no) : 126, err.text);
    task_pmi_close(t);
    node_job_task_known(t);
    node_task_over(t, 0); /* the status has been reported as that of the failure */
}

void node_task_exited(struct node *n, uint32_t id, int wstatus)
{
    struct task *t = find_task(n, id);

    if (t == NULL || t->state == TASK_ENDED)
        return;
    t->wstatus = wstatus;
    task_pmi_ended(t);
    node_task_over(t, t->cut_off ? 0 : wstatus);
}

/* --- messages --------------------------------------------------------------------------------------------------- */

/* To every task, or to those of one job. */
static void node_signal(struct node *n, const struct msg_in *m)
{
    const struct node_job *j;
    uint64_t sig, job;

    if (msg_get_u64(m, "signal", 1, 64, &sig, NULL) < 0)
        return;
    if (msg_get_u64(m, "job", 0, UINT32_MAX, &job, NULL) < 0) {
        (void)spawner_kill(n->conf.spawner, SPAWN_ID_ALL, (int)sig);
        if (sig == SIGTERM || sig == SIGKILL || sig == SIGINT || sig == SIGHUP) /* others are only passed on */
            node_serve_end(n);
        return;
    }
    j = node_find_job(n, m);
    for (uint32_t i = 0; j != NULL && i < j->task_count; i++)
        (void)spawner_kill(n->conf.spawner, j->id_base + i, (int)sig);
}

static void node_pause(struct node *n, const struct msg_in *m)
{
    bool on;

    if (msg_get_bool(m, "on", &on, NULL) < 0)
        return;
    n->paused = on;
    links_pause(n->conf.links, on);
}

/* For one node: handle it here, or send it on towards that node. */
static void routed(struct node *n, unsigned type, struct span body, const struct msg_in *m)
{
    struct node_job *j = n->jobs;
    uint64_t place;

    if (j == NULL || msg_get_u64(m, "place", 0, NODES_MAX, &place, NULL) < 0)
        return;
    if (place != n->conf.place) { /* every job's tree is the same but for its ranks */
        uint32_t hop = tree_next_hop(j->tree, n->conf.place, (uint32_t)place);

        if (hop != TREE_NONE)
            (void)links_send(n->conf.links, hop, type, body, type == MSG_INPUT);
        return;
    }
    j = node_find_job(n, m);
    if (j == NULL) /* it is over */
        return;
    switch (type) {
    case MSG_INPUT:
        node_input(j, m);
        break;
    case MSG_OUTPUT_CREDIT:
        node_output_credit(j, m);
        break;
    case MSG_NAMED:
        node_named(j, m);
        break;
    default:
        node_spawned(j, m);
        break;
    }
}

static bool is_routed(unsigned type)
{
    return type == MSG_INPUT || type == MSG_OUTPUT_CREDIT || type == MSG_NAMED || type == MSG_SPAWNED;
}

/* For everybody, about one job. */
static void about_job(struct node *n, unsigned type, const struct msg_in *m)
{
    struct node_job *j = node_find_job(n, m);

    if (j == NULL)
        return;
    switch (type) {
    case MSG_GO:
        node_tasks_start(j);
        node_slow_watch(j);
        break;
    case MSG_RANK_GONE:
        node_rank_gone(j);
        break;
    case MSG_CHECK:
        node_check(j, m);
        break;
    case MSG_BROKEN:
        node_barriers_broken(j, m);
        break;
    case MSG_ASK:
        node_report(j);
        break;
    case MSG_JOB_OVER:
        node_job_over(j);
        break;
    default: /* of a later version */
        break;
    }
}

/* For everybody: to the children first, then here. */
static void spread(struct node *n, unsigned type, struct span body, const struct msg_in *m)
{
    links_send_down(n->conf.links, type, body, false);
    switch (type) {
    case MSG_SIGNAL:
        node_signal(n, m);
        break;
    case MSG_PAUSE:
        node_pause(n, m);
        break;
    case MSG_END:
        node_end(n);
        break;
    default:
        about_job(n, type, m);
        break;
    }
}

void node_down(struct node *n, unsigned type, struct span body)
{
    struct msg_in *m;

    if (type == MSG_JOB) {
        links_send_down(n->conf.links, MSG_JOB, body, false);
        node_job_new(n, body);
        return;
    }
    if (type == MSG_RELEASE) {
        node_release_from_parent(n, body);
        return;
    }
    if (msg_in_new(&m, body, NULL) < 0)
        return;
    if (is_routed(type))
        routed(n, type, body, m);
    else
        spread(n, type, body, m);
    msg_in_free(m);
}

/* What this node has to know of. */
static void from_child(struct node *n, uint32_t kid, unsigned type, struct span body)
{
    struct node_job *j;
    struct msg_in *m;

    if (msg_in_new(&m, body, NULL) < 0)
        return;
    switch (type) {
    case MSG_READY:
        j = node_find_job(n, m);
        if (j != NULL)
            node_job_kid_ready(j, kid);
        break;
    case MSG_WAITS:
        node_waits_from_child(n, body, m);
        break;
    default:
        node_left_from_child(n, body, m);
        break;
    }
    msg_in_free(m);
}

void node_up(struct node *n, uint32_t place, unsigned type, struct span body)
{
    int kid = node_kid_index(n, place);

    switch (kid < 0 ? 0 : type) {
    case MSG_BARRIER:
        node_barrier_from_child(n, place, body);
        break;
    case MSG_READY:
    case MSG_WAITS:
    case MSG_LEFT:
        from_child(n, (uint32_t)kid, type, body);
        break;
    case MSG_FINISHED:
        n->kid_finished[kid] = true;
        node_check_finished(n);
        break;
    default:
        n->ops->send_up(type, body, type == MSG_OUTPUT || type == MSG_TRACE, n->arg);
        break;
    }
}

void node_child_lost(struct node *n, uint32_t place, const struct err *why)
{
    struct msg_out *m;
    int kid = node_kid_index(n, place);

    if (kid >= 0 && n->kid_finished[kid])
        return;
    m = msg_out_new();
    if (m != NULL) {
        msg_put_u64(m, "place", place);
        msg_put_str(m, "text", why->code < 0 ? why->text : "it closed the connection");
    }
    node_send_map(n, MSG_NODE_LOST, m, false);
    if (kid >= 0) {
        n->kid_finished[kid] = true;
        node_check_finished(n);
    }
}

void node_drain(struct node *n)
{
    node_streams_resume(n);
}

struct node_counters node_counters(const struct node *n)
{
    return n->counters;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/node.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "server/blame.h"
#include "server/node_edge.h"
#include "server/node_exits.h"
#include "server/node_pmix.h"
#include "server/node_pty.h"

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
    n->no_memory = msg_out_new();
    if (n->no_memory != NULL) {
        const struct fault f = {.from = FAULT_OWN, .text = span_of("out of memory")};

        msg_put_u64(n->no_memory, "place", conf->place);
        fault_put(n->no_memory, &f);
    }
    return n;
}

void node_unref(struct node *n)
{
    assert(n->handles > 0);
    if (--n->handles > 0)
        return;
    free(n->kid_place);
    free(n->kid_finished);
    msg_out_free(n->no_memory);
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
    node_pmix_end(n);
    for (struct node_job *j = n->jobs; j != NULL; j = next) {
        next = j->next;
        node_job_close(j);
    }
    uv_close((uv_handle_t *)&n->flush, on_timer_closed);
    uv_close((uv_handle_t *)&n->silence, on_timer_closed);
}

void node_fault(struct node *n, const struct fault *f)
{
    struct msg_out *m;
    struct span body;

    if (f->type != 0 && !fault_is_awaited(f->type))
        return;
    node_flush_exits(n);
    m = msg_out_new();
    if (m != NULL) {
        msg_put_u64(m, "place", n->conf.place);
        fault_put(m, f);
    }
    if ((m != NULL && msg_out_done(m, &body) == 0) || (n->no_memory != NULL && msg_out_done(n->no_memory, &body) == 0))
        n->ops->send_up(MSG_FAULT, body, false, n->arg);
    msg_out_free(m);
}

void node_refuse(struct node *n, uint32_t from, unsigned type, const struct err *why)
{
    const struct fault f = {.from = from, .type = type, .text = span_of(why->text)};

    node_fault(n, &f);
}

void node_send_map(struct node *n, unsigned type, struct msg_out *m, bool data)
{
    struct err err = {0};
    struct span body;
    int rc = m == NULL ? -ENOMEM : msg_out_done(m, &body);

    if (!data && type != MSG_EXITED)
        node_flush_exits(n);
    if (rc == 0) {
        n->ops->send_up(type, body, data, n->arg);
    } else {
        err_set(&err, rc, rc == -E2BIG ? "it is too long" : "out of memory");
        node_refuse(n, FAULT_OWN, type, &err);
    }
    msg_out_free(m);
}

int node_kid_index(const struct node *n, uint32_t place)
{
    for (uint32_t i = 0; i < n->kid_count; i++)
        if (n->kid_place[i] == place)
            return (int)i;
    return -1;
}

int node_find_job(const struct node *n, const struct msg_in *m, struct node_job **out, struct err *err)
{
    struct node_job *j = n->jobs;
    uint64_t id;
    int rc = msg_get_u64(m, "job", 0, UINT32_MAX, &id, err);

    if (rc < 0)
        return rc;
    while (j != NULL && j->job->id != id)
        j = j->next;
    *out = j;
    return 0;
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
    node_pmix_end(n);
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
    node_task_gone(t);
    node_exit_add(t);
    if (j->serve == NULL)
        node_serve_command_over(j->node);
    node_check_finished(j->node);
}

void node_task_failed(struct node *n, uint32_t id, enum spawn_stage stage, int err_no)
{
    static const char *const stages[] = {"fork", "set limits for", "enter the directory of", "set up descriptors for",
                                         "execute"};
    struct task *t = find_task(n, id);
    /* The program itself was there when the job was made ready. */
    const char *what = stage == SPAWN_EXEC && err_no == ENOENT ? " (its interpreter; does the #! line end in CR?)" : "";
    struct err err = {0};

    if (t == NULL || t->state == TASK_ENDED)
        return;
    err_set(&err, -EIO, "cannot %s %s: %s%s", stages[stage], t->job->job->app[t->app].argv[0], strerror(err_no), what);
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
    node_pmix_ended(t);
    node_task_over(t, t->cut_off ? 0 : wstatus);
}

/* --- messages --------------------------------------------------------------------------------------------------- */

/* To every task, or to those of one job. */
static int node_signal(struct node *n, const struct msg_in *m, struct err *err)
{
    struct node_job *j;
    uint64_t sig;
    int rc = msg_get_u64(m, "signal", 1, 64, &sig, err);

    if (rc < 0)
        return rc;
    if (node_find_job(n, m, &j, NULL) < 0) {
        (void)spawner_kill(n->conf.spawner, SPAWN_ID_ALL, (int)sig);
        if (sig == SIGTERM || sig == SIGKILL || sig == SIGINT || sig == SIGHUP) { /* others are only passed on */
            n->killing = true;
            node_serve_end(n);
        }
        return 0;
    }
    for (uint32_t i = 0; j != NULL && i < j->task_count; i++)
        (void)spawner_kill(n->conf.spawner, j->id_base + i, (int)sig);
    return 0;
}

static int node_pause(struct node *n, const struct msg_in *m, struct err *err)
{
    bool on;
    int rc = msg_get_bool(m, "on", &on, err);

    if (rc < 0)
        return rc;
    n->paused = on;
    links_pause(n->conf.links, on);
    return 0;
}

static int send_on(struct node *n, uint32_t place, unsigned type, struct span body, struct err *err)
{
    uint32_t hop = tree_next_hop(n->jobs->tree, n->conf.place, place); /* every job's is the same but for its ranks */

    if (hop == TREE_NONE)
        return err_set(err, -EPROTO, "place %u is not below this node", place);
    (void)links_send(n->conf.links, hop, type, body, type == MSG_INPUT); /* a failed one closes, and on_lost tells */
    return 0;
}

/* For one node: handle it here, or send it on towards that node. */
static int routed(struct node *n, unsigned type, struct span body, const struct msg_in *m, struct err *err)
{
    struct node_job *j;
    uint64_t place, set;
    int rc;

    if (n->jobs == NULL)
        return 0;
    if ((rc = msg_get_u64(m, "place", 0, NODES_MAX, &place, err)) < 0)
        return rc;
    if (place != n->conf.place)
        return send_on(n, (uint32_t)place, type, body, err);
    if (type == MSG_PMIX_ANSWER)
        return node_pmix_answer(n, m, err);
    if (type == MSG_PMIX_GET)
        return node_pmix_get(n, m, err);
    if (type == MSG_SPAWNED && msg_get_u64(m, "set", PMIX_ASKER_SET, PMIX_ASKER_SET, &set, NULL) == 0)
        return node_pmix_spawned(n, m, err);
    rc = node_find_job(n, m, &j, err);
    if (rc < 0 || j == NULL) /* it is over */
        return rc;
    switch (type) {
    case MSG_INPUT:
        return node_input(j, m, err);
    case MSG_WINDOW:
        return node_window(j, m, err);
    case MSG_OUTPUT_CREDIT:
        return node_output_credit(j, m, err);
    case MSG_NAMED:
        return node_named(j, m, err);
    default:
        return node_spawned(j, m, err);
    }
}

static bool is_routed(unsigned type)
{
    return type == MSG_INPUT || type == MSG_WINDOW || type == MSG_OUTPUT_CREDIT || type == MSG_NAMED ||
           type == MSG_SPAWNED || type == MSG_PMIX_ANSWER || type == MSG_PMIX_GET;
}

/* For everybody, about one job. */
static int about_job(struct node *n, unsigned type, const struct msg_in *m, struct err *err)
{
    struct node_job *j;
    int rc = node_find_job(n, m, &j, err);

    if (rc < 0 || j == NULL) /* it is over */
        return rc;
    switch (type) {
    case MSG_GO:
        node_tasks_start(j);
        node_slow_watch(j);
        break;
    case MSG_RANK_GONE:
        node_rank_gone(j, m);
        break;
    case MSG_CHECK:
        return node_check(j, m, err);
    case MSG_BROKEN:
        return node_barriers_broken(j, m, err);
    case MSG_PMIX_NOTIFY:
        return node_pmix_notified(j, m, err);
    case MSG_ASK:
        node_report(j);
        break;
    case MSG_JOB_OVER:
        node_job_over(j);
        break;
    default: /* of a later version */
        break;
    }
    return 0;
}

/* For everybody: to the children first, then here. */
static int spread(struct node *n, unsigned type, struct span body, const struct msg_in *m, struct err *err)
{
    struct node_job *j;

    /* What was complete before this was not broken; all else may come ahead of a round's data. */
    if (type == MSG_BROKEN && node_find_job(n, m, &j, NULL) == 0 && j != NULL)
        node_edges_flush(j);
    links_send_down(n->conf.links, type, body, false);
    switch (type) {
    case MSG_SIGNAL:
        return node_signal(n, m, err);
    case MSG_PAUSE:
        return node_pause(n, m, err);
    case MSG_END:
        node_end(n);
        return 0;
    case MSG_STATUS: /* for who runs this node */
        return 0;
    default:
        return about_job(n, type, m, err);
    }
}

void node_down(struct node *n, unsigned type, struct span body)
{
    struct err err = {0};
    struct msg_in *m = NULL;
    int rc;

    if (type == MSG_JOB) {
        links_send_down(n->conf.links, MSG_JOB, body, false);
        node_job_new(n, body);
        return;
    }
    if (type == MSG_RELEASE) {
        node_release_from_parent(n, body);
        return;
    }
    if (node_pmix_down(n, type, body))
        return;
    rc = msg_in_new(&m, body, &err);
    if (rc == 0)
        rc = is_routed(type) ? routed(n, type, body, m, &err) : spread(n, type, body, m, &err);
    if (rc < 0)
        node_refuse(n, FAULT_PARENT, type, &err);
    msg_in_free(m);
}

/* What this node has to know of. */
static int from_child(struct node *n, int kid, unsigned type, struct span body, struct err *err)
{
    struct node_job *j = NULL;
    struct msg_in *m;
    int rc = kid < 0 ? err_set(err, -EPROTO, "no such child") : msg_in_new(&m, body, err);

    if (rc < 0)
        return rc;
    rc = node_find_job(n, m, &j, err);
    if (rc == 0 && j != NULL && type == MSG_READY)
        node_job_kid_ready(j, (uint32_t)kid, m);
    else if (rc == 0 && j != NULL && type == MSG_WAITS)
        rc = node_waits_from_child(j, body, m, err);
    else if (rc == 0 && j != NULL && type == MSG_LEFT)
        node_left_from_child(j, body);
    else if (rc == 0 && j != NULL)
        rc = node_exits_from_child(j, m, err);
    else if (rc == 0 && type == MSG_EXITED) /* over here, or refused */
        node_pass_up(n, type, body);
    msg_in_free(m);
    return rc;
}

void node_up(struct node *n, uint32_t place, unsigned type, struct span body)
{
    struct err err = {0};
    int kid = node_kid_index(n, place);

    switch (type) {
    case MSG_BARRIER:
        node_barrier_from_child(n, place, body);
        break;
    case MSG_PMIX_FENCE:
        node_pmix_fence_from_child(n, place, body);
        break;
    case MSG_READY:
    case MSG_WAITS:
    case MSG_LEFT:
    case MSG_EXITED:
        if (from_child(n, kid, type, body, &err) < 0)
            node_refuse(n, place, type, &err);
        break;
    case MSG_FINISHED:
        if (kid < 0) /* the start has failed ahead of the job */
            break;
        n->kid_finished[kid] = true;
        node_check_finished(n);
        break;
    default:
        node_pass_up(n, type, body);
        break;
    }
}

static void say_lost(struct node *n, uint32_t place, const char *why)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_u64(m, "place", place);
        msg_put_str(m, "text", why);
    }
    node_send_map(n, MSG_NODE_LOST, m, false);
}

void node_keeper_lost(struct node *n, const char *why)
{
    say_lost(n, n->conf.place, why);
}

void node_child_lost(struct node *n, uint32_t place, const struct err *why)
{
    int kid = node_kid_index(n, place);

    if (kid >= 0 && n->kid_finished[kid])
        return;
    say_lost(n, place, why->code < 0 ? why->text : "it closed the connection");
    node_edges_drain(n, place);
    if (kid >= 0) {
        n->kid_finished[kid] = true;
        for (struct node_job *j = n->jobs, *next; j != NULL; j = next) {
            next = j->next; /* at the root this may be what the job has waited for to be over */
            node_job_kid_ready(j, (uint32_t)kid, NULL);
        }
        node_check_finished(n);
    }
}

void node_drain(struct node *n, uint32_t place)
{
    if (place == LINKS_PARENT)
        node_streams_resume(n);
    node_edges_drain(n, place);
}

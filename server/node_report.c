/* SPDX-License-Identifier: BSD-3-Clause */
/* node_report.c - who waits in which barrier, for people: when the launcher asks, and unasked when a barrier lasts; and
 * who is alone without knowing
 */
#include <stdlib.h>
#include "common/io/log.h"
#include "server/mpi_seen.h"
#include "server/node_pmix.h"
#include "server/proc_stat.h"

#define BARRIERS_TOLD_MAX 16 /* in one report */
#define TICKS 4              /* to --barrier-warn */

struct telling {
    struct node_job *job;
    uint32_t *slots; /* [task_count], also for the ranks */
    unsigned left;
};

static void tell_barrier(const struct barrier_id *id, uint64_t round, void *arg)
{
    struct telling *t = arg;
    struct node_job *j = t->job;
    struct msg_out *m;
    uint32_t count;

    if (t->left == 0)
        return;
    t->left--;
    count = barriers_waiting(j->barriers, id, t->slots, j->task_count);
    for (uint32_t i = 0; i < count; i++)
        t->slots[i] = j->task[t->slots[i]].rank;
    m = node_barrier_map(j, id, round);
    if (m != NULL) {
        msg_put_u64(m, "place", j->node->conf.place);
        msg_put_u32v(m, "in", t->slots, count);
    }
    node_send_map(j->node, MSG_REPORT, m, false);
}

/* By a signal, as SIGSTOP; a debugger's stops are others. Of the task's own process, as it is asked of all at once. */
static bool is_stopped(pid_t pid)
{
    struct proc_stat stat;

    return proc_stat_read("/proc", pid, &stat) && stat.state == 'T';
}

static void put_stopped(const struct node_job *j, struct msg_out *m)
{
    uint32_t *ranks = calloc(j->task_count + 1u, sizeof(*ranks)), n = 0;

    for (uint32_t i = 0; ranks != NULL && i < j->task_count; i++)
        if (j->task[i].state == TASK_STARTED && j->task[i].pid > 0 && is_stopped(j->task[i].pid))
            ranks[n++] = j->task[i].rank;
    if (n > 0)
        msg_put_u32v(m, "stopped", ranks, n);
    free(ranks);
}

void node_report(struct node_job *j)
{
    struct telling t = {.job = j, .slots = calloc(j->task_count + 1u, sizeof(*t.slots)), .left = BARRIERS_TOLD_MAX};
    size_t queued = links_queued(j->node->conf.links); /* before there is more on it by this report */
    struct msg_out *m;

    if (t.slots != NULL && j->barriers != NULL)
        barriers_each_open(j->barriers, tell_barrier, &t);
    free(t.slots);
    node_pmix_report(j);
    m = node_job_map(j);
    if (m != NULL) {
        msg_put_u64(m, "place", j->node->conf.place);
        msg_put_u64(m, "queued", queued);
        if (!j->node->paused)
            put_stopped(j, m);
    }
    node_send_map(j->node, MSG_REPORT, m, false);
}

static void tell_slow(const struct barrier_id *id, uint64_t round, void *arg)
{
    struct node_job *j = arg;

    node_send_map(j->node, MSG_SLOW, node_barrier_map(j, id, round), false);
}

static void on_tick(uv_timer_t *h)
{
    struct node_job *j = h->data;

    if (j->barriers != NULL && !j->closing && !j->node->paused)
        barriers_tick(j->barriers, TICKS, tell_slow, j);
    if (j->job->id == 0 && !j->node->paused) /* the job that is there from begin to end, for all */
        node_pmix_tick(j->node, TICKS);
}

/* A script, or a program that loads MPI late, is not seen to need PMIx before it runs (pmix_want.c), and its ranks say
 * nothing to us. Rank 0 stands for all. False: there is no more to look for. */
static bool look_for_alone(const struct node_job *j)
{
    const struct task *t = node_task_of_rank(j, 0);
    bool silent = t != NULL && t->state != TASK_ENDED && HASH_COUNT(t->conns) == 1 && t->conns->heard == 0;

    if (!silent || j->pmix != NULL || j->job->size == 1)
        return false;
    if (t->state == TASK_NEW || !mpi_is_alone("/proc", t->pid))
        return true;
    log_warn("rank 0 has Open MPI without PMIx, and so each of the %u ranks is a job of its own: should they be one, "
             "give --pmix=yes",
             j->job->size);
    return false;
}

static void on_early_tick(uv_timer_t *h)
{
    const struct node_job *j = h->data;

    if (!j->closing && !look_for_alone(j))
        uv_timer_start(h, on_tick, uv_timer_get_repeat(h), uv_timer_get_repeat(h));
    on_tick(h);
}

void node_slow_watch(struct node_job *j)
{
    uint64_t quarter = (j->job->barrier_warn_ms + TICKS - 1) / TICKS;

    if (quarter > 0)
        uv_timer_start(&j->slow, on_early_tick, quarter, quarter);
}

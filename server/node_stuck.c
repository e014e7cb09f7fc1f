/* SPDX-License-Identifier: BSD-3-Clause */
/* node_stuck.c - barriers that can never be complete, because a member has ended or has left PMI for good
 *
 * Only the node of that member knows for sure which rounds it has entered; only those where somebody waits know that
 * one is awaited. So once any rank is gone, a node where a round lasts, and which misses some of its own subtree, has
 * all nodes asked. Each keeps the question in mind, looks at those of its tasks that are gone, and at each that goes
 * later. What it finds is true for good: a rank that is gone enters nothing more.
 *
 * Ranks of two kinds of MPI can wait for each other, some in a barrier of PMI and some in PMIx. So once a rank has
 * begun PMIx, a node whose ranks wait in a barrier of PMI, and have not, asks all likewise, once a job.
 */
#include <stdlib.h>
#include "server/barrier_msg.h"
#include "server/group.h"
#include "server/node_attrs.h"
#include "server/node_pmix.h"

#define NOBODY UINT32_MAX
#define CHECK_MS 100 /* nothing is asked about a round that is complete sooner */

bool node_barrier_misses(const struct task *t, const struct barrier_id *id, uint64_t round)
{
    return (span_is(id->group, "WORLD") || span_is(id->group, "NODE") || group_has(id->group, t->rank)) &&
           barriers_entered(t->job->barriers, id, t->slot) <= round;
}

bool node_task_is_gone(const struct task *t)
{
    return t->state == TASK_ENDED || t->left;
}

static bool is_missing(const struct task *t, const struct barrier_id *id, uint64_t round)
{
    return node_task_is_gone(t) && node_barrier_misses(t, id, round);
}

static void say_stuck(const struct task *t, const struct barrier_id *id, uint64_t round, uint32_t pmi)
{
    struct node_job *j = t->job;
    struct msg_out *m = node_barrier_map(j, id, round);

    barriers_note_no_more(j->barriers, id);
    if (m != NULL) {
        msg_put_u64(m, "rank", t->rank);
        msg_put_bool(m, "left", t->state != TASK_ENDED);
        if (pmi != NOBODY)
            msg_put_u64(m, "pmi", pmi);
    }
    node_send_map(j->node, MSG_STUCK, m, false);
}

static void check_tasks(struct node_job *j, const struct barrier_id *id, uint64_t round)
{
    for (uint32_t i = 0; i < j->task_count; i++)
        if (is_missing(&j->task[i], id, round)) {
            say_stuck(&j->task[i], id, round, NOBODY);
            return;
        }
}

/* --- two kinds of MPI ------------------------------------------------------------------------------------------- */

static bool is_silent(const struct task *t)
{
    for (const struct pmi_conn *c = t->conns; c != NULL; c = c->hh.next)
        if (c->heard > 0)
            return false;
    return true;
}

/* `pmi` is a rank that waits in the barrier and has never begun PMIx. One that has, and has not said a word over PMI,
 * waits elsewhere: in PMIx, for that one. */
static void check_kinds(struct node_job *j, const struct barrier_id *id, uint64_t round, uint32_t pmi)
{
    for (uint32_t i = 0; i < j->task_count; i++) {
        const struct task *t = &j->task[i];

        if (t->pmix != TASK_PMIX_NEVER && is_silent(t) && node_barrier_misses(t, id, round)) {
            say_stuck(t, id, round, pmi);
            return;
        }
    }
}

static void on_open(const struct barrier_id *id, uint64_t round, void *arg)
{
    struct node_job *j = arg;
    uint32_t *slots, n, pmi = NOBODY;
    struct msg_out *m;

    if (j->pmix->asked || id->set != 0 || !span_is(id->group, "WORLD"))
        return;
    slots = calloc(j->task_count + 1u, sizeof(*slots));
    n = slots == NULL ? 0 : barriers_waiting(j->barriers, id, slots, j->task_count);
    for (uint32_t i = 0; i < n && pmi == NOBODY; i++)
        if (j->task[slots[i]].pmix == TASK_PMIX_NEVER)
            pmi = j->task[slots[i]].rank;
    free(slots);
    if (pmi == NOBODY)
        return;
    j->pmix->asked = true;
    check_kinds(j, id, round, pmi);
    m = node_barrier_map(j, id, round);
    if (m != NULL)
        msg_put_u64(m, "pmi", pmi);
    node_send_map(j->node, MSG_WAITS, m, false);
}

/* A question of this kind? True: it was one, and is dealt with. */
static bool take_kinds(struct node_job *j, const struct msg_in *m, const struct barrier_id *id, uint64_t round)
{
    uint64_t pmi;

    if (j->pmix == NULL || msg_get_u64(m, "pmi", 0, j->job->size - 1, &pmi, NULL) < 0)
        return false;
    check_kinds(j, id, round, (uint32_t)pmi);
    return true;
}

/* --- asking ----------------------------------------------------------------------------------------------------- */

static void on_awaiting(const struct barrier_id *id, uint64_t round, void *arg)
{
    struct node_job *j = arg;

    if (!barriers_note(j->barriers, id, round))
        return;
    check_tasks(j, id, round);
    if (!span_is(id->group, "NODE")) /* else the other members are here too */
        node_send_map(j->node, MSG_WAITS, node_barrier_map(j, id, round), false);
}

static void on_check(uv_timer_t *h)
{
    struct node_job *j = h->data;

    if (j->pmix != NULL && j->pmix->known)
        barriers_each_open(j->barriers, on_open, j);
    if (j->gone_known)
        barriers_each_awaiting(j->barriers, on_awaiting, j);
}

void node_stuck_arm(struct node_job *j)
{
    bool two_kinds = j->pmix != NULL && j->pmix->known && !j->pmix->asked;

    if ((j->gone_known || two_kinds) && !j->closing && !uv_is_active((uv_handle_t *)&j->check))
        uv_timer_start(&j->check, on_check, CHECK_MS, 0);
}

void node_rank_gone(struct node_job *j, const struct msg_in *m)
{
    bool pmix = false;

    (void)msg_get_bool(m, "pmix", &pmix, NULL);
    if (!pmix)
        j->gone_known = true;
    else if (j->pmix != NULL)
        j->pmix->known = true;
    node_stuck_arm(j);
    node_pmix_watch(j->node);
}

int node_waits_from_child(struct node_job *j, struct span body, const struct msg_in *m, struct err *err)
{
    struct barrier_id id;
    uint64_t round;
    int rc = barrier_read(m, &id, &round, err);

    if (rc < 0)
        return rc;
    if (take_kinds(j, m, &id, round)) {
        if (!j->pmix->asked)
            node_pass_up(j->node, MSG_WAITS, body);
        j->pmix->asked = true;
        return 0;
    }
    if (!barriers_note(j->barriers, &id, round))
        return 0;
    check_tasks(j, &id, round);
    node_pass_up(j->node, MSG_WAITS, body);
    return 0;
}

int node_check(struct node_job *j, const struct msg_in *m, struct err *err)
{
    struct barrier_id id;
    uint64_t round;
    int rc = barrier_read(m, &id, &round, err);

    if (rc == 0 && !take_kinds(j, m, &id, round) && barriers_note(j->barriers, &id, round))
        check_tasks(j, &id, round);
    return rc;
}

/* --- tasks that go ---------------------------------------------------------------------------------------------- */

static void on_noted(const struct barrier_id *id, uint64_t round, void *arg)
{
    const struct task *t = arg;

    if (is_missing(t, id, round))
        say_stuck(t, id, round, NOBODY);
}

void node_task_gone(struct task *t)
{
    if (t->job->barriers != NULL)
        barriers_each_noted(t->job->barriers, on_noted, t);
    node_pmix_task_gone(t);
    node_attrs_arm(t->job);
}

void node_task_left(struct task *t)
{
    struct node_job *j = t->job;

    if (node_task_is_gone(t) || j->closing)
        return;
    t->left = true;
    node_task_gone(t);
    if (j->gone_known || j->left_sent)
        return;
    j->left_sent = true;
    node_send_map(j->node, MSG_LEFT, node_job_map(j), false);
}

void node_left_from_child(struct node_job *j, struct span body)
{
    if (j->gone_known || j->left_sent)
        return;
    j->left_sent = true;
    node_pass_up(j->node, MSG_LEFT, body);
}

int node_barriers_broken(struct node_job *j, const struct msg_in *m, struct err *err)
{
    struct barrier_id id;
    uint64_t round;
    int rc;

    if (barrier_read(m, &id, &round, NULL) == 0) {
        if (id.set == BARRIER_SET_PMIX) {
            node_pmix_break(j->node, id.group);
            return 0;
        }
        rc = barriers_break_one(j->barriers, &id, -EIO);
        return rc < 0 ? err_set(err, rc, "no memory for a barrier") : 0;
    }
    barriers_break(j->barriers, -EIO);
    node_serve_broken(j);
    node_pmix_broken(j->node);
    return 0;
}

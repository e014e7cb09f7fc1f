/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pmix_event.c - events that ranks send to ranks of other nodes, by way of the root; and what a node knows itself
 *
 * An event goes up and comes down to every node. Who sends one is told that it is under way, no more, and the ranks of
 * the same node have it from the library.
 *
 * Nobody else can hold back a rank that sends more than all the links carry. So a node has only so much under way as
 * has not come back to it, and nothing more goes out while one of its edges is busy; the rest waits, up to a limit that
 * pmix_up_notify() knows.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/log.h"
#include "common/util.h"
#include "server/node_pmix.h"

static void send_one(struct node_job *j, const struct pmix_up *u)
{
    struct msg_out *m = node_job_map(j);

    if (m != NULL) {
        msg_put_u64(m, "from", j->node->conf.place);
        msg_put_u64(m, "rank", u->who.rank);
        msg_put_i64(m, "code", u->status);
        msg_put_u64(m, "range", u->range);
        msg_put_bool(m, "own_job", u->own_job);
        msg_put_bin(m, "data", buf_span(&u->data));
    }
    node_send_map(j->node, MSG_PMIX_EVENT, m, false);
}

static bool may_send(const struct node_job *j, size_t size)
{
    const struct links *l = j->node->conf.links;

    if (j->pmix->events_away > 0 && j->pmix->events_away + size > PMIX_EVENTS_AWAY_MAX / j->job->places)
        return false;
    for (uint32_t i = 0; i < links_child_count(l); i++)
        if (links_is_busy(l, links_child_place(l, i)))
            return false;
    return !links_is_busy(l, LINKS_PARENT);
}

/* At the root each comes back before it is sent here. */
static void send_some(struct node_job *j)
{
    struct node_job_pmix *x = j->pmix;

    while (x->events != NULL && may_send(j, x->events->data.len)) {
        struct pmix_up *u = x->events;

        x->events = u->next;
        x->events_away += u->data.len;
        send_one(j, u);
        pmix_up_done(u, 0, SPAN_NONE);
    }
}

/* Once: who sends one that is lost sends more. */
static void say_lost(struct node_job *j, const struct pmix_up *u)
{
    if (!j->pmix->event_lost)
        log_warn("rank %" PRIu32 ": an event for other nodes is lost: %s", u->who.rank,
                 u->rc == -ENOSPC  ? "those before it have waited for too long"
                 : u->rc == -E2BIG ? "it is too long"
                                   : strerror(-u->rc));
    j->pmix->event_lost = true;
}

void node_pmix_event(struct node_pmix *p, struct pmix_up *u)
{
    struct node_job *j = u->who.nspace == NULL ? NULL : node_pmix_job(p->node, u->who.nspace);

    if (j == NULL || j->pmix == NULL || p->ending) { /* of the library's own, or too late for anybody */
        pmix_up_done(u, 0, SPAN_NONE);
        return;
    }
    if (u->rc < 0) {
        say_lost(j, u);
        pmix_up_done(u, u->rc, SPAN_NONE);
        return;
    }
    if (j->pmix->events == NULL)
        j->pmix->events_end = &j->pmix->events;
    u->next = NULL;
    *j->pmix->events_end = u;
    j->pmix->events_end = &u->next;
    send_some(j);
}

void node_pmix_events_resume(const struct node *n)
{
    for (struct node_job *j = n->jobs; j != NULL; j = j->next)
        if (j->pmix != NULL)
            send_some(j);
}

void node_pmix_events_drop(struct node_job *j)
{
    while (j->pmix->events != NULL) {
        struct pmix_up *u = j->pmix->events;

        j->pmix->events = u->next;
        pmix_up_done(u, 0, SPAN_NONE);
    }
}

int node_pmix_notified(struct node_job *j, const struct msg_in *m, struct err *err)
{
    const struct node_pmix *p = j->node->pmix;
    struct pmix_id source = {.nspace = j->job->nspace};
    uint64_t from, rank, range;
    struct span data;
    bool own_job;
    int64_t code;
    int rc;

    if ((rc = msg_get_u64(m, "from", 0, NODES_MAX, &from, err)) < 0 ||
        (rc = msg_get_u64(m, "rank", 0, UINT32_MAX, &rank, err)) < 0 || (rc = msg_get_i64(m, "code", &code, err)) < 0 ||
        (rc = msg_get_u64(m, "range", 0, UINT8_MAX, &range, err)) < 0 ||
        (rc = msg_get_bool(m, "own_job", &own_job, err)) < 0 || (rc = msg_get_bin(m, "data", &data, err)) < 0)
        return rc;
    if (from == j->node->conf.place && j->pmix != NULL) {
        j->pmix->events_away -= MIN(j->pmix->events_away, data.n);
        send_some(j);
    }
    if (from == j->node->conf.place || p == NULL || p->host == NULL || p->ending || source.nspace == NULL ||
        (own_job && j->task_count == 0))
        return 0;
    source.rank = (uint32_t)rank;
    rc = pmix_host_notify(p->host, &source, (int)code, (unsigned)range, data);
    return rc < 0 ? err_set(err, rc, "the library does not take it") : 0;
}

/* Namespaces, as they are called. */
void node_pmix_query(struct node_pmix *p, struct pmix_up *u)
{
    struct buf names = {0};
    int rc = 0;

    for (const struct node_job *j = p->node->jobs; rc == 0 && j != NULL; j = j->next)
        if (j->job->nspace != NULL)
            rc = buf_printf(&names, "%s%s", names.len > 0 ? "," : "", j->job->nspace);
    node_pmix_done(p, u, rc, buf_span(&names));
    buf_done(&names);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pmix_event.c - events that ranks send to ranks of other nodes, by way of the root; and what a node knows itself
 *
 * An event goes up and comes down to every node. Who sends one is told that it is under way, no more, and the ranks of
 * the same node have it from the library.
 */
#include <stdlib.h>
#include <string.h>
#include "server/node_pmix.h"

void node_pmix_event(struct node_pmix *p, struct pmix_up *u)
{
    const struct node_job *j = u->who.nspace == NULL ? NULL : node_pmix_job(p->node, u->who.nspace);
    struct msg_out *m;

    if (j == NULL || p->ending) { /* of the library's own, or too late for anybody */
        pmix_up_done(u, 0, SPAN_NONE);
        return;
    }
    m = node_job_map(j);
    if (m != NULL) {
        msg_put_u64(m, "from", p->node->conf.place);
        msg_put_u64(m, "rank", u->who.rank);
        msg_put_i64(m, "code", u->status);
        msg_put_u64(m, "range", u->range);
        msg_put_bool(m, "own_job", u->own_job);
        msg_put_bin(m, "data", buf_span(&u->data));
    }
    node_send_map(p->node, MSG_PMIX_EVENT, m, false);
    pmix_up_done(u, 0, SPAN_NONE);
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

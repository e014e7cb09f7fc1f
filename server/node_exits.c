/* SPDX-License-Identifier: BSD-3-Clause */
/* node_exits.c - the ends of this node's tasks and of those below it, on their way to the root
 *
 * What may be somebody's fault goes on at once. Ends that are nobody's wait a little for more, so that the root hears
 * of them from its children once or a few times and not from every node; the last of a node and all below it go on at
 * once. No other control message overtakes them, so that the root learns things in the order in which they happened.
 */
#include "server/node_exits.h"

#include "server/exits.h"
#include "server/node_pmix.h"

#define GATHER_MS 100         /* on each node on the way up */
#define GATHER_MAX (1u << 16) /* exits in one message */

static void flush_job(struct node_job *j)
{
    struct msg_out *m = node_job_map(j);

    if (m != NULL && exits_put(&j->exits, m) < 0) {
        msg_out_free(m);
        m = NULL; /* and the root is told that there is no memory */
    }
    j->exits.told += j->exits.count;
    exits_clear(&j->exits);
    node_send_map(j->node, MSG_EXITED, m, false);
}

void node_flush_exits(struct node *n)
{
    uv_timer_stop(&n->flush);
    for (struct node_job *j = n->jobs; j != NULL; j = j->next)
        if (j->exits.count > 0)
            flush_job(j);
}

static void on_flush(uv_timer_t *h)
{
    node_flush_exits(h->data);
}

/* Does the root have to know at once of those from `first` on? */
static bool is_urgent(const struct node_job *j, uint32_t first)
{
    const struct node *n = j->node;

    if (n->conf.place == 0 || j->exits.told + j->exits.count >= j->tree->ranks[n->conf.place])
        return true;
    for (uint32_t i = first; i < j->exits.count && !n->killing; i++)
        if (j->exits.one[i].status != 0)
            return true;
    return false;
}

static void added(struct node_job *j, uint32_t first)
{
    struct node *n = j->node;

    if (j->exits.count >= GATHER_MAX)
        node_flush_exits(n);
    else if (is_urgent(j, first))
        uv_timer_start(&n->flush, on_flush, 0, 0);
    else if (!uv_is_active((uv_handle_t *)&n->flush))
        uv_timer_start(&n->flush, on_flush, GATHER_MS, 0);
}

void node_exit_add(const struct task *t)
{
    struct node_job *j = t->job;
    const struct exit_one one = {.rank = t->rank, .pid = (uint32_t)t->pid, .status = (uint32_t)t->wstatus};

    if (node_pmix_is_apart(t) && !j->exits.has_apart) {
        j->exits.has_apart = true;
        j->exits.apart = t->rank;
    }
    if (exits_add(&j->exits, &one) < 0)
        node_send_map(j->node, MSG_EXITED, NULL, false);
    else
        added(j, j->exits.count - 1);
}

int node_exits_from_child(struct node_job *j, const struct msg_in *m, struct err *err)
{
    uint32_t first = j->exits.count;
    int rc = exits_read(&j->exits, m, err);

    if (rc == 0)
        added(j, first);
    return rc;
}

void node_pass_up(struct node *n, unsigned type, struct span body)
{
    bool data = type == MSG_OUTPUT || type == MSG_TRACE;

    if (!data)
        node_flush_exits(n);
    n->ops->send_up(type, body, data, n->arg);
}

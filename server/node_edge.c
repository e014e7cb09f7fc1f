/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/node_edge.h"

#include <stdlib.h>
#include <string.h>
#include "server/barrier_msg.h"
#include "server/node_pmix.h"

#define BLOCK_MAX 49152 /* key-value bytes in one message: with the rest it fits one frame */

/* What waits for room on an edge. */
struct edge_wait {
    struct edge_wait *next;
    struct barrier_out out;
    struct barrier_id id;
    uint32_t end; /* of the log, when it was to be sent */
    char group[]; /* of the id */
};

struct edge_queue {
    struct edge_wait *head, **tail;
};

int node_edges_setup(struct node_job *j)
{
    j->edge = calloc(j->node->kid_count + 1u, sizeof(*j->edge));
    for (uint32_t i = 0; j->edge != NULL && i <= j->node->kid_count; i++)
        j->edge[i].tail = &j->edge[i].head;
    return j->edge == NULL ? -ENOMEM : 0;
}

static void pop(struct node_job *j, struct edge_queue *q)
{
    struct edge_wait *w = q->head;

    q->head = w->next;
    if (w->next == NULL)
        q->tail = &q->head;
    kvs_hold(j->kvs, false);
    free(w);
}

void node_edges_done(struct node_job *j)
{
    for (uint32_t i = 0; j->edge != NULL && i <= j->node->kid_count; i++)
        while (j->edge[i].head != NULL)
            pop(j, &j->edge[i]);
    free(j->edge);
}

static uint32_t place_of(const struct node_job *j, unsigned edge)
{
    return edge == 0 ? LINKS_PARENT : j->node->kid_place[edge - 1];
}

static void send_piece(struct node_job *j, const struct barrier_out *o, struct span block, bool more)
{
    struct msg_out *m = node_barrier_map(j, o->id, o->round);
    struct node *n = j->node;
    struct span body;

    if (m != NULL) {
        if (block.n > 0)
            msg_put_bin(m, "data", block);
        msg_put_bool(m, "more", more);
        if (o->edge == 0)
            msg_put_u64(m, "count", o->count);
        else
            msg_put_i64(m, "rc", o->rc);
    }
    if (m == NULL || msg_out_done(m, &body) < 0)
        node_barrier_no_memory(j, o->edge == 0 ? MSG_BARRIER : MSG_RELEASE, o->id, o->round);
    else if (o->edge == 0)
        n->ops->send_up(MSG_BARRIER, body, false, n->arg);
    else
        (void)links_send(n->conf.links, place_of(j, o->edge), MSG_RELEASE, body, false);
    msg_out_free(m);
}

/* True: all of it is on its way. */
static bool push(struct node_job *j, const struct barrier_out *o, uint32_t end, bool hurry)
{
    for (;;) {
        bool more = kvs_has_unsent(j->kvs, o->edge, end);

        if (!more && !o->whole)
            return true;
        if (!hurry && more && links_is_busy(j->node->conf.links, place_of(j, o->edge)))
            return false;
        struct span block = kvs_unsent_to(j->kvs, o->edge, end, BLOCK_MAX);
        more = kvs_has_unsent(j->kvs, o->edge, end);
        send_piece(j, o, block, more || !o->whole);
        if (!more)
            break;
    }
    if (o->edge != 0 && o->whole)
        j->node->counters.down++;
    return true;
}

static void wait_for_room(struct node_job *j, const struct barrier_out *o, uint32_t end)
{
    struct edge_queue *q = &j->edge[o->edge];
    struct edge_wait *w = malloc(sizeof(*w) + o->id->group.n);

    if (w == NULL) {
        (void)push(j, o, end, true);
        return;
    }
    *w = (struct edge_wait){.out = *o, .id = *o->id, .end = end};
    memcpy(w->group, o->id->group.p, o->id->group.n);
    w->id.group.p = w->group;
    w->out.id = &w->id;
    *q->tail = w;
    q->tail = &w->next;
    kvs_hold(j->kvs, true);
}

void node_edge_send(struct node_job *j, const struct barrier_out *o)
{
    uint32_t end = kvs_end(j->kvs);

    /* A part is only sent ahead where that is possible: what it would have has its turn with the whole. */
    if ((j->edge[o->edge].head != NULL || !push(j, o, end, false)) && o->whole)
        wait_for_room(j, o, end);
}

static void go_on(struct node_job *j, unsigned edge, bool hurry)
{
    struct edge_queue *q = &j->edge[edge];

    while (q->head != NULL && push(j, &q->head->out, q->head->end, hurry))
        pop(j, q);
}

void node_edges_drain(struct node *n, uint32_t place)
{
    int kid = place == LINKS_PARENT ? -1 : node_kid_index(n, place);

    if (place != LINKS_PARENT && kid < 0)
        return;
    for (struct node_job *j = n->jobs; j != NULL; j = j->next)
        if (j->edge != NULL)
            go_on(j, (unsigned)(kid + 1), false);
    node_pmix_events_resume(n);
}

void node_edges_flush(struct node_job *j)
{
    for (uint32_t i = 0; j->edge != NULL && i <= j->node->kid_count; i++)
        go_on(j, i, true);
}

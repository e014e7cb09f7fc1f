/* SPDX-License-Identifier: BSD-3-Clause */
/* node_barrier.c - a job's barriers over the tree: who is in them, what travels, which can never be complete */
#include <errno.h>
#include <stdlib.h>
#include "common/io/log.h"
#include "server/barrier_msg.h"
#include "server/group.h"
#include "server/node_priv.h"

#define BLOCK_MAX 49152 /* key-value bytes in one message: with the rest it fits one frame */

static const struct barrier_id world = {.set = 0, .group = {"WORLD", 5}, .tag = 0};

uint64_t node_world_round(const struct node_job *j)
{
    return j->barriers == NULL ? 0 : barriers_round(j->barriers, &world);
}

/* --- groups ----------------------------------------------------------------------------------------------------- */

static int find_places(struct node_job *j)
{
    uint32_t *place_of_node, *of;

    if (j->place_of != NULL)
        return 0;
    place_of_node = job_place_of_node(j->job);
    of = job_node_of(j->job);
    if (place_of_node == NULL || of == NULL) {
        free(place_of_node);
        free(of);
        return -ENOMEM;
    }
    for (uint32_t rank = 0; rank < j->job->size; rank++)
        of[rank] = place_of_node[of[rank]];
    free(place_of_node);
    j->place_of = of;
    return 0;
}

static void count_rank(struct node_job *j, uint32_t rank, struct barrier_need *need)
{
    const struct node *n = j->node;
    uint32_t hop;

    need->total++;
    if (j->place_of[rank] == n->conf.place) {
        need->local++;
        return;
    }
    hop = tree_next_hop(j->tree, n->conf.place, j->place_of[rank]);
    if (hop != TREE_NONE)
        j->group_kids[node_kid_index(n, hop)]++;
}

/* How many of the ranks named are here and below each child. A name from a peer may have any order. */
static int count_members(struct node_job *j, struct span group, struct barrier_need *need)
{
    struct group_part part;
    int rc;

    while ((rc = group_next(&group, &part)) == 1) {
        if (part.last >= j->job->size)
            return -ERANGE;
        for (uint32_t rank = part.first; rank <= part.last; rank += part.step)
            count_rank(j, rank, need);
        if (need->total > j->job->size)
            return -EPROTO;
    }
    return rc;
}

static int on_need(const struct barrier_id *id, struct barrier_need *need, void *arg)
{
    struct node_job *j = arg;
    int rc;

    *need = (struct barrier_need){.local = j->task_count, .kids = j->kid_ranks, .total = j->job->size};
    if (span_is(id->group, "WORLD"))
        return 0;
    memset(j->group_kids, 0, j->node->kid_count * sizeof(*j->group_kids));
    need->kids = j->group_kids;
    if (span_is(id->group, "NODE")) {
        need->total = j->task_count;
        return 0;
    }
    need->local = need->total = 0;
    rc = find_places(j);
    return rc < 0 ? rc : count_members(j, id->group, need);
}

/* --- over the tree ---------------------------------------------------------------------------------------------- */

int node_barrier_enter(struct task *t, const struct barrier_id *id)
{
    struct node_job *j = t->job;
    int rc = kvs_commit(j->kvs, t->slot, t->rank, node_world_round(j));

    if (rc == 0)
        rc = barriers_enter(j->barriers, id, t->slot, NULL);
    if (rc == 0)
        node_stuck_arm(j);
    return rc;
}

struct msg_out *node_barrier_map(const struct node_job *j, const struct barrier_id *id, uint64_t round)
{
    struct msg_out *m = node_job_map(j);

    if (m != NULL)
        barrier_put(m, id, round);
    return m;
}

/* A barrier message or a release on one edge. */
struct barrier_out {
    const struct barrier_id *id;
    uint64_t round;
    uint32_t count; /* up */
    int rc;         /* down */
    unsigned edge;  /* of the kvs: 0 up, kid + 1 down */
    bool whole;     /* the last piece is marked so; else this is only a part of what is to come */
};

static void send_piece(struct node_job *j, const struct barrier_out *o, struct msg_out *m, bool more)
{
    struct node *n = j->node;
    struct span body;

    if (m != NULL) {
        msg_put_bool(m, "more", more);
        if (o->edge == 0)
            msg_put_u64(m, "count", o->count);
        else
            msg_put_i64(m, "rc", o->rc);
    }
    if (o->edge == 0) {
        node_send_map(n, MSG_BARRIER, m, false);
        return;
    }
    if (m != NULL && msg_out_done(m, &body) == 0)
        (void)links_send(n->conf.links, n->kid_place[o->edge - 1], MSG_RELEASE, body, false);
    msg_out_free(m);
}

/* All that this edge has not been sent, in pieces; the last one ends the message. */
static void send_barrier(struct node_job *j, const struct barrier_out *o)
{
    struct span block = kvs_unsent(j->kvs, o->edge, BLOCK_MAX);

    if (block.n == 0 && !o->whole)
        return;
    for (;;) {
        struct msg_out *m = node_barrier_map(j, o->id, o->round);

        if (m != NULL && block.n > 0)
            msg_put_bin(m, "data", block);
        block = kvs_unsent(j->kvs, o->edge, BLOCK_MAX);
        send_piece(j, o, m, block.n > 0 || !o->whole);
        if (block.n == 0)
            break;
    }
    if (o->edge != 0 && o->whole)
        j->node->counters.down++;
}

static void on_barrier_up(const struct barrier_id *id, uint64_t round, uint32_t count, void *arg)
{
    struct barrier_out o = {.id = id, .round = round, .count = count, .edge = 0, .whole = true};

    send_barrier(arg, &o);
}

static bool is_world(const struct barrier_id *id)
{
    return id->set == 0 && id->tag == 0 && span_is(id->group, "WORLD");
}

static void on_barrier_release(const struct barrier_id *id, const struct barrier_done *done, void *arg)
{
    struct node_job *j = arg;

    if (j->job->id == 0 && id->set == 0 && span_is(id->group, "WORLD") && done->rc == 0)
        j->node->counters.rounds++;
    for (uint32_t i = 0; i < done->nkids; i++) {
        struct barrier_out o = {
            .id = id, .round = done->round, .rc = done->rc, .edge = done->kids[i] + 1, .whole = true};

        send_barrier(j, &o);
    }
    if (kvs_install(j->kvs) < 0)
        log_error("out of memory for the job's keys");
    /* Ahead of the replies: whoever has one, and then looks at the bell, has this round behind him. */
    if (is_world(id) && done->rc == 0)
        ringer_ring(j->ringer, true);
    for (uint32_t i = 0; i < done->nslots; i++) {
        struct pmi_conn *c = node_pmi_find(j, done->slots[i], id->set);

        if (c == NULL) /* it has closed meanwhile */
            continue;
        session_barrier_out(c->session, id, done->rc);
    }
    if (is_world(id) && done->rc < 0)
        ringer_ring(j->ringer, false); /* for the replies that say so */
}

static const struct barrier_ops barrier_ops = {.need = on_need, .up = on_barrier_up, .release = on_barrier_release};

struct barrier_in {
    struct barrier_id id;
    struct span data;
    uint64_t round, count;
    int64_t rc;
    bool more;
};

/* Views into the body. */
static int read_barrier(const struct msg_in *m, struct barrier_in *b, struct err *err)
{
    int rc = barrier_read(m, &b->id, &b->round, err);

    if (rc < 0 || (rc = msg_get_bool(m, "more", &b->more, err)) < 0)
        return rc;
    (void)msg_get_u64(m, "count", 0, UINT32_MAX, &b->count, NULL);
    (void)msg_get_i64(m, "rc", &b->rc, NULL);
    (void)msg_get_bin(m, "data", &b->data, NULL);
    return 0;
}

static struct node_job *read_message(struct node *n, struct span body, struct msg_in **m, struct barrier_in *b,
                                     struct err *err)
{
    struct node_job *j;

    if (msg_in_new(m, body, err) < 0 || read_barrier(*m, b, err) < 0)
        return NULL;
    j = node_find_job(n, *m);
    if (j == NULL)
        err_set(err, -EPROTO, "of a job that is not here");
    return j;
}

void node_barrier_from_child(struct node *n, uint32_t place, struct span body)
{
    struct barrier_in b = {.data = SPAN_NONE};
    struct err err = {0};
    struct msg_in *m = NULL;
    struct node_job *j = read_message(n, body, &m, &b, &err);
    int kid = node_kid_index(n, place), rc = err.code;

    if (j != NULL && kid < 0)
        rc = err_set(&err, -EPROTO, "no such child");
    if (rc == 0 && b.data.n > 0)
        rc = kvs_append(j->kvs, (unsigned)kid + 1, b.data, &err);
    if (rc == 0 && !b.more) {
        n->counters.up++;
        rc = barriers_child(j->barriers, &b.id, (uint32_t)kid, b.round, (uint32_t)b.count, &err);
        node_stuck_arm(j);
    } else if (rc == 0 && n->conf.place != 0) {
        struct barrier_out o = {.id = &b.id, .round = b.round, .edge = 0, .whole = false};

        send_barrier(j, &o); /* cut through: pass on what came without waiting for the rest */
    }
    if (rc < 0)
        log_error("barrier message from place %u: %s", place, err.text);
    msg_in_free(m);
}

void node_release_from_parent(struct node *n, struct span body)
{
    struct barrier_in b = {.data = SPAN_NONE};
    struct err err = {0};
    struct msg_in *m = NULL;
    struct node_job *j = read_message(n, body, &m, &b, &err);
    int rc = err.code;

    if (rc == 0 && b.data.n > 0)
        rc = kvs_append(j->kvs, 0, b.data, &err);
    for (uint32_t i = 0; rc == 0 && b.more && i < n->kid_count; i++) {
        struct barrier_out o = {.id = &b.id, .round = b.round, .edge = i + 1, .whole = false};

        send_barrier(j, &o);
    }
    if (rc == 0 && !b.more)
        rc = barriers_release(j->barriers, &b.id, b.round, (int)b.rc, &err);
    if (rc < 0)
        log_error("release from the parent: %s", err.text);
    msg_in_free(m);
}

int node_barriers_setup(struct node_job *j)
{
    j->group_kids = calloc(j->node->kid_count + 1u, sizeof(*j->group_kids));
    j->barriers = barriers_new(j->task_count, j->node->kid_count, &barrier_ops, j);
    return j->group_kids == NULL || j->barriers == NULL ? -ENOMEM : 0;
}

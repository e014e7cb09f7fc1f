/* SPDX-License-Identifier: BSD-3-Clause */
/* node_barrier.c - a job's barriers over the tree: who is in them, what travels, which can never be complete */
#include <errno.h>
#include <stdlib.h>
#include "server/barrier_msg.h"
#include "server/group.h"
#include "server/node_edge.h"
#include "server/node_pmix.h"

static const struct barrier_id world = {.set = 0, .group = {"WORLD", 5}, .tag = 0};

uint64_t node_world_round(const struct node_job *j)
{
    return j->barriers == NULL ? 0 : barriers_round(j->barriers, &world);
}

/* --- groups ----------------------------------------------------------------------------------------------------- */

int node_find_places(struct node_job *j)
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
    rc = node_find_places(j);
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

static struct fault barrier_fault(const struct node_job *j, const struct barrier_id *id, uint64_t round)
{
    return (struct fault){.has_barrier = true, .job = j->job->id, .id = *id, .round = round};
}

void node_barrier_no_memory(struct node_job *j, unsigned type, const struct barrier_id *id, uint64_t round)
{
    struct fault f = barrier_fault(j, id, round);

    f.from = FAULT_OWN;
    f.type = type;
    f.text = span_of(type == 0 ? "out of memory for the job's keys" : "out of memory");
    node_fault(j->node, &f);
}

static void on_barrier_up(const struct barrier_id *id, uint64_t round, uint32_t count, void *arg)
{
    struct barrier_out o = {.id = id, .round = round, .count = count, .edge = 0, .whole = true};

    node_edge_send(arg, &o);
}

static bool is_world(const struct barrier_id *id)
{
    return id->set == 0 && id->tag == 0 && span_is(id->group, "WORLD");
}

static void on_barrier_release(const struct barrier_id *id, const struct barrier_done *done, void *arg)
{
    struct node_job *j = arg;
    int rc = done->rc;

    if (j->job->id == 0 && id->set == 0 && span_is(id->group, "WORLD") && done->rc == 0)
        j->node->counters.rounds++;
    for (uint32_t i = 0; i < done->nkids; i++) {
        struct barrier_out o = {
            .id = id, .round = done->round, .rc = done->rc, .edge = done->kids[i] + 1, .whole = true};

        node_edge_send(j, &o);
    }
    if (kvs_install(j->kvs) < 0) { /* nobody goes on as if he could read them */
        node_barrier_no_memory(j, 0, id, done->round);
        if (!j->job->keep_going)
            return;
        rc = -ENOMEM;
    }
    /* Ahead of the replies: whoever has one, and then looks at the bell, has this round behind him. */
    if (is_world(id) && rc == 0)
        ringer_ring(j->ringer, true);
    for (uint32_t i = 0; i < done->nslots; i++) {
        struct pmi_conn *c = node_pmi_find(j, done->slots[i], id->set);

        if (c == NULL) /* it has closed meanwhile */
            continue;
        session_barrier_out(c->session, id, rc);
    }
    if (is_world(id) && rc < 0)
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

/* *j NULL: the job is over here. It is over once all of its ranks have ended, and what they had sent before that has
 * come before it. So this is of a job of which a part only could be started, or lost with a node under --keep-going. */
static int read_message(struct node *n, struct span body, struct msg_in **m, struct node_job **j, struct err *err)
{
    int rc = msg_in_new(m, body, err);

    return rc < 0 ? rc : node_find_job(n, *m, j, err);
}

/* Those that wait in it would wait for ever. */
static void refuse(struct node_job *j, const struct barrier_in *b, uint32_t from, const struct err *why)
{
    struct fault f = barrier_fault(j, &b->id, b->round);

    f.from = from;
    f.type = from == FAULT_PARENT ? MSG_RELEASE : MSG_BARRIER;
    f.text = span_of(why->text);
    node_fault(j->node, &f);
}

static int entered_below(struct node_job *j, uint32_t place, const struct barrier_in *b, struct err *err)
{
    struct node *n = j->node;
    int kid = node_kid_index(n, place), rc = 0;

    if (kid < 0)
        return err_set(err, -EPROTO, "no such child");
    if (b->data.n > 0)
        rc = kvs_append(j->kvs, (unsigned)kid + 1, b->data, err);
    if (rc == 0 && !b->more) {
        n->counters.up++;
        rc = barriers_child(j->barriers, &b->id, (uint32_t)kid, b->round, (uint32_t)b->count, err);
        node_stuck_arm(j);
    } else if (rc == 0 && n->conf.place != 0) {
        struct barrier_out o = {.id = &b->id, .round = b->round, .edge = 0, .whole = false};

        node_edge_send(j, &o); /* cut through: pass on what came without waiting for the rest */
    }
    return rc;
}

static int released(struct node_job *j, uint32_t from, const struct barrier_in *b, struct err *err)
{
    int rc = b->data.n > 0 ? kvs_append(j->kvs, 0, b->data, err) : 0;

    (void)from; /* there is one parent */
    for (uint32_t i = 0; rc == 0 && b->more && i < j->node->kid_count; i++) {
        struct barrier_out o = {.id = &b->id, .round = b->round, .edge = i + 1, .whole = false};

        node_edge_send(j, &o);
    }
    if (rc == 0 && !b->more)
        rc = barriers_release(j->barriers, &b->id, b->round, (int)b->rc, err);
    return rc;
}

typedef int take_fn(struct node_job *j, uint32_t from, const struct barrier_in *b, struct err *err);

static void on_message(struct node *n, uint32_t from, enum msg_type type, struct span body, take_fn *take)
{
    struct barrier_in b = {.data = SPAN_NONE};
    struct err err = {0};
    struct msg_in *m = NULL;
    struct node_job *j = NULL;
    int rc = read_message(n, body, &m, &j, &err);

    if (rc == 0 && j != NULL)
        rc = read_barrier(m, &b, &err);
    if (rc < 0)
        node_refuse(n, from, type, &err);
    else if (j != NULL && take(j, from, &b, &err) < 0)
        refuse(j, &b, from, &err);
    msg_in_free(m);
}

void node_barrier_from_child(struct node *n, uint32_t place, struct span body)
{
    on_message(n, place, MSG_BARRIER, body, entered_below);
}

void node_release_from_parent(struct node *n, struct span body)
{
    on_message(n, FAULT_PARENT, MSG_RELEASE, body, released);
}

int node_barriers_setup(struct node_job *j)
{
    j->group_kids = calloc(j->node->kid_count + 1u, sizeof(*j->group_kids));
    j->barriers = barriers_new(j->task_count, j->node->kid_count, &barrier_ops, j);
    return j->group_kids == NULL || j->barriers == NULL ? -ENOMEM : node_edges_setup(j);
}

struct node_counters node_counters(const struct node *n)
{
    return n->counters;
}

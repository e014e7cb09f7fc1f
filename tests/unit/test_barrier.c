/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "common/util.h"
#include "common/limits.h"
#include "server/barrier.h"

#define NODES 40
#define LOCAL 6

/* A tree of nodes in one process. Messages between them lie in a bag and are delivered in random order. */
struct sim_node {
    struct barriers *b;
    struct sim *sim;
    int parent; /* -1: root */
    unsigned kid_no;
    unsigned nkids, nlocal;
    int kids[NODES];
    unsigned out[LOCAL]; /* rounds each local task came out of, of any barrier */
    bool in[LOCAL];
    int last_rc;
};

struct sim_msg {
    int to, from;
    bool is_up;
    uint64_t round;
    uint32_t count;
    int rc;
    uint32_t group; /* 0: WORLD, else node number + 1 */
};

struct sim {
    struct sim_node node[NODES];
    unsigned nodes, nmsgs;
    struct sim_msg msg[NODES * 4];
    unsigned ups, downs;
};

static const char *const names[] = {"WORLD", "NODE"};

/* Members: WORLD has all; "NODE" with tag n has the tasks of node n. */
static uint32_t members_below(const struct sim *s, int n, const struct barrier_id *id)
{
    uint32_t sum = span_is(id->group, "WORLD") || id->tag == n ? s->node[n].nlocal : 0;

    for (unsigned i = 0; i < s->node[n].nkids; i++)
        sum += members_below(s, s->node[n].kids[i], id);
    return sum;
}

static int sim_need(const struct barrier_id *id, struct barrier_need *need, void *arg)
{
    static uint32_t kids[NODES];
    struct sim_node *n = arg;
    int self = (int)(n - n->sim->node);

    if (!span_is(id->group, "WORLD") && !span_is(id->group, "NODE"))
        return -ENOENT;
    need->local = span_is(id->group, "WORLD") || id->tag == self ? n->nlocal : 0;
    for (unsigned i = 0; i < n->nkids; i++)
        kids[i] = members_below(n->sim, n->kids[i], id);
    need->kids = kids;
    need->total = members_below(n->sim, 0, id);
    return 0;
}

static void post(struct sim *s, struct sim_msg m)
{
    cr_assert_lt(s->nmsgs, ARRAY_SIZE(s->msg));
    s->msg[s->nmsgs++] = m;
}

static uint32_t group_of(const struct barrier_id *id)
{
    return span_is(id->group, "WORLD") ? 0 : (uint32_t)id->tag + 1;
}

static struct barrier_id id_for(uint32_t group)
{
    return (struct barrier_id){.group = span_of(names[group > 0]), .tag = group ? (int64_t)group - 1 : 0};
}

static void sim_up(const struct barrier_id *id, uint64_t round, uint32_t count, void *arg)
{
    struct sim_node *n = arg;

    cr_assert_geq(n->parent, 0);
    n->sim->ups++;
    post(n->sim, (struct sim_msg){n->parent, (int)(n - n->sim->node), true, round, count, 0, group_of(id)});
}

static void sim_release(const struct barrier_id *id, const struct barrier_done *done, void *arg)
{
    struct sim_node *n = arg;

    n->last_rc = done->rc;
    for (uint32_t i = 0; i < done->nkids; i++) {
        n->sim->downs++;
        post(n->sim, (struct sim_msg){n->kids[done->kids[i]], 0, false, done->round, 0, done->rc, group_of(id)});
    }
    for (uint32_t i = 0; i < done->nslots; i++) {
        cr_assert(n->in[done->slots[i]]);
        n->in[done->slots[i]] = false;
        n->out[done->slots[i]]++;
    }
}

static const struct barrier_ops sim_ops = {sim_need, sim_up, sim_release};

static void sim_init(struct sim *s, unsigned nodes, unsigned width, bool root_is_node)
{
    memset(s, 0, sizeof(*s));
    s->nodes = nodes;
    for (unsigned i = 0; i < nodes; i++) {
        struct sim_node *n = &s->node[i];

        n->sim = s;
        n->parent = i == 0 ? -1 : (int)(width ? (i - 1) / width : (unsigned)rand() % i);
        n->nlocal = i == 0 && !root_is_node ? 0 : 1 + (unsigned)rand() % LOCAL;
        if (i > 0) {
            struct sim_node *p = &s->node[n->parent];

            n->kid_no = p->nkids;
            p->kids[p->nkids++] = (int)i;
        }
    }
    for (unsigned i = 0; i < nodes; i++) {
        s->node[i].b = barriers_new(s->node[i].nlocal, s->node[i].nkids, &sim_ops, &s->node[i]);
        cr_assert_not_null(s->node[i].b);
    }
}

static void sim_done(struct sim *s)
{
    for (unsigned i = 0; i < s->nodes; i++)
        barriers_free(s->node[i].b);
}

static void deliver_one(struct sim *s)
{
    unsigned pick = (unsigned)rand() % s->nmsgs;
    struct sim_msg m = s->msg[pick];
    struct barrier_id id = id_for(m.group);
    struct err err = {0};
    int rc;

    s->msg[pick] = s->msg[--s->nmsgs];
    if (m.is_up)
        rc = barriers_child(s->node[m.to].b, &id, s->node[m.from].kid_no, m.round, m.count, &err);
    else
        rc = barriers_release(s->node[m.to].b, &id, m.round, m.rc, &err);
    cr_assert_eq(rc, 0, "%s", err.text);
}

static void enter(struct sim_node *n, unsigned slot, uint32_t group)
{
    struct barrier_id id = id_for(group);

    n->in[slot] = true;
    cr_assert_eq(barriers_enter(n->b, &id, slot, NULL), 0);
}

/* Every task runs `rounds` barriers; each may run ahead as far as the barrier lets it. */
static void run_world(struct sim *s, unsigned rounds)
{
    for (;;) {
        unsigned min = rounds, max = 0;
        bool can[NODES * LOCAL + 1] = {false};
        unsigned choices = 0;

        for (unsigned i = 0; i < s->nodes; i++)
            for (unsigned t = 0; t < s->node[i].nlocal; t++) {
                unsigned out = s->node[i].out[t];

                min = MIN(min, out);
                max = MAX(max, out + s->node[i].in[t]);
                can[i * LOCAL + t] = !s->node[i].in[t] && out < rounds;
                choices += can[i * LOCAL + t];
            }
        /* Nobody is out of round r+1 before everybody has entered it. */
        cr_assert_leq(max, min + 2);
        if (s->nmsgs > 0 && (choices == 0 || rand() % 2)) {
            deliver_one(s);
            continue;
        }
        if (choices == 0)
            break;
        unsigned at = (unsigned)rand() % (s->nodes * LOCAL);
        while (!can[at])
            at = (at + 1) % (s->nodes * LOCAL);
        enter(&s->node[at / LOCAL], at % LOCAL, 0);
    }
    for (unsigned i = 0; i < s->nodes; i++)
        for (unsigned t = 0; t < s->node[i].nlocal; t++)
            cr_assert_eq(s->node[i].out[t], rounds);
}

Test(barrier, random_trees_random_order)
{
    static struct sim s;

    for (unsigned seed = 1; seed <= 60; seed++) {
        unsigned nodes, rounds = 5;

        srand(seed);
        nodes = 1 + (unsigned)rand() % NODES;
        sim_init(&s, nodes, (unsigned)rand() % 8, rand() % 2 || nodes == 1);
        run_world(&s, rounds);
        /* A root without tasks and with one child has nothing to do: the lowest node that holds all releases. */
        unsigned top = 0;
        while (s.node[top].nlocal == 0 && s.node[top].nkids == 1)
            top = (unsigned)s.node[top].kids[0];
        cr_expect_eq(s.ups, (nodes - 1 - (top > 0)) * rounds);
        cr_expect_eq(s.downs, (nodes - 1 - (top > 0)) * rounds);
        sim_done(&s);
    }
}

Test(barrier, group_on_one_node_never_leaves_it)
{
    static struct sim s;

    srand(7);
    sim_init(&s, 20, 3, true);
    for (int round = 0; round < 3; round++)
        for (unsigned i = 0; i < s.nodes; i++)
            for (unsigned t = 0; t < s.node[i].nlocal; t++)
                enter(&s.node[i], t, i + 1);
    for (unsigned i = 0; i < s.nodes; i++)
        cr_expect_eq(s.node[i].out[0], 3);
    cr_expect_eq(s.ups + s.downs, 0);
    sim_done(&s);
}

/* A node and a barrier of the whole world at once: each task is in one of each. */
Test(barrier, several_at_once)
{
    static struct sim s;
    struct barrier_id world = id_for(0);

    srand(3);
    sim_init(&s, 7, 2, true);
    for (unsigned i = 0; i < s.nodes; i++) {
        cr_expect_eq(barriers_waiting(s.node[i].b, &world, NULL, 0), 0);
        for (unsigned t = 0; t < s.node[i].nlocal; t++)
            enter(&s.node[i], t, 0);
    }
    /* The messages are still under way: the whole of the world waits, and the groups go on. */
    for (unsigned i = 0; i < s.nodes; i++) {
        struct barrier_id id = id_for(i + 1);

        cr_expect_eq(barriers_waiting(s.node[i].b, &world, NULL, 0), s.node[i].nlocal);
        for (unsigned t = 0; t < s.node[i].nlocal; t++)
            cr_expect_eq(barriers_enter(s.node[i].b, &id, t, NULL), 0);
        cr_expect_eq(barriers_round(s.node[i].b, &id), 1);
        for (unsigned t = 0; t < s.node[i].nlocal; t++)
            s.node[i].in[t] = true; /* still in the world's */
    }
    while (s.nmsgs > 0)
        deliver_one(&s);
    for (unsigned i = 0; i < s.nodes; i++)
        cr_expect_eq(s.node[i].out[0], 2);
    sim_done(&s);
}

Test(barrier, wrong_rounds_and_counts_are_refused)
{
    static struct sim s;
    struct barrier_id world = id_for(0), other = {.group = span_of("nobody")};
    struct barriers *b;
    uint32_t kids[4];
    struct err err;

    srand(5);
    sim_init(&s, 3, 2, true);
    b = s.node[0].b;
    uint32_t count = s.node[1].nlocal;
    cr_expect_eq(barriers_child(b, &world, 0, 1, count, &err), -EPROTO);
    cr_expect_eq(barriers_child(b, &world, 0, 0, count + 1, &err), -EPROTO);
    cr_expect_eq(barriers_child(b, &world, 0, 0, 0, &err), -EPROTO);
    cr_expect_eq(barriers_child(b, &world, 2, 0, count, &err), -ERANGE);
    cr_expect_eq(barriers_child(b, &other, 0, 0, count, &err), -EPROTO);
    cr_expect_eq(barriers_enter(b, &other, 0, &err), -ENOENT);
    cr_expect_eq(barriers_enter(b, &world, s.node[0].nlocal, &err), -ERANGE);
    cr_expect_eq(barriers_release(b, &world, 0, 0, &err), -EPROTO);
    cr_expect_eq(barriers_awaited_kids(b, &world, kids, 4), 0);

    cr_expect_eq(barriers_child(b, &world, 0, 0, count, &err), 0);
    cr_expect_eq(barriers_child(b, &world, 0, 0, count, &err), -EPROTO);
    cr_expect_eq(barriers_awaited_kids(b, &world, kids, 4), 1);
    cr_expect_eq(kids[0], 1);

    /* A leaf: released only when it has sent up, and for that round alone. */
    b = s.node[1].b;
    for (unsigned t = 0; t < count; t++) {
        cr_expect_eq(barriers_release(b, &world, 0, 0, &err), -EPROTO);
        enter(&s.node[1], t, 0);
        cr_expect_eq(barriers_enter(b, &world, t, &err), -EALREADY);
    }
    cr_expect_eq(barriers_release(b, &world, 1, 0, &err), -EPROTO);
    cr_expect_eq(barriers_release(b, &world, 0, 0, &err), 0);
    cr_expect_eq(barriers_release(b, &world, 0, 0, &err), -EPROTO);
    cr_expect_eq(barriers_round(b, &world), 1);
    sim_done(&s);
}

Test(barrier, parent_says_failed)
{
    static struct sim s;
    struct barrier_id world = id_for(0);

    srand(9);
    sim_init(&s, 2, 1, true);
    for (unsigned t = 0; t < s.node[1].nlocal; t++)
        enter(&s.node[1], t, 0);
    cr_expect_eq(barriers_release(s.node[1].b, &world, 0, -EPIPE, NULL), 0);
    cr_expect_eq(s.node[1].last_rc, -EPIPE);
    cr_expect_eq(s.node[1].out[0], 1);
    sim_done(&s);
}

Test(barrier, broken_answers_at_once)
{
    static struct sim s;
    struct barrier_id world = id_for(0), odd = {.set = 4, .group = span_of("nobody"), .tag = -1};
    uint32_t slots[LOCAL];

    srand(1);
    sim_init(&s, 3, 2, true);
    while (s.node[0].nlocal < 2) {
        sim_done(&s);
        sim_init(&s, 3, 2, true);
    }
    enter(&s.node[0], 1, 0);
    cr_expect_eq(barriers_waiting(s.node[0].b, &world, slots, LOCAL), 1);
    cr_expect_eq(slots[0], 1);
    barriers_break(s.node[0].b, -EPIPE);
    cr_expect_eq(s.node[0].out[1], 1);
    cr_expect_eq(s.node[0].last_rc, -EPIPE);
    s.node[0].last_rc = 0;
    enter(&s.node[0], 0, 0);
    cr_expect_eq(s.node[0].out[0], 1);
    cr_expect_eq(s.node[0].last_rc, -EPIPE);
    s.node[0].in[0] = true;
    cr_expect_eq(barriers_enter(s.node[0].b, &odd, 0, NULL), 0);
    cr_expect_eq(barriers_child(s.node[0].b, &world, 0, 99, 1, NULL), 0);
    cr_expect_eq(barriers_release(s.node[0].b, &world, 99, 0, NULL), 0);
    sim_done(&s);
}

Test(barrier, one_broken_answers_at_once_and_others_go_on)
{
    static struct sim s;
    struct barrier_id world = id_for(0), never = {.set = 1, .group = span_of("WORLD")};

    srand(1);
    sim_init(&s, 1, 0, true);
    while (s.node[0].nlocal != 2) {
        sim_done(&s);
        sim_init(&s, 1, 0, true);
    }
    enter(&s.node[0], 1, 1);
    struct barrier_id group = id_for(1);
    cr_expect_eq(barriers_break_one(s.node[0].b, &group, -EPIPE), 0);
    cr_expect_eq(s.node[0].out[1], 1);
    cr_expect_eq(s.node[0].last_rc, -EPIPE);
    enter(&s.node[0], 0, 1);
    cr_expect_eq(s.node[0].last_rc, -EPIPE);
    cr_expect_eq(barriers_release(s.node[0].b, &group, 99, 0, NULL), 0, "what comes of it is ignored");
    cr_expect_eq(barriers_break_one(s.node[0].b, &never, -EIO), 0);
    s.node[0].in[0] = true;
    cr_expect_eq(barriers_enter(s.node[0].b, &never, 0, NULL), 0);
    cr_expect_eq(s.node[0].last_rc, -EIO);
    enter(&s.node[0], 0, 0);
    enter(&s.node[0], 1, 0);
    cr_expect_eq(s.node[0].last_rc, 0);
    cr_expect_eq(barriers_round(s.node[0].b, &world), 1);
    sim_done(&s);
}

/* The next round is entered from inside the release of the one before. */
struct again {
    struct barriers *b;
    unsigned rounds;
};

static int again_need(const struct barrier_id *id, struct barrier_need *need, void *arg)
{
    (void)id;
    (void)arg;
    *need = (struct barrier_need){.local = 1, .total = 1};
    return 0;
}

static void again_up(const struct barrier_id *id, uint64_t round, uint32_t count, void *arg)
{
    (void)id;
    (void)round;
    (void)count;
    (void)arg;
    cr_assert_fail("a job of one never goes up");
}

static void again_release(const struct barrier_id *id, const struct barrier_done *done, void *arg)
{
    struct again *a = arg;

    cr_expect_eq(done->round, a->rounds);
    if (++a->rounds < 100)
        cr_expect_eq(barriers_enter(a->b, id, done->slots[0], NULL), 0);
}

Test(barrier, enter_from_release)
{
    static const struct barrier_ops ops = {again_need, again_up, again_release};
    struct again a = {0};
    struct barrier_id id = {.group = span_of("WORLD")};

    a.b = barriers_new(1, 0, &ops, &a);
    cr_expect_eq(barriers_enter(a.b, &id, 0, NULL), 0);
    cr_expect_eq(a.rounds, 100);
    cr_expect_eq(barriers_round(a.b, &id), 100);
    barriers_free(a.b);
}

static int never_need(const struct barrier_id *id, struct barrier_need *need, void *arg)
{
    (void)id;
    (void)arg;
    *need = (struct barrier_need){.local = 2, .total = 2};
    return 0;
}

Test(barrier, under_way_is_capped)
{
    static const struct barrier_ops ops = {never_need, again_up, again_release};
    struct barriers *b = barriers_new(2, 0, &ops, NULL);
    char big[BARRIER_NAME_MAX + 1];
    struct barrier_id id = {.group = span_of("g")};

    for (id.tag = 0; id.tag < BARRIERS_MAX; id.tag++)
        cr_assert_eq(barriers_enter(b, &id, 0, NULL), 0);
    cr_expect_eq(barriers_enter(b, &id, 0, NULL), -ENOSPC);
    memset(big, 'x', sizeof(big));
    id.group = (struct span){big, sizeof(big)};
    cr_expect_eq(barriers_enter(b, &id, 0, NULL), -ENOENT);
    barriers_free(b);
}

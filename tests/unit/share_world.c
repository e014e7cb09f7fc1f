/* SPDX-License-Identifier: BSD-3-Clause */
#include "share_world.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define NONE UINT32_MAX

struct event {
    uint64_t at;
    uint32_t from, host;
};

struct node {
    struct share *share; /* NULL: not up */
    uint32_t parent, depth, children, failed, up;
    uint64_t busy_until;
};

struct world {
    const struct world_conf *conf;
    struct node *node;
    struct event *heap;
    uint32_t events;
    struct world_result result;
};

static void swap(struct event *a, struct event *b)
{
    struct event t = *a;

    *a = *b;
    *b = t;
}

static void push(struct world *w, struct event e)
{
    uint32_t i = w->events++;

    for (w->heap[i] = e; i > 0 && w->heap[(i - 1) / 2].at > w->heap[i].at; i = (i - 1) / 2)
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
}

static struct event pop(struct world *w)
{
    struct event top = w->heap[0];
    uint32_t i = 0;

    w->heap[0] = w->heap[--w->events];
    for (;;) {
        uint32_t least = i, left = 2 * i + 1;

        for (uint32_t k = left; k <= left + 1 && k < w->events; k++)
            if (w->heap[k].at < w->heap[least].at)
                least = k;
        if (least == i)
            return top;
        swap(&w->heap[i], &w->heap[least]);
        i = least;
    }
}

static void boot(struct world *w, uint32_t id, uint32_t parent, struct share_times times)
{
    struct share_conf conf = {
        .width = w->conf->width,
        .logins = w->conf->logins,
        .login_us = times.login_us,
        .gap_us = times.gap_us,
        .is_root = id == 0,
    };
    struct node *n = &w->node[id];

    n->share = share_new(&conf);
    n->parent = parent;
    n->depth = parent == NONE ? 0 : w->node[parent].depth + 1;
    if (n->depth > w->result.deepest)
        w->result.deepest = n->depth;
}

/* All that a node does at one moment; what it does to others is done there and then. */
static void act(struct world *w, uint32_t id, uint64_t now)
{
    struct node *n = &w->node[id];
    struct share_range range;
    uint32_t child, host;

    while (share_deal(n->share, now, &child, &range)) {
        cr_assert_eq(share_add(w->node[child].share, range), 0);
        act(w, child, now);
    }
    while (share_next(n->share, now, &host)) {
        n->busy_until = (n->busy_until > now ? n->busy_until : now) + w->conf->gap_us;
        push(w, (struct event){n->busy_until - w->conf->gap_us + w->conf->login_us, id, host});
    }
    if (share_wants(n->share, now)) {
        cr_assert_eq(share_wanted(w->node[n->parent].share, id), 0);
        act(w, n->parent, now);
    }
}

static void hand_back(struct world *w, uint32_t id, uint64_t now)
{
    struct node *n = &w->node[id];
    struct share_range range;

    w->result.warnings++;
    cr_assert_eq(share_close(w->node[n->parent].share, id), 0);
    while (share_give_up(n->share, &range))
        cr_assert_eq(share_back(w->node[n->parent].share, id, range), 0);
    act(w, n->parent, now);
}

/* A host that could not be logged in to from one place is logged in to by the launcher. */
static void failed(struct world *w, const struct event *e)
{
    struct node *n = &w->node[e->from];

    cr_assert_eq(share_failed(n->share, e->host), 0);
    cr_assert(e->from != 0, "host %u", e->host);
    for (uint32_t id = e->from; id != 0; id = w->node[id].parent)
        cr_assert_eq(share_drop(w->node[w->node[id].parent].share, id, e->host), 0);
    cr_assert_eq(share_keep(w->node[0].share, e->host), 0);
    if (++n->failed > 0 && n->up == 0 && share_under_way(n->share) == 0)
        hand_back(w, e->from, e->at);
    act(w, 0, e->at);
}

struct world_result world_run(const struct world_conf *conf)
{
    struct world w = {.conf = conf};

    w.node = calloc(conf->hosts + 1u, sizeof(*w.node));
    w.heap = calloc(conf->hosts + 1u, sizeof(*w.heap));
    cr_assert(w.node != NULL && w.heap != NULL);
    boot(&w, 0, NONE, (struct share_times){0, 0});
    cr_assert_eq(share_add(w.node[0].share, (struct share_range){1, conf->hosts}), 0);
    act(&w, 0, 0);
    while (w.events > 0) {
        struct event e = pop(&w);
        struct node *n = &w.node[e.from];

        if (conf->fails != NULL && conf->fails(e.from, e.host)) {
            failed(&w, &e);
            continue;
        }
        cr_assert(w.node[e.host].share == NULL, "host %u comes twice", e.host);
        cr_assert_eq(share_up(n->share, e.host, e.at), 0);
        boot(&w, e.host, e.from, share_times(n->share));
        n->up++;
        if (++n->children > w.result.widest)
            w.result.widest = n->children;
        w.result.up++;
        w.result.end_us = e.at;
        act(&w, e.from, e.at);
    }
    for (uint32_t i = 0; i <= conf->hosts; i++)
        share_free(w.node[i].share);
    free(w.node);
    free(w.heap);
    return w.result;
}

uint64_t world_bound_us(uint32_t hosts, uint64_t login_us, uint64_t gap_us)
{
    uint64_t step = gap_us / 8, login = (login_us + step - 1) / step, t = 0;
    double *n = calloc(1u << 20, sizeof(*n));

    for (;; t++) {
        cr_assert_lt(t, 1u << 20);
        n[t] = 1;
        if (t >= login)
            n[t] = n[t - 8] + n[t - login];
        if (n[t] >= hosts + 1.0)
            break;
    }
    free(n);
    return t * step;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "share_world.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define NONE UINT32_MAX
#define STEPS 16 /* of a gap, in which the bound is counted */

enum kind { UP, DEALT, WANTED };

struct event {
    uint64_t at, seq; /* those of one moment in the order in which they were made */
    enum kind kind;
    uint32_t to, from; /* UP: the login of `to` to `from` is over */
    struct share_range range;
};

struct node {
    struct share *share; /* NULL: not up */
    uint32_t parent, depth, children, failed;
    uint64_t busy_until;
};

struct world {
    const struct world_conf *conf;
    struct node *node; /* [hosts + 1]: 0 is the launcher */
    struct event *heap;
    size_t events, room;
    uint64_t seq;
    struct world_result result;
};

static void *must(void *p)
{
    if (p == NULL) {
        fputs("share_world: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void swap(struct event *a, struct event *b)
{
    struct event t = *a;

    *a = *b;
    *b = t;
}

static void push(struct world *w, struct event e)
{
    size_t i = w->events++;

    if (i == w->room) {
        w->room = w->room == 0 ? 1024 : 2 * w->room;
        w->heap = must(realloc(w->heap, w->room * sizeof(*w->heap)));
    }
    e.seq = w->seq++;
    w->heap[i] = e;
    for (; i > 0 && is_before(&w->heap[i], &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
}

static struct event pop(struct world *w)
{
    struct event top = w->heap[0];
    size_t i = 0;

    w->heap[0] = w->heap[--w->events];
    for (;;) {
        size_t least = i;

        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < w->events; k++)
            if (is_before(&w->heap[k], &w->heap[least]))
                least = k;
        if (least == i)
            return top;
        swap(&w->heap[i], &w->heap[least]);
        i = least;
    }
}

static void boot(struct world *w, uint32_t id, uint32_t parent, struct share_times times)
{
    struct share_conf conf = {.width = w->conf->width,
                              .logins = w->conf->logins,
                              .login_us = times.login_us,
                              .gap_us = times.gap_us,
                              .is_root = id == 0};
    struct node *n = &w->node[id];

    n->share = must(share_new(&conf));
    n->parent = parent;
    n->depth = parent == NONE ? 0 : w->node[parent].depth + 1;
    if (n->depth > w->result.deepest)
        w->result.deepest = n->depth;
}

static void log_in(struct world *w, uint32_t id, uint32_t host, uint64_t now)
{
    struct node *n = &w->node[id];
    uint64_t begin = n->busy_until > now ? n->busy_until : now;

    n->busy_until = begin + w->conf->gap_us;
    push(w, (struct event){.at = begin + w->conf->login_us, .kind = UP, .to = id, .from = host});
}

static void must_do(int rc)
{
    assert(rc == 0);
    (void)rc;
}

static void happen(struct world *w, const struct event *e);

/* A word that takes no time is not overtaken by a login that fails meanwhile. */
static void tell(struct world *w, struct event e)
{
    e.at += w->conf->hop_us;
    w->result.words++;
    if (w->conf->hop_us == 0)
        happen(w, &e);
    else
        push(w, e);
}

/* All that a node does at one moment. */
static void act(struct world *w, uint32_t id, uint64_t now)
{
    struct node *n = &w->node[id];
    struct share_range range;
    uint32_t child, host;

    while (share_deal(n->share, now, &child, &range))
        tell(w, (struct event){.at = now, .kind = DEALT, .to = child, .range = range});
    while (share_next(n->share, now, &host))
        log_in(w, id, host, now);
    if (share_wants(n->share, now))
        tell(w, (struct event){.at = now, .kind = WANTED, .to = n->parent, .from = id});
}

static void hand_back(struct world *w, uint32_t id, uint64_t now)
{
    struct node *n = &w->node[id];
    struct share_range range;

    w->result.warnings++;
    must_do(share_close(w->node[n->parent].share, id));
    while (share_give_up(n->share, &range))
        must_do(share_back(w->node[n->parent].share, id, range));
    act(w, n->parent, now);
}

/* A host that could not be logged in to from one place is logged in to by the launcher. */
static void failed(struct world *w, const struct event *e)
{
    struct node *n = &w->node[e->to];

    must_do(share_failed(n->share, e->from));
    assert(e->to != 0); /* the launcher has nobody behind it */
    for (uint32_t id = e->to; id != 0; id = w->node[id].parent)
        must_do(share_drop(w->node[w->node[id].parent].share, id, e->from));
    must_do(share_keep(w->node[0].share, e->from));
    if (++n->failed > 0 && n->children == 0 && share_under_way(n->share) == 0)
        hand_back(w, e->to, e->at);
    act(w, 0, e->at);
}

static void came_up(struct world *w, const struct event *e)
{
    struct node *n = &w->node[e->to];

    assert(w->node[e->from].share == NULL); /* nobody comes twice */
    must_do(share_up(n->share, e->from, e->at));
    boot(w, e->from, e->to, share_times(n->share));
    if (++n->children > w->result.widest)
        w->result.widest = n->children;
    w->result.up++;
    w->result.end_us = e->at;
}

static void happen(struct world *w, const struct event *e)
{
    switch (e->kind) {
    case UP:
        if (w->conf->fails != NULL && w->conf->fails(e->to, e->from)) {
            failed(w, e);
            return;
        }
        came_up(w, e);
        break;
    case DEALT:
        must_do(share_add(w->node[e->to].share, e->range));
        break;
    case WANTED:
        must_do(share_wanted(w->node[e->to].share, e->from));
        break;
    }
    act(w, e->to, e->at);
}

struct world_result world_run(const struct world_conf *conf)
{
    struct world w = {.conf = conf};

    w.node = must(calloc(conf->hosts + 1u, sizeof(*w.node)));
    boot(&w, 0, NONE, (struct share_times){0, 0});
    must_do(share_add(w.node[0].share, (struct share_range){1, conf->hosts}));
    act(&w, 0, 0);
    while (w.events > 0) {
        struct event e = pop(&w);

        happen(&w, &e);
    }
    for (uint32_t i = 0; i <= conf->hosts; i++)
        share_free(w.node[i].share);
    free(w.node);
    free(w.heap);
    return w.result;
}

/* Callers up at time t, the launcher among them. */
uint64_t world_bound_us(uint32_t hosts, uint64_t login_us, uint64_t gap_us)
{
    uint64_t t = 0, login = (login_us * STEPS + gap_us - 1) / gap_us, room = 0;
    double *n = NULL;

    for (;; t++) {
        if (t == room) {
            room = room == 0 ? 4096 : 2 * room;
            n = must(realloc(n, room * sizeof(*n)));
        }
        n[t] = t < login ? 1 : n[t - STEPS] + n[t - login];
        if (n[t] >= hosts + 1.0)
            break;
    }
    free(n);
    return t * gap_us / STEPS;
}

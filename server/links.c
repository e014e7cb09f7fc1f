/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/links.h"

#include <assert.h>
#include <stdlib.h>
#include "common/util.h"

struct edge {
    struct links *owner;
    uint32_t place;
    struct conn *conn;
};

struct links {
    const struct links_ops *ops; /* lent */
    void *arg;
    struct edge *parent;
    struct edge **child; /* [count], room for cap */
    uint32_t count, cap;
    bool finishing, told;
    struct links_stats stats; /* bytes: of edges that have closed */
};

struct links *links_new(const struct links_ops *ops, void *arg)
{
    struct links *l = calloc(1, sizeof(*l));

    if (l == NULL)
        return NULL;
    l->ops = ops;
    l->arg = arg;
    return l;
}

void links_free(struct links *l)
{
    if (l == NULL)
        return;
    assert(l->parent == NULL && l->count == 0);
    free(l->child);
    free(l);
}

static void on_conn_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct edge *e = arg;

    (void)c;
    e->owner->stats.msgs_in++;
    e->owner->ops->on_msg(e->place, type, body, e->owner->arg);
}

static void on_conn_drain(struct conn *c, void *arg)
{
    struct edge *e = arg;

    (void)c;
    e->owner->ops->on_drain(e->place, e->owner->arg);
}

static void edge_remove(struct links *l, struct edge *e)
{
    if (l->parent == e)
        l->parent = NULL;
    for (uint32_t i = 0; i < l->count; i++) {
        if (l->child[i] != e)
            continue;
        l->child[i] = l->child[--l->count];
        break;
    }
}

static void tell_closed(struct links *l)
{
    if (l->finishing && !l->told && l->parent == NULL && l->count == 0) {
        l->told = true;
        l->ops->on_closed(l->arg);
    }
}

static void add_bytes(struct links_stats *s, const struct conn *c)
{
    struct conn_stats one = conn_stats(c);

    s->bytes_in += one.bytes_in;
    s->bytes_out += one.bytes_out;
}

static void on_conn_close(struct conn *c, const struct err *why, void *arg)
{
    struct edge *e = arg;
    struct links *l = e->owner;
    uint32_t place = e->place;

    add_bytes(&l->stats, c);
    edge_remove(l, e);
    free(e);
    if (!l->finishing)
        l->ops->on_lost(place, why, l->arg);
    else
        tell_closed(l);
}

static const struct conn_ops edge_ops = {
    .on_msg = on_conn_msg,
    .on_drain = on_conn_drain,
    .on_close = on_conn_close,
};

static void on_nobody_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    (void)c, (void)type, (void)body, (void)arg;
}

static void on_nobody_close(struct conn *c, const struct err *why, void *arg)
{
    (void)c, (void)why, (void)arg;
}

static const struct conn_ops nobody_ops = {.on_msg = on_nobody_msg, .on_close = on_nobody_close};

/* Its owner has let go of it, and nobody else can have it. */
static int give_up(struct conn *c)
{
    conn_set_ops(c, &nobody_ops, NULL);
    conn_close(c);
    return -ENOMEM;
}

int links_add(struct links *l, uint32_t place, struct conn *c)
{
    struct edge *e = calloc(1, sizeof(*e));

    if (e == NULL)
        return give_up(c);
    if (place != LINKS_PARENT && l->count == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 8;
        struct edge **p = realloc(l->child, cap * sizeof(struct edge *));

        if (p == NULL) {
            free(e);
            return give_up(c);
        }
        l->child = p;
        l->cap = cap;
    }
    *e = (struct edge){.owner = l, .place = place, .conn = c};
    if (place == LINKS_PARENT)
        l->parent = e;
    else
        l->child[l->count++] = e;
    l->stats.children = MAX(l->stats.children, l->count);
    conn_set_ops(c, &edge_ops, e);
    if (l->finishing)
        conn_close(c);
    return 0;
}

uint32_t links_child_count(const struct links *l)
{
    return l->count;
}

uint32_t links_child_place(const struct links *l, uint32_t i)
{
    return l->child[i]->place;
}

static int edge_send(struct edge *e, unsigned type, struct span body, bool data)
{
    e->owner->stats.msgs_out++;
    return conn_send(e->conn, type, body, data);
}

static struct edge *find(const struct links *l, uint32_t place)
{
    if (place == LINKS_PARENT)
        return l->parent;
    for (uint32_t i = 0; i < l->count; i++)
        if (l->child[i]->place == place)
            return l->child[i];
    return NULL;
}

bool links_has(const struct links *l, uint32_t place)
{
    return find(l, place) != NULL;
}

int links_send(struct links *l, uint32_t place, unsigned type, struct span body, bool data)
{
    struct edge *e = find(l, place);

    return e == NULL ? -ENOENT : edge_send(e, type, body, data);
}

void links_send_down(struct links *l, unsigned type, struct span body, bool data)
{
    for (uint32_t i = 0; i < l->count; i++)
        (void)edge_send(l->child[i], type, body, data); /* a failed one closes, and on_lost tells */
}

struct links_stats links_stats(const struct links *l)
{
    struct links_stats s = l->stats;

    if (l->parent != NULL)
        add_bytes(&s, l->parent->conn);
    for (uint32_t i = 0; i < l->count; i++)
        add_bytes(&s, l->child[i]->conn);
    return s;
}

size_t links_queued(const struct links *l)
{
    size_t n = l->parent == NULL ? 0 : conn_queued(l->parent->conn);

    for (uint32_t i = 0; i < l->count; i++)
        n += conn_queued(l->child[i]->conn);
    return n;
}

bool links_up_full(const struct links *l)
{
    return l->parent != NULL && conn_is_full(l->parent->conn);
}

bool links_is_busy(const struct links *l, uint32_t place)
{
    const struct edge *e = find(l, place);

    return e != NULL && conn_is_busy(e->conn);
}

void links_pause(struct links *l, bool paused)
{
    if (l->parent != NULL)
        conn_pause_deadline(l->parent->conn, paused);
    for (uint32_t i = 0; i < l->count; i++)
        conn_pause_deadline(l->child[i]->conn, paused);
}

static void end_edge(struct edge *e, bool flush)
{
    if (flush)
        conn_finish(e->conn);
    else
        conn_close(e->conn);
}

void links_finish(struct links *l, bool flush)
{
    if (l == NULL)
        return;
    l->finishing = true;
    if (l->parent != NULL)
        end_edge(l->parent, flush);
    for (uint32_t i = 0; i < l->count; i++)
        end_edge(l->child[i], flush);
    tell_closed(l);
}

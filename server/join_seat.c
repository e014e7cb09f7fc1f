/* SPDX-License-Identifier: BSD-3-Clause */
/* join_seat.c - the places of those who have joined: from the first connection to the edge of the tree */
#include <stdlib.h>
#include "common/io/conn.h"
#include "common/io/log.h"
#include "common/msg.h"
#include "common/strv.h"
#include "common/topology.h"
#include "server/join_root_priv.h"
#include "server/join_send.h"

void join_guest_remove(struct guest *g)
{
    struct guest **p = &g->owner->guests;

    while (*p != g)
        p = &(*p)->next;
    *p = g->next;
    if (g->place != 0 && g->owner->seat[g->place].guest == g)
        g->owner->seat[g->place].guest = NULL;
    free(g);
}

static void seat_wired(struct join_root *j, uint32_t place)
{
    if (j->seat[place].wired)
        return;
    j->seat[place].wired = true;
    if (++j->wired == j->count)
        j->ops->on_wired(j->arg);
}

static void out_of_memory(struct join_root *j, uint32_t place)
{
    struct err why;

    err_set(&why, -ENOMEM, "out of memory");
    j->ops->on_lost(j->seat[place].node, &why, j->arg);
}

void join_take_child(struct join_root *j, struct guest *g)
{
    uint32_t place = g->place;
    struct conn *c = g->conn;

    j->parent[place] = 0;
    join_guest_remove(g);
    if (links_add(j->links, place, c) < 0)
        out_of_memory(j, place);
    else
        seat_wired(j, place);
}

void join_send_place(struct join_root *j, uint32_t place)
{
    struct seat *s = &j->seat[place], *up = &j->seat[j->parent[place]];
    struct msg_out *m;

    if (s->guest == NULL || s->sent || up->addrs == NULL)
        return;
    m = msg_out_new();
    if (m != NULL)
        msg_put_strv(m, "addrs", up->addrs, strv_count(up->addrs));
    s->sent = true;
    (void)join_send(s->guest->conn, MSG_PLACE, m);
}

void join_seat_listens(struct join_root *j, uint32_t place, struct span body)
{
    struct err err = {0};
    struct msg_in *m = NULL;
    char *text = NULL;
    size_t n = 1;

    if (place == 0 || place >= j->count || j->seat[place].addrs != NULL)
        return;
    if (msg_in_new(&m, body, &err) < 0 || msg_get_strv(m, "addrs", 64, &j->seat[place].addrs, &n, &err) < 0) {
        msg_in_free(m);
        j->ops->on_lost(j->seat[place].node, &err, j->arg); /* those below it would wait */
        return;
    }
    if (n == 0 && msg_get_str(m, "text", &text, NULL) == 0)
        log_warn("%s %u cannot listen (%s), taking those below it at the launcher", j->noun, j->seat[place].node,
                 log_escape(span_of(text)));
    free(text);
    msg_in_free(m);
    for (uint32_t i = 0; i < topo_child_count(place, j->fanout, j->count); i++)
        join_send_place(j, topo_first_child(place, j->fanout) + i);
}

void join_seat_placed(struct guest *g, struct span body)
{
    struct join_root *j = g->owner;
    struct err err = {0};
    struct msg_in *m = NULL;
    char *text = NULL;
    bool ok = false;

    if (msg_in_new(&m, body, &err) < 0 || msg_get_bool(m, "ok", &ok, &err) < 0) {
        msg_in_free(m);
        j->ops->on_lost(j->seat[g->place].node, &err, j->arg);
        return;
    }
    (void)msg_get_str(m, "text", &text, NULL);
    msg_in_free(m);
    if (ok) {
        uint32_t place = g->place;

        g->leaving = true;
        conn_finish(g->conn);
        seat_wired(j, place);
    } else {
        const struct seat *up = &j->seat[j->parent[g->place]];

        if (up->addrs == NULL || up->addrs[0] != NULL)
            log_warn("%s %u cannot reach its parent %s %u (%s), taking it at the launcher", j->noun,
                     j->seat[g->place].node, j->noun, up->node, text ? log_escape(span_of(text)) : "no reason given");
        join_take_child(j, g);
    }
    free(text);
}

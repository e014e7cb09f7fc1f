/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/join_root_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/conn.h"
#include "common/io/listener.h"
#include "common/io/log.h"
#include "common/limits.h"
#include "common/msg.h"
#include "common/strv.h"
#include "common/topology.h"
#include "config.h"
#include "server/join_send.h"
#include "server/tree.h"

static struct guest *guest_new(struct join_root *j, struct conn *c)
{
    struct guest *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return NULL;
    *g = (struct guest){.owner = j, .conn = c, .next = j->guests, .node = -1};
    j->guests = g;
    return g;
}

static void join_free(struct join_root *j)
{
    for (uint32_t i = 0; j->seat != NULL && i < j->count; i++)
        strv_free(j->seat[i].addrs);
    tls_wipe(j->run_key, sizeof(j->run_key));
    tls_ctx_unref(j->ctx);
    free(j->seat);
    free(j->parent);
    free(j->node);
    free(j->node_of_index);
    free(j->joined);
    expected_done(&j->expected);
    free(j);
}

static void maybe_free(struct join_root *j)
{
    if (j->closing && j->guests == NULL)
        join_free(j);
}

static void refuse(struct guest *g, const char *text)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL)
        msg_put_str(m, "text", text);
    g->leaving = true;
    if (join_send(g->conn, MSG_REFUSED, m) == 0)
        conn_finish(g->conn);
}

/* Is this to be said? Once of each. */
static bool is_news(struct join_root *j, const struct conn *c, int64_t what)
{
    const char *peer = conn_peer(c), *colon = strrchr(peer, ':');
    struct warned w = {.what = what};

    if (j->warned_count == JOIN_WARNINGS_MAX)
        return false;
    snprintf(w.ip, sizeof(w.ip), "%.*s", (int)(colon == NULL ? 0 : colon - peer), peer);
    for (unsigned i = 0; i < j->warned_count; i++)
        if (j->warned[i].what == what && strcmp(j->warned[i].ip, w.ip) == 0)
            return false;
    j->warned[j->warned_count++] = w;
    return true;
}

/* Nobody else would bring us the words of those who could not join. */
static __attribute__((format(printf, 4, 5))) void warn(struct join_root *j, const struct conn *c, int64_t what,
                                                       const char *fmt, ...)
{
    struct err text;
    va_list ap;

    if (!is_news(j, c, what))
        return;
    va_start(ap, fmt);
    vsnprintf(text.text, sizeof(text.text), fmt, ap);
    va_end(ap);
    log_warn("%s", text.text);
}

static int send_welcome(struct join_root *j, struct guest *g)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_u64(m, "place", g->place);
        msg_put_u64(m, "node", j->seat[g->place].node);
        msg_put_u64(m, "fanout", j->fanout);
        msg_put_u64(m, "kids", topo_child_count(g->place, j->fanout, j->count));
        msg_put_secret(m, "run_key", (struct span){(char *)j->run_key, sizeof(j->run_key)});
    }
    return join_send(g->conn, MSG_WELCOME, m);
}

/* Is it another connection of the provider that has `node`? One to each of our addresses is on its way at the same
 * time. */
static bool is_second(const struct guest *g, uint32_t node)
{
    const struct join_root *j = g->owner;

    for (uint32_t place = 1; place <= j->taken; place++)
        if (j->seat[place].node == node)
            return j->seat[place].instance == g->instance;
    return false;
}

static void refuse_second(struct guest *g, uint32_t node)
{
    struct join_root *j = g->owner;

    if (j->by_secret)
        warn(j, g->conn, node, "a second %s %u, from %s, was refused", j->noun, node, conn_peer(g->conn));
    refuse(g, "this node has joined already");
}

static void guest_join(struct guest *g, uint32_t node)
{
    struct join_root *j = g->owner;
    uint32_t place;

    g->held = false;
    if (node > j->node_max || j->joined[node]) {
        if (is_second(g, node))
            conn_close(g->conn); /* an answer here might overtake the welcome there */
        else
            refuse_second(g, node);
        return;
    }
    if (j->stopped) {
        refuse(g, "the start is over");
        return;
    }
    place = ++j->taken;
    g->place = place;
    j->joined[node] = true;
    j->seat[place] = (struct seat){.node = node, .instance = g->instance, .guest = g};
    j->node[place] = node;
    j->parent[place] = topo_parent(place, j->fanout);
    conn_trust(g->conn);
    if (j->listener != NULL)
        listener_trusted(j->listener, g->conn);
    if (send_welcome(j, g) < 0)
        return;
    log_debug("node %u joined from %s: place %u below place %u", node, conn_peer(g->conn), place, j->parent[place]);
    j->ops->on_joined(node, g->attached, j->arg); /* before on_wired(), which the last one may bring */
    if (j->parent[place] == 0)
        join_take_child(j, g);
    else
        join_send_place(j, place);
}

/* Who has the secret and says which node it is. */
static void guest_named(struct guest *g)
{
    struct join_root *j = g->owner;
    uint32_t node = (uint32_t)g->node;
    char text[128];

    if (g->nodes != j->nodes)
        snprintf(text, sizeof(text), "the run has %u %ss, not %u (--nodes)", j->nodes, j->noun, g->nodes);
    else if (node == j->node[0])
        snprintf(text, sizeof(text), "%s %u is the launcher itself", j->noun, node);
    else if (node >= j->nodes)
        snprintf(text, sizeof(text), "no %s has the number %u", j->noun, node);
    else {
        guest_join(g, node);
        return;
    }
    warn(j, g->conn, node, "%s %u, from %s, was refused: %s", j->noun, node, conn_peer(g->conn), text);
    refuse(g, text);
}

/* Who is it? Joins it, or holds it until its key line comes. */
static void guest_identify(struct guest *g)
{
    struct join_root *j = g->owner;
    int64_t node;

    if (g->node >= 0) {
        guest_named(g);
        return;
    }
    if (j->by_secret) {
        if (g->index >= j->count - 1)
            refuse(g, "no node has this number");
        else
            guest_join(g, j->node_of_index[g->index]);
        return;
    }
    node = expected_find(&j->expected, conn_peer_key(g->conn));
    if (node >= 0) {
        guest_join(g, (uint32_t)node);
        return;
    }
    g->held = true; /* the conn's own limit for strangers ends this */
    j->ops->on_stranger(j->arg);
}

/* A provider that was given a whole command line says its index alone. */
static int get_node(struct guest *g, const struct msg_in *m, struct err *err)
{
    uint64_t node, nodes;
    int rc = msg_get_u64(m, "node", 0, NODES_MAX - 1, &node, err);

    if (rc == -ENOENT)
        return 0;
    if (rc == 0)
        rc = msg_get_u64(m, "nodes", 1, NODES_MAX, &nodes, err);
    if (rc < 0)
        return rc;
    g->node = (int64_t)node;
    g->nodes = (uint32_t)nodes;
    return 0;
}

static void guest_hello(struct guest *g, struct span body)
{
    struct err err = {0};
    struct msg_in *m;
    uint64_t run, index;
    int rc;

    if (g->place != 0 || g->held || msg_in_new(&m, body, &err) < 0) {
        conn_reject(g->conn, err.code < 0 ? err.text : "a second hello");
        return;
    }
    if ((rc = msg_get_u64(m, "run", 0, UINT32_MAX, &run, &err)) == 0 &&
        (rc = msg_get_u64(m, "index", 0, UINT32_MAX, &index, &err)) == 0 &&
        (rc = msg_get_u64(m, "instance", 0, UINT64_MAX, &g->instance, &err)) == 0)
        rc = msg_get_bool(m, "attached", &g->attached, &err);
    if (rc == 0 && g->owner->by_secret)
        rc = get_node(g, m, &err);
    msg_in_free(m);
    if (rc < 0) {
        conn_reject(g->conn, err.text);
        return;
    }
    g->run = (uint32_t)run;
    g->index = (uint32_t)index;
    guest_identify(g);
}

static const struct conn_ops guest_ops;

static void on_guest_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct guest *g = arg;

    (void)c;
    if (type == MSG_HELLO)
        guest_hello(g, body);
    else if (g->place == 0 || g->leaving)
        conn_reject(g->conn, "a message out of turn");
    else if (type == MSG_LISTENING)
        join_seat_listens(g->owner, g->place, body);
    else if (type == MSG_PLACED)
        join_seat_placed(g, body);
}

static void on_guest_close(struct conn *c, const struct err *why, void *arg)
{
    struct guest *g = arg;
    struct join_root *j = g->owner;
    bool lost = g->place != 0 && !g->leaving && !j->closing;
    uint32_t node = g->place != 0 ? j->seat[g->place].node : 0;

    if (g->place == 0 && !g->leaving)
        log_debug("connection from %s dropped: %s", conn_peer(c), why->code < 0 ? why->text : "closed");
    join_guest_remove(g);
    if (lost)
        j->ops->on_lost(node, why, j->arg);
    maybe_free(j);
}

static const struct conn_ops guest_ops = {.on_msg = on_guest_msg, .on_close = on_guest_close};

/* The listener's connections come with the join as their argument; each gets a guest at its first event. */
static void on_new_up(struct conn *c, void *arg)
{
    struct guest *g = guest_new(arg, c);

    if (g == NULL)
        conn_close(c);
    else
        conn_set_ops(c, &guest_ops, g);
}

static void on_new_close(struct conn *c, const struct err *why, void *arg)
{
    struct join_root *j = arg;

    if (j->by_secret && (why->code == -EPROTONOSUPPORT || why->code == -ESHUTDOWN))
        warn(j, c, why->code, "%s", why->text);
    else if (j->by_secret && why->code == -EKEYREJECTED)
        warn(j, c, why->code, "%s was refused: it has another secret (--secret-file)", conn_peer(c));
    else if (why->code == -EPROTONOSUPPORT)
        log_info("%s", why->text); /* the provider says it as well, and its words come with its host's name */
    else
        log_debug("connection from %s dropped: %s", conn_peer(c), why->code < 0 ? why->text : "closed");
}

static const struct conn_ops new_ops = {.on_up = on_new_up, .on_close = on_new_close};

static int alloc_tables(struct join_root *j, const struct join_root_conf *conf)
{
    for (uint32_t i = 0; i < conf->providers; i++)
        if (conf->node_of_index[i] > j->node_max)
            j->node_max = conf->node_of_index[i];
    j->seat = calloc(j->count, sizeof(*j->seat));
    j->parent = calloc(j->count, sizeof(*j->parent));
    j->node = calloc(j->count, sizeof(*j->node));
    j->joined = calloc((size_t)j->node_max + 1, sizeof(*j->joined));
    j->node_of_index = calloc((size_t)conf->providers + 1, sizeof(*j->node_of_index));
    if (!j->seat || !j->parent || !j->node || !j->joined || !j->node_of_index)
        return -ENOMEM;
    if (conf->providers > 0)
        memcpy(j->node_of_index, conf->node_of_index, conf->providers * sizeof(*j->node_of_index));
    j->parent[0] = TREE_NONE;
    j->node[0] = conf->self;
    j->seat[0].node = conf->self;
    return 0;
}

int join_root_open(uv_loop_t *loop, const struct join_root_conf *conf, const struct join_root_ops *ops, void *arg,
                   struct join_root **out, struct err *err)
{
    struct join_root *j = calloc(1, sizeof(*j));
    int rc;

    if (j == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    j->ops = ops;
    j->arg = arg;
    j->links = conf->links;
    j->count = conf->providers + 1;
    j->wired = 1;
    j->fanout = conf->fanout;
    j->by_secret = conf->by_secret;
    j->nodes = conf->nodes;
    j->noun = conf->noun;
    j->ctx = tls_ctx_ref(conf->ctx);
    tls_random(j->run_key, sizeof(j->run_key));
    if (alloc_tables(j, conf) < 0) {
        join_free(j);
        return err_set(err, -ENOMEM, "out of memory for %u nodes", conf->providers);
    }
    struct listener_conf lc = {
        .interface = conf->interface,
        .port_low = conf->port_low,
        .port_high = conf->port_high,
        .loopback = true,
        .loopback_only = conf->loopback_only,
        .ctx = conf->ctx,
        .ops = &new_ops,
        .arg = j,
    };
    rc = listener_open(loop, &lc, &j->listener, err);
    if (rc < 0) {
        join_free(j);
        return rc;
    }
    *out = j;
    return 0;
}

uint16_t join_root_port(const struct join_root *j)
{
    return listener_port(j->listener);
}

int join_root_expect(struct join_root *j, uint32_t node, const char *key)
{
    int rc = expected_add(&j->expected, node, key);

    for (struct guest *g = j->guests, *next; rc == 0 && g != NULL; g = next) {
        next = g->next;
        if (g->held && strcmp(conn_peer_key(g->conn), key) == 0)
            guest_join(g, node);
    }
    return rc;
}

void join_root_msg(struct join_root *j, uint32_t place, unsigned type, struct span body)
{
    if (type == MSG_LISTENING)
        join_seat_listens(j, place, body);
}

const uint32_t *join_root_parents(const struct join_root *j)
{
    return j->parent;
}

const uint32_t *join_root_nodes(const struct join_root *j)
{
    return j->node;
}

int64_t join_root_node_at(const struct join_root *j, uint32_t place)
{
    return place >= 1 && place <= j->taken ? (int64_t)j->node[place] : -1;
}

struct strangers join_root_stop(struct join_root *j)
{
    struct strangers s = {0};

    if (j->listener != NULL && !j->stopped)
        s = listener_strangers(j->listener);
    if (j->listener != NULL && j->by_secret) {
        listener_turn_away(j->listener);
    } else if (j->listener != NULL) {
        listener_close(j->listener);
        j->listener = NULL;
    }
    j->stopped = true;
    tls_wipe(j->run_key, sizeof(j->run_key));
    tls_ctx_forget(j->ctx);
    return s;
}

void join_root_tell(struct join_root *j, unsigned type, struct span body)
{
    for (struct guest *g = j->guests; g != NULL; g = g->next)
        if (g->place != 0)
            (void)conn_send(g->conn, type, body, false);
}

void join_root_close(struct join_root *j)
{
    if (j == NULL)
        return;
    (void)join_root_stop(j);
    listener_close(j->listener);
    j->listener = NULL;
    j->closing = true;
    for (struct guest *g = j->guests; g != NULL; g = g->next) {
        if (j->by_secret)
            conn_finish(g->conn); /* it waits for the last word */
        else
            conn_close(g->conn);
    }
    maybe_free(j);
}

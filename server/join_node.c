/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/join_node.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/addrs.h"
#include "common/io/dialer.h"
#include "common/io/listener.h"
#include "common/io/log.h"
#include "common/limits.h"
#include "common/msg.h"
#include "common/strv.h"
#include "common/topology.h"
#include "server/join_find.h"
#include "server/join_send.h"

/* How long a provider tries to reach its parent before the root takes it. */
#define PARENT_DIAL_MS 8000

/* A connection from below that is not a child yet. */
struct visitor {
    struct join_node *owner;
    struct conn *conn;
    struct visitor *next;
};

struct join_node {
    uv_loop_t *loop;
    const struct join_node_ops *ops; /* lent */
    void *arg;
    const struct provider_conf *conf; /* lent */
    struct links *links;              /* lent */
    struct tls_ctx *ctx, *run_ctx;    /* counted */
    struct dialer *dialer;            /* to the root, then to the parent */
    struct join_find *find;           /* to a root that is known by name */
    struct listener *listener;
    struct conn *root; /* the first connection, until the parent is reached */
    struct visitor *visitors;
    uint32_t place, node, kids, fanout;
    struct logins_how how; /* --rsh-tree; places 0: it is not */
    char local[128];       /* the address of our end of the first connection */
    bool closing, done_with_root;
};

static void maybe_free(struct join_node *j)
{
    if (!j->closing || j->root != NULL || j->visitors != NULL)
        return;
    tls_ctx_unref(j->ctx);
    tls_ctx_unref(j->run_ctx);
    logins_how_done(&j->how);
    free(j);
}

static void fail(struct join_node *j, const struct err *why)
{
    if (!j->closing)
        j->ops->on_failed(why, j->arg);
}

/* --- children --------------------------------------------------------------------------------------------------- */

static void visitor_remove(struct visitor *v)
{
    struct visitor **p = &v->owner->visitors;

    while (*p != v)
        p = &(*p)->next;
    *p = v->next;
    free(v);
}

static void on_visitor_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct visitor *v = arg;
    struct join_node *j = v->owner;
    struct msg_in *m = NULL;
    uint64_t place = 0;
    int rc = type == MSG_HELLO ? msg_in_new(&m, body, NULL) : -EPROTO;

    if (rc == 0)
        rc = msg_get_u64(m, "place", 1, NODES_MAX, &place, NULL);
    msg_in_free(m);
    if (rc < 0 || topo_parent((uint32_t)place, j->fanout) != j->place || links_has(j->links, (uint32_t)place)) {
        conn_reject(c, rc < 0 ? "no hello" : "its place is not below this one, or taken");
        return;
    }
    visitor_remove(v);
    conn_trust(c);
    listener_trusted(j->listener, c);
    if (links_add(j->links, (uint32_t)place, c) < 0) /* it goes to the root, then */
        return;
    (void)join_send(c, MSG_WELCOME, msg_out_new());
}

static void on_visitor_close(struct conn *c, const struct err *why, void *arg)
{
    struct visitor *v = arg;
    struct join_node *j = v->owner;

    log_debug("connection from %s dropped: %s", conn_peer(c), why->code < 0 ? why->text : "closed");
    visitor_remove(v);
    maybe_free(j);
}

static const struct conn_ops visitor_ops = {.on_msg = on_visitor_msg, .on_close = on_visitor_close};

static void on_new_up(struct conn *c, void *arg)
{
    struct join_node *j = arg;
    struct visitor *v = calloc(1, sizeof(*v));

    if (v == NULL) {
        conn_close(c);
        return;
    }
    *v = (struct visitor){.owner = j, .conn = c, .next = j->visitors};
    j->visitors = v;
    conn_set_ops(c, &visitor_ops, v);
}

static void on_new_close(struct conn *c, const struct err *why, void *arg)
{
    (void)arg;
    log_debug("connection from %s dropped: %s", conn_peer(c), why->code < 0 ? why->text : "closed");
}

static const struct conn_ops new_ops = {.on_up = on_new_up, .on_close = on_new_close};

const char *join_node_interface(const struct join_node *j)
{
    const char *which = j->conf->interface;

    return which == NULL || strchr(which, '/') != NULL || if_nametoindex(which) != 0 ? which : j->local;
}

static int listen_for_children(struct join_node *j, char ***with_port, struct err *err)
{
    bool loopback = j->conf->join == NULL && addrs_all_loopback(j->conf->addrs);
    char **addrs = NULL;
    const char *interface = join_node_interface(j);
    struct listener_conf lc = {
        .interface = interface,
        .port_low = j->conf->port.range ? j->conf->port.low : 0,
        .port_high = j->conf->port.range ? j->conf->port.high : 0,
        .loopback_only = loopback,
        .ctx = j->run_ctx,
        .ops = &new_ops,
        .arg = j,
    };
    int rc = listener_open(j->loop, &lc, &j->listener, err);

    if (rc < 0)
        return rc;
    rc = loopback ? strv_add(&addrs, "127.0.0.1") : addrs_to_give(interface, NULL, &addrs, err);
    for (size_t i = 0; rc == 0 && addrs[i] != NULL; i++) {
        char text[128];

        snprintf(text, sizeof(text), "%s:%u", addrs[i], listener_port(j->listener));
        rc = strv_add(with_port, text);
    }
    strv_free(addrs);
    return rc;
}

/* Listen, and tell the root where. Where that cannot be, it is no reason to give up: the root takes our children. */
static int welcome_children(struct join_node *j)
{
    struct err err = {0};
    char **with_port = NULL;
    int rc = listen_for_children(j, &with_port, &err);
    struct msg_out *m = msg_out_new();

    if (m != NULL)
        msg_put_strv(m, "addrs", with_port, rc == 0 ? strv_count(with_port) : 0);
    if (m != NULL && rc < 0)
        msg_put_str(m, "text", err.text);
    strv_free(with_port);
    return join_send(j->root, MSG_LISTENING, m);
}

/* --- the parent ------------------------------------------------------------------------------------------------- */

static void root_becomes_parent(struct join_node *j)
{
    struct conn *c = j->root;

    if (c == NULL) /* it went away meanwhile, and on_failed was called */
        return;
    j->root = NULL;
    j->done_with_root = true;
    if (links_add(j->links, LINKS_PARENT, c) < 0)
        fail(j, &(struct err){-ENOMEM, "out of memory"});
    else
        j->ops->on_wired(j->arg);
}

static void tell_placed(struct join_node *j, bool ok, const char *text)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_bool(m, "ok", ok);
        msg_put_str(m, "text", text);
    }
    if (j->root != NULL)
        (void)join_send(j->root, MSG_PLACED, m);
    else
        msg_out_free(m);
}

static void not_placed(struct join_node *j, const char *why)
{
    tell_placed(j, false, why);
    root_becomes_parent(j);
}

static void on_parent_won(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct join_node *j = arg;

    (void)body;
    dialer_close(j->dialer);
    j->dialer = NULL;
    if (type != MSG_WELCOME) {
        static const struct conn_ops none = {.on_close = on_new_close};

        conn_set_ops(c, &none, j);
        conn_close(c);
        not_placed(j, "the parent refused");
    } else if (links_add(j->links, LINKS_PARENT, c) < 0) {
        not_placed(j, "out of memory");
    } else {
        conn_trust(c);
        j->done_with_root = true;
        tell_placed(j, true, NULL);
        j->ops->on_wired(j->arg);
    }
}

static void on_parent_failed(const struct err *why, void *arg)
{
    struct join_node *j = arg;

    dialer_close(j->dialer);
    j->dialer = NULL;
    not_placed(j, why->text);
}

static void dial_parent(struct join_node *j, struct span body)
{
    struct err err = {0};
    struct msg_in *m = NULL;
    struct msg_out *hello = msg_out_new();
    struct span hello_body;
    char **addrs = NULL;
    size_t n;
    int rc = hello == NULL ? -ENOMEM : msg_in_new(&m, body, &err);

    if (rc == 0)
        rc = msg_get_strv(m, "addrs", 64, &addrs, &n, &err);
    msg_in_free(m);
    if (rc == 0) {
        msg_put_u64(hello, "place", j->place);
        rc = msg_out_done(hello, &hello_body);
    }
    if (rc == 0) {
        struct dialer_conf dc = {
            .addrs = addrs,
            .ctx = j->run_ctx,
            .hello_type = MSG_HELLO,
            .hello = hello_body,
            .deadline_ms = PARENT_DIAL_MS,
            .on_won = on_parent_won,
            .on_failed = on_parent_failed,
            .arg = j,
        };
        rc = dialer_open(j->loop, &dc, &j->dialer, &err);
    }
    msg_out_free(hello);
    strv_free(addrs);
    if (rc < 0) {
        err_set(&err, rc, "cannot dial the parent: %s", err.text);
        on_parent_failed(&err, j);
    }
}

/* --- the root --------------------------------------------------------------------------------------------------- */

static void on_root_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct join_node *j = arg;

    (void)c;
    if (type == MSG_PLACE && j->dialer == NULL && !j->done_with_root)
        dial_parent(j, body);
    else if (type == MSG_STATUS)
        j->ops->on_status(body, j->arg);
}

static void on_root_close(struct conn *c, const struct err *why, void *arg)
{
    struct join_node *j = arg;
    struct err err = *why;

    (void)c;
    j->root = NULL;
    if (why->code == 0)
        err_set(&err, -ECONNRESET, "the launcher closed the connection");
    if (!j->done_with_root)
        fail(j, &err);
    maybe_free(j);
}

static const struct conn_ops root_ops = {.on_msg = on_root_msg, .on_close = on_root_close};

/* What there is in a tree that the root plans. */
static int read_plan(struct join_node *j, const struct msg_in *m, struct err *err)
{
    struct span key;
    uint64_t fanout, kids;
    int rc;

    if ((rc = msg_get_u64(m, "fanout", 1, NODES_MAX, &fanout, err)) == 0 &&
        (rc = msg_get_u64(m, "kids", 0, NODES_MAX, &kids, err)) == 0 &&
        (rc = msg_get_bin(m, "run_key", &key, err)) == 0 &&
        (rc = tls_ctx_new_psk(&j->run_ctx, (const uint8_t *)key.p, key.n, err)) == 0) {
        j->fanout = (unsigned)fanout;
        j->kids = (uint32_t)kids;
    }
    return rc;
}

static int read_welcome(struct join_node *j, struct span body, struct err *err)
{
    struct msg_in *m;
    uint64_t place, node;
    int rc = msg_in_new(&m, body, err);

    if (rc < 0)
        return rc;
    if ((rc = msg_get_u64(m, "place", 1, NODES_MAX, &place, err)) == 0 &&
        (rc = msg_get_u64(m, "node", 0, NODES_MAX, &node, err)) == 0) {
        j->place = (uint32_t)place;
        j->node = (uint32_t)node;
        rc = logins_how_get(m, &j->how, err);
        if (rc == -ENOENT)
            rc = read_plan(j, m, err);
    }
    msg_in_free(m);
    return rc;
}

static void refused(struct join_node *j, struct span body)
{
    struct err err;
    struct msg_in *m;
    char *text = NULL;

    if (msg_in_new(&m, body, NULL) == 0) {
        (void)msg_get_str(m, "text", &text, NULL);
        msg_in_free(m);
    }
    err_set(&err, -EACCES, "the launcher refused: %s", text ? log_escape(span_of(text)) : "no reason given");
    free(text);
    fail(j, &err);
}

/* Or it cannot be found. */
static void found_root(struct join_node *j)
{
    dialer_close(j->dialer);
    join_find_close(j->find);
    j->dialer = NULL;
    j->find = NULL;
}

static void on_root_won(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct join_node *j = arg;
    struct err err = {0};
    int rc;

    found_root(j);
    j->root = c;
    conn_set_ops(c, &root_ops, j);
    if (type == MSG_REFUSED) {
        refused(j, body);
        return;
    }
    conn_trust(c);
    snprintf(j->local, sizeof(j->local), "%.*s", (int)(strrchr(conn_local(c), ':') - conn_local(c)), conn_local(c));
    rc = type == MSG_WELCOME ? read_welcome(j, body, &err) : err_set(&err, -EPROTO, "no welcome from the launcher");
    if (rc == 0 && j->kids > 0 && (rc = welcome_children(j)) < 0)
        err_set(&err, rc, "cannot answer the launcher");
    if (rc < 0) {
        fail(j, &err);
        return;
    }
    j->ops->on_joined(j->node, j->place, j->arg);
    if (j->how.places > 0 || topo_parent(j->place, j->fanout) == 0)
        root_becomes_parent(j);
}

static void on_root_failed(const struct err *why, void *arg)
{
    struct join_node *j = arg;

    found_root(j);
    fail(j, why);
}

static int seek_root(struct join_node *j, struct msg_out *hello, struct err *err)
{
    struct dialer_conf dc = {
        .addrs = j->conf->addrs,
        .ctx = j->ctx,
        .hello_type = MSG_HELLO,
        .deadline_ms = j->conf->start_timeout_ms,
        .others_too = j->conf->is_pod,
        .on_won = on_root_won,
        .on_failed = on_root_failed,
        .arg = j,
    };
    int rc = hello == NULL ? -ENOMEM : msg_out_done(hello, &dc.hello);

    if (rc < 0)
        return err_set(err, rc, "out of memory");
    if (j->conf->join != NULL)
        return join_find_open(j->loop, j->conf->join, &dc, &j->find, err);
    return dialer_open(j->loop, &dc, &j->dialer, err);
}

int join_node_open(uv_loop_t *loop, const struct join_node_conf *conf, const struct join_node_ops *ops, void *arg,
                   struct join_node **out, struct err *err)
{
    struct join_node *j = calloc(1, sizeof(*j));
    struct msg_out *hello;
    int rc;

    if (j == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    *j = (struct join_node){.loop = loop, .ops = ops, .arg = arg, .conf = conf->conf, .links = conf->links};
    j->ctx = tls_ctx_ref(conf->ctx);
    hello = join_hello(conf->conf, conf->attached);
    rc = seek_root(j, hello, err);
    msg_out_free(hello);
    if (rc < 0) {
        j->closing = true;
        maybe_free(j);
        return rc;
    }
    *out = j;
    return 0;
}

const struct logins_how *join_node_how(const struct join_node *j)
{
    return j->how.places > 0 ? &j->how : NULL;
}

void join_node_state(const struct join_node *j, struct buf *out)
{
    if (j->find != NULL)
        join_find_state(j->find, out);
    else if (j->dialer != NULL && j->run_ctx == NULL)
        dialer_state(j->dialer, out);
}

uint64_t join_node_all_in(struct join_node *j)
{
    struct strangers s = {0};

    if (j->listener != NULL) {
        s = listener_strangers(j->listener);
        listener_close(j->listener);
        j->listener = NULL;
    }
    tls_ctx_forget(j->ctx);
    if (j->run_ctx != NULL)
        tls_ctx_forget(j->run_ctx);
    return s.crowded + s.rejected;
}

void join_node_close(struct join_node *j)
{
    if (j == NULL || j->closing)
        return;
    j->closing = true;
    dialer_close(j->dialer);
    join_find_close(j->find);
    listener_close(j->listener);
    for (struct visitor *v = j->visitors; v != NULL; v = v->next)
        conn_close(v->conn);
    if (j->root != NULL)
        conn_close(j->root);
    maybe_free(j);
}

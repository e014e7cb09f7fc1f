/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/brood.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/conn.h"
#include "common/io/log.h"
#include "server/join_send.h"

/* A connection that is no child yet. */
struct chick {
    struct brood *owner;
    struct conn *conn;
    struct chick *next;
    bool held; /* said hello, waits for its key line */
    bool leaving;
    uint64_t instance; /* the same for all connections of one provider */
    bool attached;
};

/* A key that came back over a login. */
struct vouched {
    uint32_t place;
    bool joined;
    uint64_t instance; /* of who has joined */
    char key[TLS_KEY_TEXT + 1];
};

struct brood {
    struct brood_ops ops;
    struct links *links; /* lent */
    struct tls_ctx *ctx; /* shared, counted */
    struct listener *listener;
    struct chick *chicks;
    struct vouched *vouched;
    size_t vouched_count, vouched_cap;
    bool closing;
};

static void maybe_free(struct brood *b)
{
    if (!b->closing || b->chicks != NULL)
        return;
    tls_ctx_unref(b->ctx);
    free(b->vouched);
    free(b);
}

static void chick_remove(struct chick *c)
{
    struct chick **p = &c->owner->chicks;

    while (*p != c)
        p = &(*p)->next;
    *p = c->next;
    free(c);
}

static void refuse(struct chick *c, const char *text)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL)
        msg_put_str(m, "text", text);
    c->leaving = true;
    if (join_send(c->conn, MSG_REFUSED, m) == 0)
        conn_finish(c->conn);
}

static int send_welcome(const struct brood *b, struct conn *conn, uint32_t place)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_u64(m, "place", place);
        b->ops.welcome(place, m, b->ops.arg);
    }
    return join_send(conn, MSG_WELCOME, m);
}

static void take(struct chick *c, struct vouched *v)
{
    struct brood *b = c->owner;
    struct conn *conn = c->conn;
    uint32_t place = v->place;
    bool attached = c->attached;

    c->held = false;
    if (v->joined) {
        if (v->instance == c->instance)
            conn_close(conn); /* another of its connections: an answer here might overtake the welcome there */
        else
            refuse(c, "this node has joined already");
        return;
    }
    v->joined = true;
    v->instance = c->instance;
    conn_trust(conn);
    if (b->listener != NULL)
        listener_trusted(b->listener, conn);
    if (send_welcome(b, conn, place) < 0)
        return; /* it closes; its login's limit finds it */
    chick_remove(c);
    if (links_add(b->links, place, conn) < 0) {
        conn_close(conn);
        return;
    }
    log_debug("place %u joined from %s", place, conn_peer(conn));
    b->ops.on_child(place, attached, b->ops.arg);
}

static struct vouched *find_key(const struct brood *b, const char *key)
{
    for (size_t i = 0; i < b->vouched_count; i++)
        if (strcmp(b->vouched[i].key, key) == 0)
            return &b->vouched[i];
    return NULL;
}

static void on_hello(struct chick *c, struct span body)
{
    struct err err = {0};
    struct msg_in *m;
    struct vouched *v;
    int rc;

    if (c->held || msg_in_new(&m, body, &err) < 0) {
        conn_reject(c->conn, err.code < 0 ? err.text : "a second hello");
        return;
    }
    rc = msg_get_u64(m, "instance", 0, UINT64_MAX, &c->instance, &err);
    if (rc == 0)
        rc = msg_get_bool(m, "attached", &c->attached, &err);
    msg_in_free(m);
    if (rc < 0) {
        conn_reject(c->conn, err.text);
        return;
    }
    v = find_key(c->owner, conn_peer_key(c->conn));
    if (v != NULL) {
        take(c, v);
        return;
    }
    c->held = true; /* the conn's own limit for strangers ends this */
    c->owner->ops.on_stranger(c->owner->ops.arg);
}

static void on_chick_msg(struct conn *conn, unsigned type, struct span body, void *arg)
{
    struct chick *c = arg;

    if (type == MSG_HELLO && !c->leaving)
        on_hello(c, body);
    else
        conn_reject(conn, "a message out of turn");
}

static void on_chick_close(struct conn *conn, const struct err *why, void *arg)
{
    struct chick *c = arg;
    struct brood *b = c->owner;

    log_debug("connection from %s dropped: %s", conn_peer(conn), why->code < 0 ? why->text : "closed");
    chick_remove(c);
    maybe_free(b);
}

static const struct conn_ops chick_ops = {.on_msg = on_chick_msg, .on_close = on_chick_close};

static void on_new_up(struct conn *conn, void *arg)
{
    struct brood *b = arg;
    struct chick *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        conn_close(conn);
        return;
    }
    *c = (struct chick){.owner = b, .conn = conn, .next = b->chicks};
    b->chicks = c;
    conn_set_ops(conn, &chick_ops, c);
}

static void on_new_close(struct conn *conn, const struct err *why, void *arg)
{
    (void)arg;
    if (why->code == -EPROTONOSUPPORT)
        log_info("%s", why->text);
    else
        log_debug("connection from %s dropped: %s", conn_peer(conn), why->code < 0 ? why->text : "closed");
}

static const struct conn_ops new_ops = {.on_up = on_new_up, .on_close = on_new_close};

int brood_open(uv_loop_t *loop, const struct brood_conf *conf, const struct brood_ops *ops, struct brood **out,
               struct err *err)
{
    struct brood *b = calloc(1, sizeof(*b));
    int rc;

    if (b == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    b->ops = *ops;
    b->links = conf->links;
    b->ctx = tls_ctx_ref(conf->ctx);
    struct listener_conf lc = {
        .interface = conf->interface,
        .port_low = conf->port_low,
        .port_high = conf->port_high,
        .loopback = conf->loopback,
        .ctx = conf->ctx,
        .ops = &new_ops,
        .arg = b,
    };
    rc = listener_open(loop, &lc, &b->listener, err);
    if (rc == 0) {
        *out = b;
        return 0;
    }
    tls_ctx_unref(b->ctx);
    free(b);
    return rc;
}

uint16_t brood_port(const struct brood *b)
{
    return listener_port(b->listener);
}

int brood_expect(struct brood *b, uint32_t place, const char *key)
{
    struct vouched *v;

    if (b->vouched_count == b->vouched_cap) {
        size_t cap = b->vouched_cap == 0 ? 16 : b->vouched_cap * 2;

        v = realloc(b->vouched, cap * sizeof(*v));
        if (v == NULL)
            return -ENOMEM;
        b->vouched = v;
        b->vouched_cap = cap;
    }
    v = &b->vouched[b->vouched_count++];
    *v = (struct vouched){.place = place};
    memcpy(v->key, key, strnlen(key, TLS_KEY_TEXT));
    for (struct chick *c = b->chicks, *next; c != NULL; c = next) {
        next = c->next;
        /* Looked for each time: what a child brings about may have changed the table. */
        if (c->held && (v = find_key(b, conn_peer_key(c->conn))) != NULL)
            take(c, v);
    }
    return 0;
}

void brood_forget(struct brood *b, uint32_t place)
{
    size_t kept = 0;

    for (size_t i = 0; i < b->vouched_count; i++)
        if (b->vouched[i].place != place)
            b->vouched[kept++] = b->vouched[i];
    b->vouched_count = kept;
}

struct strangers brood_stop(struct brood *b)
{
    struct strangers s = {0};

    if (b->listener != NULL) {
        s = listener_strangers(b->listener);
        listener_close(b->listener);
        b->listener = NULL;
        tls_ctx_forget(b->ctx); /* nobody is let in any more */
    }
    return s;
}

void brood_close(struct brood *b)
{
    if (b == NULL || b->closing)
        return;
    (void)brood_stop(b);
    b->closing = true;
    for (struct chick *c = b->chicks; c != NULL; c = c->next)
        conn_close(c->conn);
    maybe_free(b);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/conn_priv.h"

#include <assert.h>
#include <stdio.h>
#include <sys/socket.h>
#include "common/io/log.h"
#include "common/limits.h"
#include "common/msg.h"
#include "common/util.h"

#define READ_MAX 65536
#define STAGE_MAX 16384 /* one TLS record */

static const char prologue_magic[8] = {'p', 'm', 'i', 's', 't', 'a', 'r', 't'};

static void on_poll(uv_poll_t *h, int status, int events);
static bool on_readable(struct conn *c);

/* ---- out ---- */

void conn_update_poll(struct conn *c)
{
    int events = UV_READABLE | (c->state == CONN_CONNECTING || c->wire.len > 0 ? UV_WRITABLE : 0);

    if (c->state != CONN_CLOSED && events != c->poll_events) {
        int rc = uv_poll_start(&c->poll, events, on_poll);

        assert(rc == 0);
        c->poll_events = events;
    }
}

/* 0: all is written; 1: the socket is full; < 0 */
static int write_wire(struct conn *c)
{
    while (c->wire_off < c->wire.len) {
        ssize_t n = send(c->fd, c->wire.p + c->wire_off, c->wire.len - c->wire_off, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 1 : -errno;
        c->wire_off += (size_t)n;
        c->stats.bytes_out += (size_t)n;
        c->last_out = uv_now(c->timer.loop);
    }
    buf_done(&c->wire);
    c->wire_off = 0;
    return 0;
}

/* Encrypt what waits, up to LINK_AHEAD. */
static int encrypt(struct conn *c, struct err *err)
{
    char stage[STAGE_MAX];
    size_t used = 0;
    int rc = 0;

    while (c->wire.len - c->wire_off < LINK_AHEAD) {
        size_t n = outq_fill(&c->out, stage, sizeof(stage));

        if (n == 0)
            break;
        used = MAX(used, n);
        rc = tls_send(c->tls, (struct span){stage, n}, &c->wire, err);
        if (rc < 0)
            break;
    }
    tls_wipe(stage, used);
    return rc;
}

/* Move on as far as the socket takes it. 0, 1: it is full, or < 0. */
static int push(struct conn *c, struct err *err)
{
    int rc;

    for (;;) {
        if (c->wire_off >= LINK_AHEAD) {
            buf_drop(&c->wire, c->wire_off);
            c->wire_off = 0;
        }
        if (c->state == CONN_UP && (rc = encrypt(c, err)) < 0)
            return rc;
        rc = write_wire(c);
        if (rc < 0)
            return err_set(err, rc, "%s", uv_strerror(rc));
        if (rc > 0 || c->state != CONN_UP || outq_is_empty(&c->out))
            return rc;
    }
}

static void drained(struct conn *c)
{
    bool full = c->full && outq_bytes(&c->out, true) >= LINK_DATA_LOW;
    bool busy = c->busy && outq_bytes(&c->out, false) >= LINK_CONTROL_LOW;

    if (full == c->full && busy == c->busy)
        return;
    c->full = full;
    c->busy = busy;
    if (c->ops->on_drain != NULL && c->state == CONN_UP && !c->finishing)
        c->ops->on_drain(c, c->arg);
}

static void pump(struct conn *c)
{
    struct err why;
    int rc;

    if (c->state == CONN_CLOSED || c->state == CONN_CONNECTING)
        return;
    do { /* What waited for this is sent in the same turn of the loop, as nothing may wake it for another */
        rc = push(c, &why);
        if (rc == 0)
            drained(c);
    } while (rc == 0 && c->state == CONN_UP && !outq_is_empty(&c->out));
    if (rc == 0 && c->finishing && c->state == CONN_UP) {
        tls_finish(c->tls, &c->wire);
        c->state = CONN_LINGER;
        rc = push(c, &why);
    }
    if (rc < 0) {
        /* The peer may have said why before it closed. */
        while (c->state != CONN_CLOSED && on_readable(c))
            ;
        conn_fail(c, &why);
        return;
    }
    if (rc == 0 && c->state == CONN_LINGER && !c->shut) {
        shutdown(c->fd, SHUT_WR);
        c->shut = true;
        c->shut_at = uv_now(c->timer.loop);
        conn_arm(c);
    }
    conn_update_poll(c);
    drained(c);
}

static void on_flush(uv_idle_t *h)
{
    struct conn *c = h->data;

    assert(c->magic == CONN_MAGIC);
    uv_idle_stop(h);
    pump(c);
}

void conn_schedule(struct conn *c)
{
    if (c->state != CONN_CLOSED)
        uv_idle_start(&c->flush, on_flush);
}

/* Fail, but first say what is in `wire` (an alert, our versions) and let the peer close, so that it gets to read it. */
static void fail_politely(struct conn *c, const struct err *why)
{
    if (c->state >= CONN_LINGER)
        return;
    if (!c->finishing)
        c->why = *why;
    outq_done(&c->out);
    c->state = CONN_LINGER;
    pump(c);
}

/* ---- in ---- */

/* A stranger gets only so much, whatever it is made of. */
static bool is_over(const struct conn *c)
{
    return !c->trusted && (c->stats.bytes_in > PREAUTH_WIRE_MAX || c->plain_in > PREAUTH_BYTES_MAX);
}

static void deliver(struct conn *c, unsigned type, struct span body)
{
    if (type == MSG_PING)
        conn_send(c, MSG_PONG, SPAN_NONE, false);
    else if (type != MSG_PONG && !c->finishing)
        c->ops->on_msg(c, type, body, c->arg);
}

static void deliver_all(struct conn *c)
{
    struct err why;
    unsigned type;
    struct span body;
    int rc = 0;

    while (c->state == CONN_UP && (rc = reasm_next(&c->in, &type, &body, &why)) > 0) {
        if (!c->trusted)
            c->plain_in += FRAME_HEADER + body.n;
        if (c->plain_in <= PREAUTH_BYTES_MAX)
            deliver(c, type, body);
        else
            break;
    }
    if (c->state != CONN_UP)
        return;
    if (c->trusted && !reasm_is_midway(&c->in))
        reasm_set_secret(&c->in, false); /* the key of the run, if it came, was with what made us trust it */
    if (rc >= 0 && is_over(c))
        rc = err_set(&why, -E2BIG, "more than %d bytes before it was accepted", PREAUTH_BYTES_MAX);
    if (rc < 0)
        conn_fail(c, &why);
}

static void feed(struct conn *c, struct span in)
{
    struct err why;
    int rc = tls_feed(c->tls, in, &c->in.bytes, &c->wire, &why);

    if (c->state == CONN_HANDSHAKE && tls_is_up(c->tls)) {
        c->state = CONN_UP;
        conn_arm(c);
        if (c->ops->on_up != NULL)
            c->ops->on_up(c, c->arg);
    }
    deliver_all(c);
    if (c->state >= CONN_LINGER)
        return;
    if (rc == -ECONNRESET)
        conn_fail(c, &why);
    else if (rc < 0)
        fail_politely(c, &why);
    else if (is_over(c))
        conn_fail_errno(c, -E2BIG);
    else if (c->wire.len > 0 || !outq_is_empty(&c->out))
        conn_schedule(c);
}

static void check_prologue(struct conn *c)
{
    const unsigned char *p = c->prologue;
    unsigned low = (unsigned)p[8] << 8 | p[9], high = (unsigned)p[10] << 8 | p[11];
    struct err why;

    if (memcmp(p, prologue_magic, sizeof(prologue_magic)) != 0) {
        err_set(&why, -EPROTO, "not a pmi-start peer: it says '%s'",
                log_escape((struct span){(const char *)p, CONN_PROLOGUE_LEN}));
        conn_fail(c, &why);
    } else if (low > PROTO_VERSION_MAX || high < PROTO_VERSION_MIN) {
        err_set(&why, -EPROTONOSUPPORT,
                "%s speaks protocol versions %u to %u, this side %d to %d: not the same pmi-start", c->peer, low, high,
                PROTO_VERSION_MIN, PROTO_VERSION_MAX);
        fail_politely(c, &why);
    } else if (c->turned_away) {
        err_set(&why, -ESHUTDOWN, "%s comes too late, and was turned away", c->peer);
        fail_politely(c, &why);
    } else if (p[CONN_PROLOGUE_FULL] == 1) {
        err_set(&why, -ESHUTDOWN, "%s says that the run has begun, or is over: nobody can join it any more", c->peer);
        conn_fail(c, &why);
    } else {
        c->state = CONN_HANDSHAKE;
    }
}

static void take_in(struct conn *c, struct span in)
{
    if (c->state == CONN_PROLOGUE) {
        size_t n = MIN(in.n, CONN_PROLOGUE_LEN - c->prologue_len);

        memcpy(c->prologue + c->prologue_len, in.p, n);
        c->prologue_len += n;
        in = (struct span){in.p + n, in.n - n};
        if (c->prologue_len == CONN_PROLOGUE_LEN)
            check_prologue(c);
    }
    if ((c->state == CONN_HANDSHAKE || c->state == CONN_UP) && in.n > 0)
        feed(c, in);
}

static void on_eof(struct conn *c)
{
    struct err why;

    if (c->state == CONN_UP)
        err_set(&why, -ECONNRESET, reasm_is_midway(&c->in) ? "cut off in the middle of a message" : "connection lost");
    else
        err_set(&why, -ECONNRESET, "closed by the peer before %s",
                c->state == CONN_PROLOGUE ? "it said anything" : "TLS was up");
    conn_fail(c, &why);
}

/* True where there was something. */
static bool on_readable(struct conn *c)
{
    static char bytes[READ_MAX]; /* used up before this returns, and nothing in here runs a loop */
    ssize_t n = recv(c->fd, bytes, sizeof(bytes), 0);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR)
            conn_fail_errno(c, -errno);
        return false;
    }
    if (n == 0) {
        on_eof(c);
        return false;
    }
    c->stats.bytes_in += (size_t)n;
    c->last_in = uv_now(c->timer.loop);
    take_in(c, (struct span){bytes, (size_t)n});
    return true;
}

/* ---- the beginning ---- */

bool conn_name_of(int fd, bool peer, char out[SOCKNAME_TEXT])
{
    union sockname a;

    if (!sockname_of(fd, peer, &a))
        return false;
    sockname_text(&a, out);
    return true;
}

/* The socket is connected. The client's TLS flight goes along with the prologue: that saves a round trip. */
void conn_begin(struct conn *c)
{
    unsigned char p[CONN_PROLOGUE_LEN] = {0};
    struct err why;
    int rc;

    conn_name_of(c->fd, true, c->peer);
    conn_name_of(c->fd, false, c->local);
    c->state = CONN_PROLOGUE;
    memcpy(p, prologue_magic, sizeof(prologue_magic));
    p[9] = PROTO_VERSION_MIN;
    p[11] = PROTO_VERSION_MAX;
    p[CONN_PROLOGUE_FULL] = c->turned_away;
    rc = buf_add(&c->wire, p, sizeof(p));
    if (rc < 0)
        conn_fail_errno(c, rc);
    else if (tls_start(c->tls, &c->wire, &why) < 0)
        conn_fail(c, &why);
    else
        conn_schedule(c);
}

static void on_connected(struct conn *c)
{
    int rc = 0;
    socklen_t len = sizeof(rc);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &rc, &len) < 0)
        rc = errno;
    if (rc != 0)
        conn_fail_errno(c, -rc);
    else
        conn_begin(c);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct conn *c = h->data;

    assert(c->magic == CONN_MAGIC);
    if (c->state == CONN_CONNECTING) {
        on_connected(c);
    } else if (status < 0) {
        c->poll_events = 0; /* libuv has stopped watching; recv() knows the reason */
        on_readable(c);
    } else if (events & UV_READABLE) {
        on_readable(c);
    }
    if (events & UV_WRITABLE)
        pump(c);
    conn_update_poll(c);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/conn_priv.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/limits.h"
#include "common/msg.h"
#include "common/util.h"

static const struct conn_times times_default = {PREAUTH_MS, PING_IDLE_MS, LINK_LOST_MS, LINGER_MS};
static struct conn_times times_now = {PREAUTH_MS, PING_IDLE_MS, LINK_LOST_MS, LINGER_MS};

void conn_set_times(const struct conn_times *times)
{
    times_now = times ? *times : times_default;
}

static void on_handle_closed(uv_handle_t *h)
{
    struct conn *c = h->data;

    assert(c->magic == CONN_MAGIC);
    if (--c->handles > 0)
        return;
    if (c->gone != NULL)
        c->gone(c, c->gone_arg);
    c->ops->on_close(c, &c->why, c->arg);
    c->magic = 0;
    tls_free(c->tls);
    reasm_done(&c->in);
    outq_done(&c->out);
    buf_done(&c->wire);
    free(c);
}

void conn_shut_down(struct conn *c)
{
    if (c->state == CONN_CLOSED)
        return;
    c->state = CONN_CLOSED;
    uv_close((uv_handle_t *)&c->poll, on_handle_closed);
    uv_close((uv_handle_t *)&c->timer, on_handle_closed);
    uv_close((uv_handle_t *)&c->flush, on_handle_closed);
    close(c->fd);
    c->fd = -1;
}

void conn_fail(struct conn *c, const struct err *why)
{
    if (c->why.code == 0 && !c->finishing && c->state != CONN_CLOSED)
        c->why = *why;
    conn_shut_down(c);
}

void conn_fail_errno(struct conn *c, int code)
{
    struct err why;

    err_set(&why, code, "%s", uv_strerror(code));
    conn_fail(c, &why);
}

static void on_timer(uv_timer_t *t);

/* From its beginning until it is trusted. Who asks to be let in waits longer for the answer than he may take to ask:
 * with a thousand who ask at once it takes its time, and to go just when it is given would be a loss for both. */
static uint64_t patience(const struct conn *c)
{
    return c->state == CONN_UP && !c->server ? c->times.link_lost_ms : c->times.preauth_ms;
}

void conn_arm(struct conn *c)
{
    uint64_t now = uv_now(c->timer.loop);

    if (c->state == CONN_CLOSED)
        return;
    if (c->shut)
        c->due = c->shut_at + c->times.linger_ms;
    else if (!c->trusted)
        c->due = c->born + patience(c);
    else if (c->finishing || c->state == CONN_LINGER)
        c->due = c->last_in + c->times.link_lost_ms;
    else if (c->paused)
        c->due = c->last_out + c->times.ping_idle_ms;
    else
        c->due = MIN(c->last_out + c->times.ping_idle_ms, c->last_in + c->times.link_lost_ms);
    uv_timer_start(&c->timer, on_timer, c->due > now ? c->due - now : 0, 0);
}

static void check_trusted(struct conn *c, uint64_t now)
{
    struct err why;

    if (now - c->last_in >= c->times.link_lost_ms && (!c->paused || c->finishing)) {
        err_set(&why, -ETIMEDOUT, "no sign of life for %llu s", (unsigned long long)((now - c->last_in) / 1000));
        conn_fail(c, &why);
        return;
    }
    if (now - c->last_out < c->times.ping_idle_ms || c->finishing || c->state != CONN_UP)
        return;
    /* Where more waits to be sent already, a ping would say nothing new. */
    if (c->wire.len == 0 && outq_is_empty(&c->out))
        conn_send(c, MSG_PING, SPAN_NONE, false);
    c->last_out = now;
}

static void on_timer(uv_timer_t *t)
{
    struct conn *c = t->data;
    uint64_t now = uv_now(t->loop);
    struct err why;

    assert(c->magic == CONN_MAGIC);
    /* Far too late: it was we who were stopped, and what came in meanwhile has not been read yet. */
    if (now > c->due + c->times.ping_idle_ms)
        c->last_in = now;
    if (c->shut && now >= c->due) {
        conn_shut_down(c);
    } else if (!c->trusted && now >= c->due) {
        if (c->state == CONN_CONNECTING)
            err_set(&why, -ETIMEDOUT, "connection timed out");
        else
            err_set(&why, -ETIMEDOUT, "nothing valid heard within %llu s", (unsigned long long)patience(c) / 1000);
        conn_fail(c, &why);
    } else if (c->trusted) {
        check_trusted(c, now);
    }
    conn_arm(c);
}

static void tune(int fd)
{
    int one = 1, ahead = LINK_AHEAD;

    /* Both only make it faster. The second keeps the kernel's queue short, which control messages cannot overtake. */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &ahead, sizeof(ahead));
}

static void start(struct conn *c, uv_loop_t *loop)
{
    c->handles = 3;
    uv_timer_init(loop, &c->timer);
    uv_idle_init(loop, &c->flush);
    c->poll.data = c->timer.data = c->flush.data = c;
    c->times = times_now;
    c->born = c->last_in = c->last_out = uv_now(loop);
    tune(c->fd);
    c->peer[0] = c->local[0] = '?';
    conn_name_of(c->fd, false, c->local);
    if (conn_name_of(c->fd, true, c->peer))
        conn_begin(c);
    conn_update_poll(c);
    conn_arm(c);
}

struct conn *conn_new(uv_loop_t *loop, int fd, bool server, struct tls_ctx *ctx, const struct conn_ops *ops, void *arg)
{
    struct conn *c = calloc(1, sizeof(*c));

    if (c == NULL || (c->tls = tls_new(ctx, server)) == NULL || uv_poll_init(loop, &c->poll, fd) < 0) {
        if (c != NULL)
            tls_free(c->tls);
        free(c);
        close(fd);
        return NULL;
    }
    c->magic = CONN_MAGIC;
    c->fd = fd;
    c->server = server;
    c->ops = ops;
    c->arg = arg;
    reasm_init(&c->in, PREAUTH_BYTES_MAX);
    outq_init(&c->out);
    start(c, loop);
    return c;
}

void conn_turn_away(struct conn *c)
{
    c->turned_away = true;
    if (c->wire_off == 0 && c->wire.len >= CONN_PROLOGUE_LEN)
        c->wire.p[CONN_PROLOGUE_FULL] = 1;
}

void conn_set_ops(struct conn *c, const struct conn_ops *ops, void *arg)
{
    c->ops = ops;
    c->arg = arg;
}

bool conn_has_ops(const struct conn *c, const struct conn_ops *ops)
{
    return c->ops == ops;
}

void *conn_arg(const struct conn *c)
{
    return c->arg;
}

void conn_set_gone(struct conn *c, void (*gone)(struct conn *c, void *arg), void *arg)
{
    c->gone = gone;
    c->gone_arg = arg;
}

void conn_trust(struct conn *c)
{
    c->trusted = true;
    c->plain_in = 0;
    c->in.body_max = FRAME_BODY_MAX;
    c->last_in = c->last_out = uv_now(c->timer.loop);
    conn_arm(c);
}

int conn_send(struct conn *c, unsigned type, struct span body, bool data)
{
    int rc;

    assert(type <= UINT16_MAX && body.n <= MESSAGE_MAX);
    if (c->finishing || c->state >= CONN_LINGER)
        return -EPIPE;
    rc = outq_add(&c->out, (uint16_t)type, body, data);
    if (rc < 0) { /* somebody would wait for it */
        conn_fail_errno(c, rc);
        return rc;
    }
    if (outq_bytes(&c->out, true) >= LINK_DATA_HIGH)
        c->full = true;
    if (outq_bytes(&c->out, false) >= LINK_CONTROL_HIGH)
        c->busy = true;
    if (outq_bytes(&c->out, false) > LINK_CONTROL_MAX)
        conn_fail_errno(c, -ENOBUFS);
    else if (c->state == CONN_UP)
        conn_schedule(c);
    return 0;
}

size_t conn_queued(const struct conn *c)
{
    return outq_bytes(&c->out, true) + outq_bytes(&c->out, false);
}

bool conn_is_full(const struct conn *c)
{
    return c->full;
}

bool conn_is_busy(const struct conn *c)
{
    return c->busy;
}

void conn_finish(struct conn *c)
{
    if (c->finishing || c->state >= CONN_LINGER)
        return;
    if (c->state != CONN_UP) {
        conn_shut_down(c);
        return;
    }
    c->finishing = true;
    conn_schedule(c);
    conn_arm(c);
}

void conn_close(struct conn *c)
{
    conn_shut_down(c);
}

void conn_reject(struct conn *c, const char *text)
{
    struct err why;

    err_set(&why, -EPROTO, "%s", text);
    conn_fail(c, &why);
}

void conn_out_of_memory(struct conn *c)
{
    struct err why;

    err_set(&why, -ENOMEM, "out of memory");
    conn_fail(c, &why);
}

const struct err *conn_why(const struct conn *c)
{
    return &c->why;
}

/* What we write is our own beginning until TLS has an answer to give. */
enum conn_progress conn_progress(const struct conn *c)
{
    if (tls_is_up(c->tls))
        return CONN_SECURED;
    if (c->prologue_len < CONN_PROLOGUE_LEN)
        return CONN_SILENT;
    return c->stats.bytes_out > CONN_PROLOGUE_LEN ? CONN_ANSWERED : CONN_BEGUN;
}

void conn_pause_deadline(struct conn *c, bool paused)
{
    c->paused = paused;
    c->last_in = uv_now(c->timer.loop);
    conn_arm(c);
}

const char *conn_peer(const struct conn *c)
{
    return c->peer;
}

const char *conn_local(const struct conn *c)
{
    return c->local;
}

const char *conn_peer_key(const struct conn *c)
{
    return tls_peer_key(c->tls);
}

struct conn_stats conn_stats(const struct conn *c)
{
    return c->stats;
}

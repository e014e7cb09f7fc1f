/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/listener.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/addrs.h"
#include "common/io/listen_socket.h"
#include "common/io/log.h"
#include "common/io/sockname.h"
#include "common/limits.h"
#include "common/strv.h"
#include "common/util.h"

#define SOCKS_MAX (ADDRS_MAX + 2)
#define ANY_PORT_TRIES 100
#define ACCEPT_BATCH 16 /* a turn of the loop: handshakes go on in between */
#define BUSY_STRANGERS (PREAUTH_CONNS_MAX / 4)
#define BUSY_PAUSE_MS 20 /* between batches while there are many: the kernel's queue waits, nobody is dropped */

struct stranger {
    struct stranger *next; /* the next younger one */
    struct conn *c;        /* lent */
    uint8_t ip[16];        /* all zero bytes in front of an IPv4 address */
    unsigned limit;        /* connections from its address */
};

struct sock {
    uv_poll_t poll;
    int fd;
    struct listener *l;
};

struct listener {
    struct sock sock[SOCKS_MAX];
    unsigned sock_count, handles;
    uv_timer_t pause;
    bool closing;
    bool full; /* nobody is let in any more */
    bool no_room_told;
    uint16_t port;
    struct tls_ctx *ctx;        /* shared, counted */
    const struct conn_ops *ops; /* lent */
    void *arg;                  /* lent */
    struct stranger *oldest;
    unsigned strangers;
    struct strangers turned_away;
};

/* ---- strangers ---- */

static void forget(struct listener *l, const struct conn *c)
{
    for (struct stranger **p = &l->oldest; *p != NULL; p = &(*p)->next) {
        struct stranger *s = *p;

        if (s->c != c)
            continue;
        *p = s->next;
        l->strangers--;
        conn_set_gone(s->c, NULL, NULL);
        free(s);
        return;
    }
}

static bool is_rejected(const struct conn *c)
{
    int code = conn_why(c)->code;

    return code == -EPROTO || code == -EKEYREJECTED || code == -ETIMEDOUT || code == -E2BIG;
}

static void on_gone(struct conn *c, void *arg)
{
    struct listener *l = arg;

    l->turned_away.rejected += is_rejected(c);
    forget(l, c);
}

static void on_dropped(struct conn *c, const struct err *why, void *arg)
{
    (void)arg;
    log_debug("connection from %s dropped: %s", conn_peer(c), why->code < 0 ? why->text : "closed");
}

static const struct conn_ops dropped_ops = {.on_close = on_dropped};

/* Its end comes from the loop, when the owner may be gone: he hears of it only where he has made it one of his own. */
static void let_go(struct listener *l, struct conn *c)
{
    forget(l, c);
    if (conn_has_ops(c, l->ops))
        conn_set_ops(c, &dropped_ops, NULL);
    conn_close(c);
}

static void drop(struct listener *l, struct conn *c)
{
    let_go(l, c);
    l->turned_away.crowded++;
}

static unsigned count_of(const struct listener *l, const uint8_t ip[16])
{
    unsigned n = 0;

    for (const struct stranger *s = l->oldest; s != NULL; s = s->next)
        n += memcmp(s->ip, ip, 16) == 0;
    return n;
}

/* Of those from `ip`, or of all (NULL), who has to go. Not the newest: it had no time yet. */
static struct conn *victim_of(const struct listener *l, const uint8_t *ip, const struct stranger *newest)
{
    const struct stranger *worst = NULL;

    for (const struct stranger *s = l->oldest; s != newest; s = s->next)
        if ((ip == NULL || memcmp(s->ip, ip, 16) == 0) &&
            (worst == NULL || conn_progress(s->c) < conn_progress(worst->c)))
            worst = s;
    assert(worst != NULL); /* there are more than one */
    return worst->c;
}

/* True where the address of the newest is over its own limit. */
static bool keep_limits(struct listener *l, const struct stranger *newest)
{
    const struct stranger *worst = l->oldest;
    unsigned most = 0;

    if (count_of(l, newest->ip) > newest->limit) {
        drop(l, victim_of(l, newest->ip, newest));
        return true;
    }
    if (l->strangers <= PREAUTH_CONNS_MAX)
        return false;
    for (const struct stranger *s = l->oldest; s != NULL; s = s->next) {
        unsigned n = count_of(l, s->ip);

        if (n > most) {
            most = n;
            worst = s;
        }
    }
    drop(l, victim_of(l, most > 1 ? worst->ip : NULL, newest));
    return false;
}

/* Many played nodes on this machine are one address. */
static unsigned limit_of(int fd, const uint8_t peer[16])
{
    union sockname a;
    uint8_t own[16];

    if (!sockname_of(fd, false, &a) || !sockname_bytes(&a.sa, own))
        return PREAUTH_CONNS_PER_ADDR;
    return memcmp(own, peer, 16) == 0 ? PREAUTH_CONNS_MAX / 2 : PREAUTH_CONNS_PER_ADDR;
}

/* ---- accepting ---- */

static void on_ready(uv_poll_t *h, int status, int events);

static void accept_again(uv_timer_t *t)
{
    struct listener *l = t->data;

    for (unsigned i = 0; i < l->sock_count; i++)
        uv_poll_start(&l->sock[i].poll, UV_READABLE, on_ready);
}

static void pause_accepting(struct listener *l, uint64_t ms)
{
    for (unsigned i = 0; i < l->sock_count; i++)
        uv_poll_stop(&l->sock[i].poll);
    uv_timer_start(&l->pause, accept_again, ms, 0);
}

/* True where its address has too many. */
static bool take(struct listener *l, int fd, const union sockname *peer)
{
    struct stranger *s = calloc(1, sizeof(*s)), **last = &l->oldest;

    if (s == NULL) {
        close(fd);
        return false;
    }
    (void)sockname_bytes(&peer->sa, s->ip); /* of no other family is a socket here */
    s->limit = limit_of(fd, s->ip);
    s->c = conn_new(l->pause.loop, fd, true, l->ctx, l->ops, l->arg);
    if (s->c == NULL) {
        free(s);
        return false;
    }
    if (l->full)
        conn_turn_away(s->c);
    conn_set_gone(s->c, on_gone, l);
    while (*last != NULL)
        last = &(*last)->next;
    *last = s;
    l->strangers++;
    return keep_limits(l, s);
}

static void on_ready(uv_poll_t *h, int status, int events)
{
    struct sock *sock = h->data;
    struct listener *l = sock->l;

    (void)events;
    (void)status; /* accept4() tells */
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        union sockname peer = {0};
        socklen_t len = sizeof(peer);
        int fd = accept4(sock->fd, &peer.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            if (take(l, fd, &peer))
                return; /* one of its others had to go: hear them before the next one has to */
            continue;
        }
        if (listen_socket_no_room(sock->fd, &l->no_room_told)) {
            pause_accepting(l, LISTEN_PAUSE_MS);
            return;
        }
        if (errno == EAGAIN)
            break;
    }
    if (status < 0)
        pause_accepting(l, LISTEN_PAUSE_MS);
    else if (l->strangers >= BUSY_STRANGERS)
        pause_accepting(l, BUSY_PAUSE_MS);
}

/* ---- opening ---- */

/* All of `addrs` with one port; 0: any. Fills the sockets. */
static int open_all(struct listener *l, char *const *addrs, uint16_t port)
{
    int rc = -EADDRNOTAVAIL;

    l->sock_count = 0;
    for (size_t i = 0; addrs[i] != NULL && l->sock_count < SOCKS_MAX; i++) {
        rc = listen_socket(addrs[i], port);
        if (rc < 0 && listen_socket_absent(rc))
            continue;
        if (rc < 0)
            break;
        l->sock[l->sock_count++].fd = rc;
        port = listen_socket_port(rc);
    }
    l->port = port;
    if (l->sock_count > 0 && (rc >= 0 || listen_socket_absent(rc)))
        return 0;
    while (l->sock_count > 0)
        close(l->sock[--l->sock_count].fd);
    return rc;
}

static int open_any_port(struct listener *l, char *const *addrs)
{
    int rc = -EADDRINUSE;

    /* The first address chooses; it may be taken on the next one. */
    for (int i = 0; i < ANY_PORT_TRIES && rc == -EADDRINUSE; i++)
        rc = open_all(l, addrs, 0);
    return rc;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Every port of the range, from a random one on with a random step that meets each once: launchers that start together
 * on one machine do not run after each other. */
static int open_range(struct listener *l, char *const *addrs, uint16_t low, uint16_t high)
{
    uint32_t count = (uint32_t)high - low + 1, at, step, r[2];
    int rc = -EADDRINUSE;

    tls_random(r, sizeof(r));
    at = r[0] % count;
    step = 1 + r[1] % count;
    while (gcd(step, count) != 1)
        step--;
    for (uint32_t i = 0; i < count && (rc == -EADDRINUSE || rc == -EACCES); i++) {
        rc = open_all(l, addrs, (uint16_t)(low + at));
        at = (at + step) % count;
    }
    return rc;
}

static int addrs_of(const struct listener_conf *conf, char ***out, struct err *err)
{
    char **v = NULL;
    int rc = 0;

    if (conf->loopback_only) {
        rc = strv_add(&v, "127.0.0.1");
    } else if (conf->interface != NULL) {
        rc = addrs_to_give(conf->interface, NULL, &v, err);
        if (rc < 0)
            return rc;
        if (conf->loopback && (strv_add(&v, "127.0.0.1") < 0 || strv_add(&v, "::1") < 0))
            rc = -ENOMEM;
    } else if (strv_add(&v, "0.0.0.0") < 0 || strv_add(&v, "::") < 0) {
        rc = -ENOMEM;
    }
    if (rc < 0) {
        strv_free(v);
        return err_set(err, rc, "out of memory");
    }
    *out = v;
    return 0;
}

static int open_port(struct listener *l, const struct listener_conf *conf, char *const *addrs, struct err *err)
{
    int rc;

    if (conf->port_low == 0) {
        rc = open_any_port(l, addrs);
        return rc < 0 ? err_set(err, rc, "cannot listen on any port: %s", uv_strerror(rc)) : 0;
    }
    rc = open_range(l, addrs, conf->port_low, conf->port_high);
    if (rc < 0 && conf->port_low == conf->port_high)
        return err_set(err, rc, "cannot listen on port %u: %s%s", conf->port_low, uv_strerror(rc),
                       rc == -EADDRINUSE ? " (--port=PORT takes another)" : "");
    if (rc < 0)
        return err_set(err, rc, "cannot listen on any of the ports %u-%u: %s", conf->port_low, conf->port_high,
                       uv_strerror(rc));
    return 0;
}

static void on_closed(uv_handle_t *h)
{
    struct listener *l = h->data;

    if (--l->handles > 0)
        return;
    tls_ctx_unref(l->ctx);
    free(l);
}

static int watch(struct listener *l, uv_loop_t *loop)
{
    unsigned count = l->sock_count;
    int rc = 0;

    uv_timer_init(loop, &l->pause);
    l->pause.data = l;
    l->handles = 1;
    for (l->sock_count = 0; l->sock_count < count && rc == 0; l->sock_count += rc == 0) {
        struct sock *s = &l->sock[l->sock_count];

        s->l = l;
        rc = uv_poll_init(loop, &s->poll, s->fd);
        if (rc < 0)
            break;
        s->poll.data = s;
        l->handles++;
    }
    for (unsigned i = l->sock_count; i < count; i++)
        close(l->sock[i].fd);
    accept_again(&l->pause);
    return rc;
}

int listener_open(uv_loop_t *loop, const struct listener_conf *conf, struct listener **out, struct err *err)
{
    struct listener *l = calloc(1, sizeof(*l));
    char **addrs = NULL;
    int rc;

    assert(conf->port_low <= conf->port_high);
    if (l == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    rc = addrs_of(conf, &addrs, err);
    if (rc == 0)
        rc = open_port(l, conf, addrs, err);
    strv_free(addrs);
    if (rc < 0) {
        free(l);
        return rc;
    }
    l->ctx = tls_ctx_ref(conf->ctx);
    l->ops = conf->ops;
    l->arg = conf->arg;
    rc = watch(l, loop);
    if (rc < 0) {
        listener_close(l);
        return err_set(err, rc, "cannot watch a socket: %s", uv_strerror(rc));
    }
    *out = l;
    return 0;
}

uint16_t listener_port(const struct listener *l)
{
    return l->port;
}

void listener_trusted(struct listener *l, struct conn *c)
{
    forget(l, c);
}

struct strangers listener_strangers(const struct listener *l)
{
    struct strangers sum = l->turned_away;

    for (const struct stranger *s = l->oldest; s != NULL; s = s->next)
        sum.rejected += is_rejected(s->c); /* it may still read why */
    return sum;
}

/* Of those who have said hello, or will, the owner knows what to say. */
static void drop_strangers(struct listener *l, bool all)
{
    for (struct stranger *s = l->oldest, *next; s != NULL; s = next) {
        struct conn *c = s->c;

        next = s->next;
        if (!all && conn_progress(c) == CONN_SECURED)
            continue;
        let_go(l, c);
    }
}

void listener_turn_away(struct listener *l)
{
    if (!l->full)
        drop_strangers(l, false);
    l->full = true;
}

void listener_close(struct listener *l)
{
    if (l == NULL || l->closing)
        return;
    l->closing = true;
    drop_strangers(l, true);
    for (unsigned i = 0; i < l->sock_count; i++) {
        l->sock[i].poll.data = l;
        uv_close((uv_handle_t *)&l->sock[i].poll, on_closed);
        close(l->sock[i].fd);
    }
    uv_close((uv_handle_t *)&l->pause, on_closed);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/dialer.h"

#include <assert.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/addrs.h"
#include "common/io/sockname.h"
#include "common/limits.h"
#include "common/num.h"
#include "common/strv.h"
#include "common/util.h"

#define STAGGER_MS 250
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 2000
#define TARGETS_MAX 64

/* One address. */
struct target {
    struct dialer *d;
    char *name; /* "ADDRESS:PORT", IPv6 in brackets */
    union sockname addr;
    socklen_t addr_len;
    struct conn *c; /* under way; NULL: waits for `due` */
    bool up;
    uint64_t due;
    unsigned fails;
    int away; /* why the peer has turned us away, negative errno; it is not asked again */
    char ifname[IF_NAMESIZE];
    char why[200];
};

struct dialer {
    uv_loop_t *loop;
    uv_timer_t timer;
    bool over;    /* won, failed or closed: nothing is started any more */
    bool closing; /* by its owner */
    bool timer_gone;
    unsigned live; /* conns that still have to tell that they are closed */
    uint64_t deadline, deadline_ms;
    struct dialer_conf conf; /* its addrs and hello are not used */
    struct buf hello;
    size_t count;
    struct target target[];
};

static void free_dialer(struct dialer *d)
{
    for (size_t i = 0; i < d->count; i++)
        free(d->target[i].name);
    buf_done(&d->hello);
    tls_ctx_unref(d->conf.ctx);
    free(d);
}

static void maybe_free(struct dialer *d)
{
    if (d->timer_gone && d->live == 0)
        free_dialer(d);
}

/* ---- the outcome ---- */

static void stop(struct dialer *d, const struct target *but)
{
    d->over = true;
    if (!d->closing)
        uv_timer_stop(&d->timer);
    for (size_t i = 0; i < d->count; i++)
        if (&d->target[i] != but && d->target[i].c != NULL)
            conn_close(d->target[i].c);
}

static void add_failure(struct buf *b, const struct target *t)
{
    const char *why = t->why;
    size_t n = strlen(t->name);

    if (why[0] == '\0')
        why = t->c == NULL ? "not tried" : t->up ? "no answer to the hello" : "no answer";
    else if (strncmp(why, t->name, n) == 0 && why[n] == ' ') /* "ADDR:PORT says that ..." */
        why += n + 1;
    if (t->ifname[0] != '\0')
        buf_printf(b, "%s (%s): %s", t->name, t->ifname, why);
    else
        buf_printf(b, "%s: %s", t->name, why);
}

void dialer_state(const struct dialer *d, struct buf *out)
{
    for (size_t i = 0; i < d->count; i++) {
        if (i > 0)
            buf_add_str(out, "; ");
        add_failure(out, &d->target[i]);
    }
}

bool dialer_turned_away(const struct dialer *d, struct err *why)
{
    for (size_t i = 0; i < d->count; i++) {
        const struct target *t = &d->target[i];

        if (t->away == 0)
            continue;
        if (t->away == -EKEYREJECTED) /* who that was the others say themselves */
            err_set(why, t->away, "%s: %s", t->name, t->why);
        else
            err_set(why, t->away, "%s", t->why);
        return true;
    }
    return false;
}

static void fail(struct dialer *d, const struct err *why)
{
    stop(d, NULL);
    d->conf.on_failed(why, d->conf.arg);
}

static void give_up(struct dialer *d)
{
    struct buf b = {0};
    struct err why;

    dialer_state(d, &b);
    err_set(&why, -ETIMEDOUT, "no connection within %g s: %.*s", (double)d->deadline_ms / 1000, SPAN_FMT(buf_span(&b)));
    buf_done(&b);
    fail(d, &why);
}

/* ---- the conns ---- */

static void arm(struct dialer *d);

static void note_interface(struct target *t, const char *local)
{
    char addr[INET6_ADDRSTRLEN + 2];
    const char *colon = strrchr(local, ':');
    size_t skip = local[0] == '[', n;

    if (colon == NULL)
        return;
    n = (size_t)(colon - local) - 2 * skip;
    if (n >= sizeof(addr))
        return;
    memcpy(addr, local + skip, n);
    addr[n] = '\0';
    snprintf(t->ifname, sizeof(t->ifname), "%s", addrs_interface_of(addr));
}

static void again_later(struct target *t, const char *why)
{
    uint64_t wait = (uint64_t)BACKOFF_MIN_MS << MIN(t->fails, 5u);
    uint32_t r;

    wait = MIN(wait, (uint64_t)BACKOFF_MAX_MS);
    tls_random(&r, sizeof(r));
    t->due = uv_now(t->d->loop) + wait / 2 + r % (wait / 2 + 1);
    t->fails++;
    snprintf(t->why, sizeof(t->why), "%s", why);
}

/* Nobody is under way: the next that was not tried yet need not wait for its turn. */
static void hurry(struct dialer *d)
{
    struct target *next = NULL;

    for (size_t i = 0; i < d->count; i++) {
        struct target *t = &d->target[i];

        if (t->c != NULL)
            return;
        if (t->fails == 0 && t->away == 0 && (next == NULL || t->due < next->due))
            next = t;
    }
    if (next != NULL)
        next->due = uv_now(d->loop);
}

static void on_up(struct conn *c, void *arg)
{
    struct target *t = arg;

    t->up = true;
    if (conn_send(c, t->d->conf.hello_type, buf_span(&t->d->hello), false) < 0)
        conn_close(c);
}

static void on_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct target *t = arg;
    struct dialer *d = t->d;

    if (d->over)
        return;
    t->c = NULL;
    d->live--;
    stop(d, t);
    d->conf.on_won(c, type, body, d->conf.arg);
    assert(conn_arg(c) != t);
}

static bool is_turning_away(const struct dialer *d, int code)
{
    return code == -EPROTONOSUPPORT || code == -ESHUTDOWN || (code == -EKEYREJECTED && d->conf.key_is_final);
}

static bool all_away(const struct dialer *d)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->target[i].away == 0)
            return false;
    return true;
}

static void on_close(struct conn *c, const struct err *why, void *arg)
{
    struct target *t = arg;
    struct dialer *d = t->d;

    d->live--;
    t->c = NULL;
    if (d->over) {
        maybe_free(d);
        return;
    }
    note_interface(t, conn_local(c));
    again_later(t, why->code == 0 ? "out of memory" : why->text);
    if (is_turning_away(d, why->code))
        t->away = why->code;
    if (t->away != 0 && (!d->conf.others_too || all_away(d))) {
        struct err text;

        (void)dialer_turned_away(d, &text);
        fail(d, &text);
        return;
    }
    hurry(d);
    arm(d);
}

static const struct conn_ops ops = {on_up, on_msg, NULL, on_close};

static void attempt(struct target *t)
{
    struct dialer *d = t->d;
    int fd = socket(t->addr.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    t->up = false;
    if (fd < 0 || (connect(fd, &t->addr.sa, t->addr_len) < 0 && errno != EINPROGRESS)) {
        again_later(t, uv_strerror(-errno));
        if (fd >= 0)
            close(fd);
        hurry(d);
        return;
    }
    t->c = conn_new(d->loop, fd, false, d->conf.ctx, &ops, t);
    if (t->c == NULL) {
        again_later(t, "out of memory");
        return;
    }
    d->live++;
    note_interface(t, conn_local(t->c));
}

static bool waits(const struct target *t)
{
    return t->c == NULL && t->away == 0;
}

/* The peer may have let us in just now: to hang up would be a loss for both. */
static bool is_answer_due(const struct dialer *d)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->target[i].c != NULL && d->target[i].up)
            return true;
    return false;
}

static void on_timer(uv_timer_t *h)
{
    struct dialer *d = h->data;
    uint64_t now = uv_now(d->loop);

    if (now >= d->deadline) {
        if (!d->conf.is_round || !is_answer_due(d)) /* else its conn tells, sooner or later */
            give_up(d);
        return;
    }
    for (size_t i = 0; i < d->count; i++)
        if (waits(&d->target[i]) && d->target[i].due <= now)
            attempt(&d->target[i]);
    arm(d);
}

static void arm(struct dialer *d)
{
    uint64_t now = uv_now(d->loop), due = d->deadline;

    for (size_t i = 0; i < d->count; i++)
        if (waits(&d->target[i]))
            due = MIN(due, d->target[i].due);
    uv_timer_start(&d->timer, on_timer, due > now ? due - now : 0, 0);
}

/* ---- opening and closing ---- */

static int parse(struct target *t, const char *text, struct err *err)
{
    const char *colon = strrchr(text, ':');
    char name[SOCKNAME_TEXT];
    uint64_t port;

    if (colon != NULL && num_u64(span_of(colon + 1), 1, 65535, &port) == 0)
        t->addr_len = sockname_set(&t->addr, (struct span){text, (size_t)(colon - text)}, (uint16_t)port);
    if (t->addr_len == 0)
        return err_set(err, -EINVAL, "'%.100s' is not ADDRESS:PORT", text);
    sockname_text(&t->addr, name);
    t->name = strdup(name);
    return t->name == NULL ? err_set(err, -ENOMEM, "out of memory") : 0;
}

static int fill(struct dialer *d, const struct dialer_conf *conf, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        int rc = parse(&d->target[i], conf->addrs[i], err);

        if (rc < 0)
            return rc;
        d->count = i + 1;
        d->target[i].d = d;
        d->target[i].due = uv_now(d->loop) + STAGGER_MS * i;
    }
    if (buf_add(&d->hello, conf->hello.p, conf->hello.n) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    return 0;
}

int dialer_open(uv_loop_t *loop, const struct dialer_conf *conf, struct dialer **out, struct err *err)
{
    size_t count = strv_count(conf->addrs);
    struct dialer *d;
    int rc;

    if (count == 0 || count > TARGETS_MAX)
        return err_set(err, -EINVAL, "%zu addresses to connect to; 1 to %d are possible", count, TARGETS_MAX);
    d = calloc(1, sizeof(*d) + count * sizeof(d->target[0]));
    if (d == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    uv_update_time(loop);
    d->loop = loop;
    d->conf = *conf;
    d->conf.ctx = tls_ctx_ref(conf->ctx);
    rc = fill(d, conf, count, err);
    if (rc < 0) {
        free_dialer(d);
        return rc;
    }
    d->deadline_ms = conf->deadline_ms;
    d->deadline = uv_now(loop) + conf->deadline_ms;
    uv_timer_init(loop, &d->timer);
    d->timer.data = d;
    arm(d);
    *out = d;
    return 0;
}

static void on_timer_closed(uv_handle_t *h)
{
    struct dialer *d = h->data;

    d->timer_gone = true;
    maybe_free(d);
}

void dialer_close(struct dialer *d)
{
    if (d == NULL || d->closing)
        return;
    stop(d, NULL);
    d->closing = true;
    uv_close((uv_handle_t *)&d->timer, on_timer_closed);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/join_find.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/sockname.h"
#include "common/limits.h"
#include "common/strv.h"
#include "common/util.h"
#include "conf/provider_conf.h"

/* A round: long enough for a launcher that many come to at once, but an address may also be one of the past. */
#define ROUND_MIN_MS 3000
#define ROUND_MAX_MS 12000
#define ROUNDS_EACH 4 /* of one length, before they get longer */
#define PAUSE_MIN_MS 200
#define PAUSE_MAX_MS 2000
#define PAUSE_AWAY_MS 5000     /* where we were turned away: it costs them a line */
#define PATIENCE_AWAY_MS 30000 /* what a pod may take to end, and what a name server remembers */

static uint64_t patience_ms = PATIENCE_AWAY_MS;

struct join_find {
    uv_loop_t *loop;
    uv_timer_t timer; /* the next look-up */
    uv_timer_t limit; /* the end of it all */
    uv_getaddrinfo_t lookup;
    bool looking;     /* the look-up has not been answered */
    bool over;        /* won, failed or closed */
    bool closing;     /* by its owner */
    bool dialled;     /* `why` is of addresses, and not of the name */
    unsigned handles; /* not closed yet */
    struct dialer *dialer;
    struct dialer_conf conf;
    struct buf hello;
    char where[HOST_NAME_MAX_LEN + 16], name[HOST_NAME_MAX_LEN + 1];
    uint16_t port;
    uint64_t deadline;
    unsigned rounds, failed;
    char why[ERR_TEXT_MAX]; /* of the last round that is over */
    struct err away;        /* in that round we were turned away; code 0: we were not */
    uint64_t away_since;
};

static void maybe_free(struct join_find *f)
{
    if (f->handles > 0 || f->looking)
        return;
    tls_ctx_unref(f->conf.ctx);
    buf_done(&f->hello);
    free(f);
}

static void stop(struct join_find *f)
{
    f->over = true;
    uv_timer_stop(&f->timer);
    uv_timer_stop(&f->limit);
    dialer_close(f->dialer);
    f->dialer = NULL;
}

void join_find_state(const struct join_find *f, struct buf *out)
{
    bool dialled = f->dialer != NULL || f->dialled;

    if (!dialled || !sockname_is_number(span_of(f->name))) /* whoever reads it has said a name */
        buf_printf(out, "%s: ", f->where);
    if (f->dialer != NULL)
        dialer_state(f->dialer, out);
    else
        buf_add_str(out, f->why[0] != '\0' ? f->why : "the name is being looked up");
}

static void fail(struct join_find *f, const struct err *why)
{
    struct err text = *why;

    if (why->code == -EKEYREJECTED)
        err_set(&text, why->code, "the launcher there has another secret than ours (%s)", why->text);
    stop(f);
    f->conf.on_failed(&text, f->conf.arg);
}

static void on_limit(uv_timer_t *t)
{
    struct join_find *f = t->data;
    struct buf state = {0};
    struct err why;

    if (f->away.code != 0) {
        fail(f, &f->away);
        return;
    }
    join_find_state(f, &state);
    err_set(&why, -ETIMEDOUT, "no connection within %g s: %.*s", (double)f->conf.deadline_ms / 1000,
            SPAN_FMT(buf_span(&state)));
    buf_done(&state);
    fail(f, &why);
}

/* --- rounds ----------------------------------------------------------------------------------------------------- */

static void look_up(uv_timer_t *t);

static void next_round(struct join_find *f)
{
    uint64_t wait = MIN((uint64_t)PAUSE_MIN_MS << MIN(f->failed, 5u), (uint64_t)PAUSE_MAX_MS);
    uint32_t r;

    if (f->away.code != 0)
        wait = MIN((uint64_t)PAUSE_AWAY_MS, patience_ms / 4 + 1);
    f->failed++;
    tls_random(&r, sizeof(r));
    uv_timer_start(&f->timer, look_up, wait / 2 + r % (wait / 2 + 1), 0);
}

/* With no address we were turned away by none. */
static void not_found(struct join_find *f, const char *why)
{
    snprintf(f->why, sizeof(f->why), "%s", why);
    f->away.code = 0;
    f->dialled = false;
    next_round(f);
}

static void on_won(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct join_find *f = arg;

    stop(f);
    f->conf.on_won(c, type, body, f->conf.arg);
}

/* Does it go on? */
static bool note_away(struct join_find *f)
{
    struct err why;

    if (!dialer_turned_away(f->dialer, &why)) {
        f->away.code = 0;
        return true;
    }
    if (f->away.code == 0)
        f->away_since = uv_now(f->loop);
    f->away = why;
    return f->conf.others_too && uv_now(f->loop) - f->away_since < patience_ms;
}

static void on_round_failed(const struct err *why, void *arg)
{
    struct join_find *f = arg;
    struct buf state = {0};

    if (!note_away(f)) {
        fail(f, &f->away);
        return;
    }
    if (why->code != -ETIMEDOUT && f->away.code == 0) {
        fail(f, why);
        return;
    }
    dialer_state(f->dialer, &state);
    snprintf(f->why, sizeof(f->why), "%.*s", SPAN_FMT(buf_span(&state)));
    buf_done(&state);
    f->dialled = true;
    dialer_close(f->dialer);
    f->dialer = NULL;
    next_round(f);
}

static bool is_usable(const struct addrinfo *ai)
{
    return ai->ai_family == AF_INET || ai->ai_family == AF_INET6;
}

/* Out of memory: as many as there is room for. */
static void add_addr(const struct join_find *f, const struct addrinfo *ai, char ***addrs)
{
    const void *at = ai->ai_family == AF_INET
                         ? (const void *)&((const struct sockaddr_in *)(const void *)ai->ai_addr)->sin_addr
                         : (const void *)&((const struct sockaddr_in6 *)(const void *)ai->ai_addr)->sin6_addr;
    char ip[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN + 8];

    if (inet_ntop(ai->ai_family, at, ip, sizeof(ip)) == NULL)
        return;
    snprintf(text, sizeof(text), "%s:%u", ip, f->port);
    (void)strv_add(addrs, text);
}

/* Of more than can be dialled at once, as where a Service's name leads to all pods, each round has the next ones. */
static char **addrs_of(const struct join_find *f, const struct addrinfo *ai)
{
    unsigned count = 0, i = 0, first;
    char **addrs = NULL;

    for (const struct addrinfo *a = ai; a != NULL; a = a->ai_next)
        count += is_usable(a);
    first = count > ADDRS_MAX ? f->rounds * ADDRS_MAX % count : 0;
    for (; ai != NULL; ai = ai->ai_next)
        if (is_usable(ai) && (count + i++ - first) % count < ADDRS_MAX)
            add_addr(f, ai, &addrs);
    return addrs;
}

static void dial(struct join_find *f, char *const *addrs)
{
    uint64_t now = uv_now(f->loop), left = f->deadline > now ? f->deadline - now : 1;
    struct dialer_conf dc = f->conf;
    struct err err = {0};

    f->dialled = false;
    dc.addrs = addrs;
    dc.hello = buf_span(&f->hello);
    dc.deadline_ms =
        MIN(MIN((uint64_t)ROUND_MIN_MS << MIN(f->rounds / ROUNDS_EACH, 4u), (uint64_t)ROUND_MAX_MS), left + 1000);
    dc.key_is_final = true;
    dc.is_round = true;
    dc.on_won = on_won;
    dc.on_failed = on_round_failed;
    dc.arg = f;
    f->rounds++;
    if (dialer_open(f->loop, &dc, &f->dialer, &err) == 0)
        return;
    not_found(f, err.text);
}

static const char *why_unknown(int status)
{
    if (status == 0) /* a name that is known has an address */
        return "out of memory";
    if (status == UV_EAI_NONAME || status == UV_EAI_NODATA)
        return "the name is not known";
    return status == UV_EAI_AGAIN ? "no name server answers" : uv_strerror(status);
}

static void on_looked_up(uv_getaddrinfo_t *req, int status, struct addrinfo *ai)
{
    struct join_find *f = req->data;
    char **addrs;

    f->looking = false;
    if (f->over) {
        uv_freeaddrinfo(ai);
        maybe_free(f);
        return;
    }
    addrs = status == 0 ? addrs_of(f, ai) : NULL;
    uv_freeaddrinfo(ai);
    if (addrs == NULL) {
        not_found(f, why_unknown(status));
        return;
    }
    dial(f, addrs);
    strv_free(addrs);
}

static void look_up(uv_timer_t *t)
{
    struct join_find *f = t->data;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    int rc = uv_getaddrinfo(f->loop, &f->lookup, on_looked_up, f->name, NULL, &hints);

    if (rc == 0) {
        f->looking = true;
        return;
    }
    not_found(f, uv_strerror(rc));
}

/* --- opening and closing ---------------------------------------------------------------------------------------- */

void join_find_set_patience(uint64_t ms)
{
    patience_ms = ms != 0 ? ms : PATIENCE_AWAY_MS;
}

int join_find_open(uv_loop_t *loop, const char *where, const struct dialer_conf *conf, struct join_find **out,
                   struct err *err)
{
    struct join_find *f = calloc(1, sizeof(*f));

    if (f == NULL || buf_add(&f->hello, conf->hello.p, conf->hello.n) < 0) {
        free(f);
        return err_set(err, -ENOMEM, "out of memory");
    }
    if (conf_join_parse(span_of(where), f->name, &f->port) < 0) {
        buf_done(&f->hello);
        free(f);
        return err_set(err, -EINVAL, "'%.100s' is not ADDR:PORT", where);
    }
    snprintf(f->where, sizeof(f->where), "%s", where);
    f->loop = loop;
    f->conf = *conf;
    f->conf.ctx = tls_ctx_ref(conf->ctx);
    uv_update_time(loop);
    f->deadline = uv_now(loop) + conf->deadline_ms;
    uv_timer_init(loop, &f->timer);
    uv_timer_init(loop, &f->limit);
    f->timer.data = f->limit.data = f->lookup.data = f;
    f->handles = 2;
    uv_timer_start(&f->limit, on_limit, conf->deadline_ms, 0);
    uv_timer_start(&f->timer, look_up, 0, 0);
    *out = f;
    return 0;
}

static void on_timer_closed(uv_handle_t *h)
{
    struct join_find *f = h->data;

    f->handles--;
    maybe_free(f);
}

void join_find_close(struct join_find *f)
{
    if (f == NULL || f->closing)
        return;
    stop(f);
    f->closing = true;
    if (f->looking)
        (void)uv_cancel((uv_req_t *)&f->lookup);
    uv_close((uv_handle_t *)&f->timer, on_timer_closed);
    uv_close((uv_handle_t *)&f->limit, on_timer_closed);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/listener.h"
#include "common/limits.h"

static uv_loop_t loop;
static struct tls_ctx *ctx;
static unsigned closed;

static void on_up(struct conn *c, void *arg)
{
    (void)c;
    (void)arg;
}

static void on_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    (void)type;
    (void)body;
    conn_trust(c);
    listener_trusted(*(struct listener **)arg, c);
}

static void on_close(struct conn *c, const struct err *why, void *arg)
{
    (void)c;
    (void)why;
    (void)arg;
    closed++;
}

static const struct conn_ops ops = {on_up, on_msg, NULL, on_close};

static void setup(void)
{
    cr_assert_eq(uv_loop_init(&loop), 0);
    cr_assert_eq(tls_ctx_new_cert(&ctx, NULL, NULL), 0);
}

static void finish(void)
{
    cr_assert_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    cr_assert_eq(uv_loop_close(&loop), 0);
    tls_ctx_unref(ctx);
}

static int open_on(struct listener **l, const char *interface, unsigned low, unsigned high, struct err *err)
{
    struct listener_conf conf = {.interface = interface,
                                 .port_low = (uint16_t)low,
                                 .port_high = (uint16_t)high,
                                 .loopback = true,
                                 .ctx = ctx,
                                 .ops = &ops,
                                 .arg = l};

    return listener_open(&loop, &conf, l, err);
}

/* A bare connection from one of the loopback addresses. */
static int call_from(const char *from, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET}, to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, from, &a.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    cr_assert_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static bool is_hung_up(int fd)
{
    char b[64];
    ssize_t n;

    while ((n = recv(fd, b, sizeof(b), MSG_DONTWAIT)) > 0)
        ;
    return n == 0 || errno != EAGAIN;
}

Test(listener, same_port_on_both_families, .init = setup)
{
    struct listener *l = NULL;
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int v4, v6 = socket(AF_INET6, SOCK_STREAM, 0);

    cr_assert_eq(open_on(&l, NULL, 0, 0, NULL), 0);
    cr_expect(listener_port(l) > 0);
    v4 = call_from("127.0.0.1", listener_port(l));
    to.sin6_port = htons(listener_port(l));
    /* Some machines have no IPv6. */
    cr_expect(v6 < 0 || connect(v6, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EADDRNOTAVAIL);
    listener_close(l);
    finish();
    close(v4);
    close(v6);
}

Test(listener, ports_of_a_range_are_used_up_then_named, .init = setup)
{
    struct listener *l[4] = {NULL};
    struct err err = {0};
    unsigned low;

    cr_assert_eq(open_on(&l[0], NULL, 0, 0, NULL), 0);
    low = listener_port(l[0]);
    if (low > 65533)
        low = 65533;
    /* The range may hold ports of others, but at least one is ours already. */
    for (int i = 1; i < 4; i++) {
        int rc = open_on(&l[i], NULL, low, low + 2, &err);

        cr_expect(rc == 0 || rc == -EADDRINUSE, "%d", rc);
        cr_expect(rc < 0 || (listener_port(l[i]) >= low && listener_port(l[i]) <= low + 2));
    }
    cr_expect_null(l[3], "outputs are untouched");
    cr_expect(strstr(err.text, "address already in use") != NULL, "%s", err.text);
    cr_expect_eq(open_on(&l[3], NULL, listener_port(l[0]), listener_port(l[0]), &err), -EADDRINUSE);
    for (int i = 0; i < 3; i++)
        listener_close(l[i]);
    finish();
}

Test(listener, unknown_interface_is_refused, .init = setup)
{
    struct listener *l = NULL;
    struct err err = {0};

    cr_expect_eq(open_on(&l, "nosuch9", 0, 0, &err), -EINVAL);
    cr_expect(strstr(err.text, "nosuch9") != NULL, "%s", err.text);
    cr_expect_null(l);
    finish();
}

Test(listener, ninth_of_an_address_costs_its_oldest, .init = setup)
{
    struct listener *l = NULL;
    int fd[PREAUTH_CONNS_PER_ADDR + 2], other;

    cr_assert_eq(open_on(&l, NULL, 0, 0, NULL), 0);
    other = call_from("127.0.0.3", listener_port(l));
    uv_run(&loop, UV_RUN_NOWAIT);
    for (int i = 0; i < PREAUTH_CONNS_PER_ADDR + 2; i++)
        fd[i] = call_from("127.0.0.2", listener_port(l));
    while (listener_strangers(l).crowded < 2)
        uv_run(&loop, UV_RUN_ONCE);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_expect(is_hung_up(fd[0]) && is_hung_up(fd[1]));
    for (int i = 2; i < PREAUTH_CONNS_PER_ADDR + 2; i++)
        cr_expect_not(is_hung_up(fd[i]), "%d", i);
    cr_expect_not(is_hung_up(other));
    cr_expect_eq(listener_strangers(l).crowded, 2);
    listener_close(l);
    finish();
    cr_expect_eq(closed, 0, "the owner, which may be gone, was told of %u", closed);
    for (int i = 0; i < PREAUTH_CONNS_PER_ADDR + 2; i++)
        close(fd[i]);
    close(other);
}

Test(listener, over_the_total_the_address_with_most_pays, .init = setup)
{
    struct listener *l = NULL;
    int fd[PREAUTH_CONNS_MAX + 1], lone;
    char from[32];

    cr_assert_eq(open_on(&l, NULL, 0, 0, NULL), 0);
    lone = call_from("127.0.9.9", listener_port(l));
    for (int i = 0; i < PREAUTH_CONNS_MAX; i++) {
        snprintf(from, sizeof(from), "127.0.1.%d", 1 + i / 5);
        fd[i] = call_from(from, listener_port(l));
    }
    while (listener_strangers(l).crowded < 1)
        uv_run(&loop, UV_RUN_ONCE);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_expect_eq(listener_strangers(l).crowded, 1);
    cr_expect_not(is_hung_up(lone));
    cr_expect(is_hung_up(fd[0]));
    listener_close(l);
    finish();
    for (int i = 0; i < PREAUTH_CONNS_MAX; i++)
        close(fd[i]);
    close(lone);
}

static void hello(struct conn *c, void *arg)
{
    (void)arg;
    conn_trust(c);
    conn_send(c, 1, SPAN_NONE, false);
}

static const struct conn_ops client_ops = {hello, on_msg, NULL, on_close};

Test(listener, who_is_trusted_outlives_it, .init = setup)
{
    struct listener *l = NULL, *none = NULL;
    struct conn *c;
    int stranger;

    cr_assert_eq(open_on(&l, NULL, 0, 0, NULL), 0);
    stranger = call_from("127.0.0.2", listener_port(l));
    c = conn_new(&loop, call_from("127.0.0.1", listener_port(l)), false, ctx, &client_ops, &none);
    while (conn_stats(c).bytes_in < 600)
        uv_run(&loop, UV_RUN_ONCE);
    for (int i = 0; i < 20; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    listener_close(l);
    for (int i = 0; i < 20; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    cr_expect(is_hung_up(stranger));
    cr_expect_eq(closed, 0, "the owner, which may be gone, was told of %u", closed);
    conn_finish(c);
    finish();
    cr_expect_eq(closed, 2);
    close(stranger);
}

static void on_secured(struct conn *c, void *arg)
{
    (void)c;
    *(int *)arg = 1;
}

static void on_lost(struct conn *c, const struct err *why, void *arg)
{
    (void)c;
    (void)why;
    *(int *)arg = -1;
}

static const struct conn_ops slow_ops = {on_secured, on_msg, NULL, on_lost};

Test(listener, who_has_come_further_is_not_the_one_to_go, .init = setup)
{
    struct listener *l = NULL;
    struct conn *c;
    int fd[20], state = 0;

    cr_assert_eq(open_on(&l, NULL, 0, 0, NULL), 0);
    c = conn_new(&loop, call_from("127.0.0.2", listener_port(l)), false, ctx, &slow_ops, &state);
    while (state == 0)
        uv_run(&loop, UV_RUN_ONCE);
    for (int i = 0; i < 20; i++)
        fd[i] = call_from("127.0.0.2", listener_port(l));
    while (listener_strangers(l).crowded < 21 - PREAUTH_CONNS_PER_ADDR)
        uv_run(&loop, UV_RUN_ONCE);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_expect_eq(state, 1, "it was the oldest, and is still there");
    cr_expect(is_hung_up(fd[0]));
    cr_expect_not(is_hung_up(fd[19]));
    conn_close(c);
    listener_close(l);
    finish();
    for (int i = 0; i < 20; i++)
        close(fd[i]);
}

Test(listener, strangers_that_leave_are_not_counted_those_that_are_wrong_are, .init = setup)
{
    struct listener *l = NULL;
    int leaves, wrong;

    cr_assert_eq(open_on(&l, NULL, 0, 0, NULL), 0);
    leaves = call_from("127.0.0.2", listener_port(l));
    wrong = call_from("127.0.0.3", listener_port(l));
    cr_assert_eq(send(wrong, "GET / HTTP/1.0\r\n\r\n", 18, 0), 18);
    close(leaves);
    while (closed < 2)
        uv_run(&loop, UV_RUN_ONCE);
    cr_expect_eq(listener_strangers(l).rejected, 1);
    cr_expect_eq(listener_strangers(l).crowded, 0);
    listener_close(l);
    finish();
    close(wrong);
}

Test(listener, out_of_descriptors_it_waits_and_goes_on, .init = setup)
{
    struct listener *l = NULL;
    struct rlimit old, tight;
    uint64_t start;
    unsigned turns = 0;
    char byte;
    int fd;

    cr_assert_eq(open_on(&l, NULL, 0, 0, NULL), 0);
    fd = call_from("127.0.0.2", listener_port(l));
    getrlimit(RLIMIT_NOFILE, &old);
    tight = old;
    tight.rlim_cur = (rlim_t)fd + 1;
    setrlimit(RLIMIT_NOFILE, &tight);
    start = uv_now(&loop);
    while (uv_now(&loop) < start + 250) {
        uv_run(&loop, UV_RUN_ONCE);
        turns++;
    }
    cr_expect(turns < 20, "%u turns in 250 ms: it spins", turns);
    setrlimit(RLIMIT_NOFILE, &old);
    /* Not UV_RUN_ONCE: once the prologue is written nothing wakes the loop before the stranger's time is over. */
    while (recv(fd, &byte, 1, MSG_DONTWAIT) != 1)
        uv_run(&loop, UV_RUN_NOWAIT);
    listener_close(l);
    finish();
    cr_expect_eq(closed, 0);
    close(fd);
}

static struct err ours, theirs;

static void on_late(struct conn *c, const struct err *why, void *arg)
{
    (void)c;
    *(struct err *)arg = *why;
}

static void on_theirs(struct conn *c, const struct err *why, void *arg)
{
    (void)c;
    (void)arg;
    theirs = *why;
}

static const struct conn_ops late_ops = {hello, on_msg, NULL, on_late};
static const struct conn_ops turning_ops = {on_up, on_msg, NULL, on_theirs};

/* Who has come in keeps its connection, who has said nothing loses it, who comes later is told why. */
Test(listener, turns_away_who_comes_late, .init = setup)
{
    struct listener *l = NULL, *none = NULL;
    struct listener_conf conf = {.ctx = ctx, .ops = &turning_ops, .arg = &l};
    struct conn *early;
    int silent;

    cr_assert_eq(listener_open(&loop, &conf, &l, NULL), 0);
    early = conn_new(&loop, call_from("127.0.0.1", listener_port(l)), false, ctx, &client_ops, &none);
    silent = call_from("127.0.0.2", listener_port(l));
    while (conn_stats(early).bytes_in < 600)
        uv_run(&loop, UV_RUN_ONCE);
    for (int i = 0; i < 20; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    listener_turn_away(l);
    listener_turn_away(l);
    for (int i = 0; i < 20; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    cr_expect(is_hung_up(silent));
    cr_expect_eq(closed, 0, "the early one is still there");
    theirs.code = 0;
    (void)conn_new(&loop, call_from("127.0.0.3", listener_port(l)), false, ctx, &late_ops, &ours);
    while (ours.code == 0 || theirs.code == 0)
        uv_run(&loop, UV_RUN_ONCE);
    cr_expect_eq(ours.code, -ESHUTDOWN, "%s", ours.text);
    cr_expect(strstr(ours.text, "says that the run has begun, or is over") != NULL, "%s", ours.text);
    cr_expect_eq(theirs.code, -ESHUTDOWN, "%s", theirs.text);
    cr_expect(strncmp(theirs.text, "127.0.0.3:", 10) == 0, "%s", theirs.text);
    cr_expect_eq(closed, 0, "the early one is still there");
    conn_finish(early);
    listener_close(l);
    finish();
    close(silent);
}

/* Strangers that come too late have the limits of all others. */
Test(listener, who_is_turned_away_and_stays_is_hung_up_on, .init = setup)
{
    struct listener *l = NULL;
    int fd[PREAUTH_CONNS_PER_ADDR + 1];

    cr_assert_eq(open_on(&l, NULL, 0, 0, NULL), 0);
    listener_turn_away(l);
    for (int i = 0; i <= PREAUTH_CONNS_PER_ADDR; i++)
        fd[i] = call_from("127.0.0.2", listener_port(l));
    while (listener_strangers(l).crowded == 0)
        uv_run(&loop, UV_RUN_ONCE);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_expect(is_hung_up(fd[0]));
    listener_close(l);
    finish();
    for (int i = 0; i <= PREAUTH_CONNS_PER_ADDR; i++)
        close(fd[i]);
}

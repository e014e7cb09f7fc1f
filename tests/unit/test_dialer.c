/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/dialer.h"
#include "common/io/listener.h"

static uv_loop_t loop;
static struct tls_ctx *server_ctx, *client_ctx;
static struct listener *server;
static struct dialer *dialer;
static unsigned won, failed, hellos, won_type;
static struct err failure;

/* ---- the server: answers every hello with a message of type 64 ---- */

static void server_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    (void)arg;
    cr_expect(type == 1 && span_is(body, "hello"));
    hellos++;
    conn_trust(c);
    listener_trusted(server, c);
    conn_send(c, 64, span_of("welcome"), false);
}

/* Not before it is told to. */
static struct conn *asked;

static void slow_server_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    (void)type;
    (void)body;
    (void)arg;
    asked = c;
}

static void answer(uv_timer_t *t)
{
    uv_close((uv_handle_t *)t, NULL);
    if (asked != NULL)
        server_msg(asked, 1, span_of("hello"), NULL);
}

static void any_close(struct conn *c, const struct err *why, void *arg)
{
    (void)c;
    (void)why;
    (void)arg;
}

static const struct conn_ops server_ops = {NULL, server_msg, NULL, any_close};
static const struct conn_ops slow_server_ops = {NULL, slow_server_msg, NULL, any_close};
static const struct conn_ops *serves = &server_ops;

static uint16_t serve(uint16_t port)
{
    struct listener_conf conf = {.port_low = port, .port_high = port, .ctx = server_ctx, .ops = serves};
    struct err err = {0};

    cr_assert_eq(listener_open(&loop, &conf, &server, &err), 0, "%s", err.text);
    return listener_port(server);
}

/* ---- the client ---- */

static const struct conn_ops owner_ops = {NULL, server_msg, NULL, any_close};

static void on_won(struct conn *c, unsigned type, struct span body, void *arg)
{
    (void)arg;
    cr_expect(span_is(body, "welcome"));
    won++;
    won_type = type;
    conn_set_ops(c, &owner_ops, NULL);
    conn_finish(c);
    dialer_close(dialer);
    listener_close(server);
}

static void on_failed(const struct err *why, void *arg)
{
    (void)arg;
    failed++;
    failure = *why;
    dialer_close(dialer);
    listener_close(server);
}

static bool others_too, is_round;

static int dial(const char *a, const char *b, uint64_t deadline_ms)
{
    char *addrs[] = {(char *)a, (char *)b, NULL};
    struct dialer_conf conf = {.addrs = addrs,
                               .ctx = client_ctx,
                               .hello_type = 1,
                               .hello = span_of("hello"),
                               .deadline_ms = deadline_ms,
                               .others_too = others_too,
                               .is_round = is_round,
                               .on_won = on_won,
                               .on_failed = on_failed};

    return dialer_open(&loop, &conf, &dialer, &failure);
}

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(uv_loop_init(&loop), 0);
    cr_assert_eq(tls_ctx_new_cert(&server_ctx, NULL, NULL), 0);
    cr_assert_eq(tls_ctx_new_cert(&client_ctx, tls_ctx_key(server_ctx), NULL), 0);
}

static void run(void)
{
    cr_assert_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    cr_assert_eq(uv_loop_close(&loop), 0);
    tls_ctx_unref(server_ctx);
    tls_ctx_unref(client_ctx);
}

static const char *at(char out[32], uint16_t port)
{
    snprintf(out, 32, "127.0.0.1:%u", port);
    return out;
}

/* A bound socket, listening or not. */
static int hold_port(int backlog, uint16_t *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    cr_assert_eq(bind(fd, (struct sockaddr *)&a, len), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    if (backlog >= 0)
        cr_assert_eq(listen(fd, backlog), 0);
    *port = ntohs(a.sin_port);
    return fd;
}

Test(dialer, first_address_wins, .init = setup)
{
    char a[32];

    cr_assert_eq(dial(at(a, serve(0)), NULL, 5000), 0);
    run();
    cr_expect(won == 1 && failed == 0 && hellos == 1, "%s", failure.text);
    cr_expect_eq(won_type, 64);
}

/* It accepts and never says a word, like an address behind a firewall that swallows what comes. */
Test(dialer, dead_address_first, .init = setup)
{
    char a[32], b[32];
    uint16_t port;
    int dead = hold_port(8, &port);
    uint64_t start = uv_hrtime();

    cr_assert_eq(dial(at(a, port), at(b, serve(0)), 5000), 0);
    run();
    cr_expect(won == 1 && failed == 0, "%s", failure.text);
    cr_expect(uv_hrtime() - start >= 250 * 1000000ull);
    close(dead);
}

Test(dialer, refusing_address_first_costs_no_wait, .init = setup)
{
    char a[32], b[32];
    uint16_t port;
    int shut = hold_port(-1, &port);

    cr_assert_eq(dial(at(a, port), at(b, serve(0)), 5000), 0);
    run();
    cr_expect(won == 1 && failed == 0, "%s", failure.text);
    close(shut);
}

static void serve_late(uv_timer_t *t)
{
    uint16_t port = *(uint16_t *)t->data;

    uv_close((uv_handle_t *)t, NULL);
    serve(port);
}

Test(dialer, refused_then_up, .init = setup)
{
    char a[32];
    uint16_t port = serve(0);
    uv_timer_t late;

    listener_close(server);
    uv_run(&loop, UV_RUN_NOWAIT);
    cr_assert_eq(dial(at(a, port), NULL, 10000), 0);
    uv_timer_init(&loop, &late);
    late.data = &port;
    uv_timer_start(&late, serve_late, 200, 0);
    run();
    cr_expect(won == 1 && failed == 0, "%s", failure.text);
}

Test(dialer, deadline_names_every_address_interface_and_reason, .init = setup)
{
    char a[32], b[32], want[64];
    uint16_t shut_port, dead_port;
    int shut = hold_port(-1, &shut_port), dead = hold_port(8, &dead_port);

    cr_assert_eq(dial(at(a, shut_port), at(b, dead_port), 500), 0);
    run();
    cr_expect(won == 0 && failed == 1);
    cr_expect_eq(failure.code, -ETIMEDOUT);
    snprintf(want, sizeof(want), "%s (lo): connection refused", a);
    cr_expect(strstr(failure.text, want) != NULL, "%s", failure.text);
    snprintf(want, sizeof(want), "%s (lo): no answer", b);
    cr_expect(strstr(failure.text, want) != NULL, "%s", failure.text);
    close(shut);
    close(dead);
}

Test(dialer, wrong_key_is_told, .init = setup)
{
    char a[32];
    struct tls_ctx *good = client_ctx;

    cr_assert_eq(tls_ctx_new_cert(&client_ctx, tls_ctx_key(good), NULL), 0);
    cr_assert_eq(dial(at(a, serve(0)), NULL, 400), 0);
    run();
    cr_expect_eq(failed, 1);
    cr_expect(strstr(failure.text, "wrong key") != NULL, "%s", failure.text);
    cr_expect_eq(hellos, 0);
    tls_ctx_unref(good);
}

static void answer_other_version(uv_poll_t *h, int status, int events)
{
    int fd = accept(*(int *)h->data, NULL, NULL);

    (void)status;
    (void)events;
    cr_assert(fd >= 0);
    cr_expect_eq(write(fd, "pmistart\0\7\0\10\0\0\0\0", 16), 16);
    shutdown(fd, SHUT_RDWR);
    close(fd);
    uv_close((uv_handle_t *)h, NULL);
}

Test(dialer, another_version_ends_it_at_once, .init = setup)
{
    char a[32];
    uint16_t port;
    int fd = hold_port(8, &port);
    uv_poll_t poll;
    uint64_t start;

    uv_poll_init(&loop, &poll, fd);
    poll.data = &fd;
    uv_poll_start(&poll, UV_READABLE, answer_other_version);
    start = uv_hrtime();
    cr_assert_eq(dial(at(a, port), NULL, 15000), 0);
    run();
    cr_expect(failed == 1 && won == 0);
    cr_expect_eq(failure.code, -EPROTONOSUPPORT, "%s", failure.text);
    cr_expect(strstr(failure.text, "versions 7 to 8") != NULL, "%s", failure.text);
    cr_expect(strstr(failure.text, a) != NULL, "%s", failure.text);
    cr_expect(uv_hrtime() - start < 10000 * 1000000ull);
    close(fd);
}

Test(dialer, where_others_may_be_meant_one_of_another_version_is_not_the_end, .init = setup)
{
    char a[32], b[32];
    uint16_t port;
    int fd = hold_port(8, &port);
    uv_poll_t poll;

    others_too = true;
    uv_poll_init(&loop, &poll, fd);
    poll.data = &fd;
    uv_poll_start(&poll, UV_READABLE, answer_other_version);
    cr_assert_eq(dial(at(a, port), at(b, serve(0)), 15000), 0);
    run();
    cr_expect(won == 1 && failed == 0, "%s", failure.text);
    close(fd);
}

Test(dialer, when_all_have_turned_us_away_it_ends_at_once_with_the_first_reason, .init = setup)
{
    char a[32];
    uint16_t port;
    int fd = hold_port(8, &port);
    uv_poll_t poll;
    uint64_t start = uv_hrtime();

    others_too = true;
    uv_poll_init(&loop, &poll, fd);
    poll.data = &fd;
    uv_poll_start(&poll, UV_READABLE, answer_other_version);
    cr_assert_eq(dial(at(a, port), NULL, 15000), 0);
    run();
    cr_expect(failed == 1 && failure.code == -EPROTONOSUPPORT, "%s", failure.text);
    cr_expect(uv_hrtime() - start < 10000 * 1000000ull);
    close(fd);
}

/* To hang up on a launcher that lets us in just then would be a loss for both. */
Test(dialer, a_round_waits_for_the_answer_to_a_hello, .init = setup)
{
    char a[32];
    uv_timer_t late;

    is_round = true;
    serves = &slow_server_ops;
    cr_assert_eq(dial(at(a, serve(0)), NULL, 1000), 0);
    uv_timer_init(&loop, &late);
    uv_timer_start(&late, answer, 1600, 0);
    run();
    cr_expect(won == 1 && failed == 0, "%s", failure.text);
}

Test(dialer, an_ipv6_address_is_told_in_brackets, .init = setup)
{
    uint16_t port;
    int shut = hold_port(-1, &port);
    char a[32], want[32];

    snprintf(a, sizeof(a), "::1:%u", port);
    snprintf(want, sizeof(want), "[::1]:%u", port);
    cr_assert_eq(dial(a, NULL, 200), 0);
    run();
    cr_expect(failed == 1 && strstr(failure.text, want) != NULL, "%s", failure.text);
    close(shut);
}

Test(dialer, closed_early_it_says_nothing, .init = setup)
{
    char a[32];

    cr_assert_eq(dial(at(a, serve(0)), NULL, 5000), 0);
    for (int i = 0; i < 3; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    dialer_close(dialer);
    listener_close(server);
    dialer_close(NULL);
    run();
    cr_expect(won == 0 && failed == 0);
}

Test(dialer, bad_addresses_are_quoted, .init = setup)
{
    static const char *const bad[] = {"10.0.0.1", "10.0.0.1:0", "host:1", ":1", "10.0.0.1:70000", "::1", ""};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_expect_eq(dial(bad[i], NULL, 10), -EINVAL, "%s", bad[i]);
        cr_expect(strstr(failure.text, bad[i]) != NULL, "%s", failure.text);
    }
    cr_expect_eq(dial(NULL, NULL, 10), -EINVAL);
    run();
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/listener.h"
#include "server/join_find.h"

static const uint8_t secrets[2][TLS_PSK_MIN] = {"one", "another"};
static uv_loop_t loop;
static struct tls_ctx *ctx[2];
static struct listener *server;
static struct join_find *find;
static unsigned won, failed;
static struct err failure;
static uint64_t began;

/* ---- a launcher, which lets in whoever says hello ---- */

static void server_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    (void)type;
    (void)body;
    (void)arg;
    conn_trust(c);
    listener_trusted(server, c);
    conn_send(c, 64, span_of("welcome"), false);
}

static void any_close(struct conn *c, const struct err *why, void *arg)
{
    (void)c;
    (void)why;
    (void)arg;
}

static const struct conn_ops server_ops = {NULL, server_msg, NULL, any_close};

static uint16_t serve(uint16_t port, unsigned secret)
{
    struct listener_conf conf = {.port_low = port, .port_high = port, .ctx = ctx[secret], .ops = &server_ops};
    struct err err = {0};

    cr_assert_eq(listener_open(&loop, &conf, &server, &err), 0, "%s", err.text);
    return listener_port(server);
}

/* ---- who looks for it ---- */

static void over(void)
{
    join_find_close(find);
    find = NULL;
    listener_close(server);
    server = NULL;
}

static void on_won(struct conn *c, unsigned type, struct span body, void *arg)
{
    (void)arg;
    cr_expect(type == 64 && span_is(body, "welcome"));
    won++;
    conn_set_ops(c, &server_ops, NULL);
    conn_finish(c);
    over();
}

static void on_failed(const struct err *why, void *arg)
{
    (void)arg;
    failed++;
    failure = *why;
    over();
}

static int seek(const char *name, uint16_t port, bool names_move, uint64_t limit_ms)
{
    char where[64];
    struct dialer_conf conf = {.ctx = ctx[0],
                               .hello_type = 1,
                               .hello = span_of("hello"),
                               .deadline_ms = limit_ms,
                               .others_too = names_move,
                               .on_won = on_won,
                               .on_failed = on_failed};

    snprintf(where, sizeof(where), "%s:%u", name, port);
    began = uv_hrtime();
    return join_find_open(&loop, where, &conf, &find, &failure);
}

static uint64_t took_ms(void)
{
    return (uv_hrtime() - began) / 1000000;
}

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(uv_loop_init(&loop), 0);
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(tls_ctx_new_psk(&ctx[i], secrets[i], TLS_PSK_MIN, NULL), 0);
}

static void run(void)
{
    cr_assert_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    cr_assert_eq(uv_loop_close(&loop), 0);
    tls_ctx_unref(ctx[0]);
    tls_ctx_unref(ctx[1]);
}

static void after(uint64_t ms, uv_timer_cb fn, void *arg)
{
    static uv_timer_t timer;

    uv_timer_init(&loop, &timer);
    timer.data = arg;
    uv_timer_start(&timer, fn, ms, 0);
}

Test(join_find, by_number, .init = setup)
{
    cr_assert_eq(seek("127.0.0.1", serve(0, 0), false, 5000), 0);
    run();
    cr_expect(won == 1 && failed == 0, "%s", failure.text);
}

Test(join_find, by_name, .init = setup)
{
    cr_assert_eq(seek("localhost", serve(0, 0), false, 5000), 0);
    run();
    cr_expect(won == 1 && failed == 0, "%s", failure.text);
}

Test(join_find, a_name_that_nobody_knows_is_told_when_the_time_is_over, .init = setup)
{
    struct buf state = {0};

    cr_assert_eq(seek("a..b", 7, false, 1000), 0);
    join_find_state(find, &state);
    cr_expect_str_eq(buf_str(&state), "a..b:7: the name is being looked up");
    buf_done(&state);
    run();
    cr_expect(won == 0 && failed == 1);
    cr_expect_eq(failure.code, -ETIMEDOUT);
    cr_expect_str_eq(failure.text, "no connection within 1 s: a..b:7: the name is not known");
}

Test(join_find, what_a_name_leads_to_is_told_with_it, .init = setup)
{
    uint16_t port = serve(0, 0);
    char want[64];

    listener_close(server);
    server = NULL;
    cr_assert_eq(seek("localhost", port, false, 1000), 0);
    run();
    snprintf(want, sizeof(want), "no connection within 1 s: localhost:%u: ", port);
    cr_expect(strncmp(failure.text, want, strlen(want)) == 0, "%s", failure.text);
    snprintf(want, sizeof(want), "127.0.0.1:%u (lo): connection refused", port);
    cr_expect(strstr(failure.text, want) != NULL, "%s", failure.text);
}

Test(join_find, what_is_no_address_and_port_is_refused, .init = setup)
{
    static const char *const bad[] = {"", "host", "host:0", ":1", "[fd00::1]", "a b:1"};
    struct dialer_conf conf = {.ctx = ctx[0], .hello = span_of("hello"), .deadline_ms = 10, .on_failed = on_failed};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        cr_expect_eq(join_find_open(&loop, bad[i], &conf, &find, &failure), -EINVAL, "%s", bad[i]);
    run();
}

Test(join_find, closed_early_it_says_nothing, .init = setup)
{
    cr_assert_eq(seek("localhost", serve(0, 0), true, 5000), 0);
    uv_run(&loop, UV_RUN_NOWAIT); /* the look-up is under way */
    over();
    join_find_close(NULL);
    run();
    cr_expect(won == 0 && failed == 0);
}

/* ---- turned away ---- */

Test(join_find, another_secret_ends_it_at_once, .init = setup)
{
    cr_assert_eq(seek("127.0.0.1", serve(0, 1), false, 15000), 0);
    run();
    cr_expect(won == 0 && failed == 1);
    cr_expect_eq(failure.code, -EKEYREJECTED);
    cr_expect(strstr(failure.text, "the launcher there has another secret than ours (127.0.0.1:") == failure.text, "%s",
              failure.text);
    cr_expect_lt(took_ms(), 5000);
}

Test(join_find, a_run_that_has_begun_ends_it_at_once, .init = setup)
{
    cr_assert_eq(seek("127.0.0.1", serve(0, 0), false, 15000), 0);
    listener_turn_away(server);
    run();
    cr_expect_eq(failure.code, -ESHUTDOWN, "%s", failure.text);
    cr_expect_lt(took_ms(), 5000);
}

Test(join_find, where_names_move_it_is_turned_away_for_a_while_before_it_believes_it, .init = setup)
{
    join_find_set_patience(400);
    cr_assert_eq(seek("127.0.0.1", serve(0, 0), true, 15000), 0);
    listener_turn_away(server);
    run();
    cr_expect(won == 0 && failed == 1);
    cr_expect_eq(failure.code, -ESHUTDOWN, "%s", failure.text);
    cr_expect(took_ms() >= 400 && took_ms() < 10000);
}

Test(join_find, that_it_was_turned_away_is_told_when_the_time_is_over, .init = setup)
{
    cr_assert_eq(seek("127.0.0.1", serve(0, 1), true, 2000), 0);
    run();
    cr_expect_eq(failure.code, -EKEYREJECTED, "%s", failure.text);
    cr_expect(took_ms() >= 1900);
}

static void another_launcher(uv_timer_t *t)
{
    uint16_t port = *(uint16_t *)t->data;

    uv_close((uv_handle_t *)t, NULL);
    listener_close(server);
    serve(port, 0);
}

Test(join_find, the_launcher_of_the_next_run_is_found_behind_that_of_the_one_before, .init = setup)
{
    uint16_t port = serve(0, 1);

    join_find_set_patience(5000);
    cr_assert_eq(seek("127.0.0.1", port, true, 15000), 0);
    after(300, another_launcher, &port);
    run();
    cr_expect(won == 1 && failed == 0, "%s", failure.text);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* test_conn_turn.c - what is sent while another connection is served goes out in time, though nothing else happens */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/io/conn.h"
#include "common/limits.h"

static char zeroes[LINK_CONTROL_HIGH];

static uv_loop_t loop;
static struct tls_ctx *server_ctx, *client_ctx;
static struct conn *end[2]; /* of this process; the other ends are another's, or they would wake the loop */
static bool is_server;
static unsigned up, drains, came;

static void on_up(struct conn *c, void *arg)
{
    (void)arg;
    conn_trust(c);
    if (++up == 2 && !is_server) /* so much at once that it is busy, and no more than its socket takes */
        cr_assert_eq(conn_send(end[0], 1, (struct span){zeroes, sizeof(zeroes)}, false), 0);
}

static void on_drain(struct conn *c, void *arg)
{
    (void)arg;
    drains++;
    cr_assert_eq(c, end[0]);
    cr_assert_eq(conn_send(end[1], 2, (struct span){"x", 1}, false), 0);
}

static void on_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    (void)body;
    (void)arg;
    if (type != 2)
        return;
    cr_assert_eq(c, end[1]);
    came++;
    for (unsigned i = 0; i < 2; i++)
        conn_finish(end[i]);
}

static void on_close(struct conn *c, const struct err *why, void *arg)
{
    (void)c;
    (void)arg;
    cr_expect_neq(why->code, -ETIMEDOUT, "%s", why->text);
}

static const struct conn_ops ops = {on_up, on_msg, on_drain, on_close};

static void serve(const int fd[2])
{
    cr_assert_eq(uv_loop_init(&loop), 0);
    for (unsigned i = 0; i < 2; i++) {
        end[i] = conn_new(&loop, fd[i], is_server, is_server ? server_ctx : client_ctx, &ops, NULL);
        cr_assert_not_null(end[i]);
    }
    cr_expect_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    cr_expect_eq(uv_loop_close(&loop), 0);
}

static void once(void)
{
    const struct conn_times times = {
        .preauth_ms = 5000, .ping_idle_ms = 60000, .link_lost_ms = 5000, .linger_ms = 1000};
    int one[2], two[2], room = 4 * (int)sizeof(zeroes), status;
    pid_t pid;

    conn_set_times(&times); /* nothing wakes the loop meanwhile */
    cr_assert_eq(tls_ctx_new_cert(&server_ctx, NULL, NULL), 0);
    cr_assert_eq(tls_ctx_new_cert(&client_ctx, tls_ctx_key(server_ctx), NULL), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, one), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, two), 0);
    (void)setsockopt(one[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
    pid = fork();
    is_server = pid == 0;
    close(one[!is_server]);
    close(two[!is_server]);
    serve((const int[]){one[is_server], two[is_server]});
    if (is_server)
        _exit(came != 1);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0, "it did not come");
    cr_expect_eq(drains, 1);
    tls_ctx_unref(server_ctx);
    tls_ctx_unref(client_ctx);
}

/* Whether it is in the flush that room is made depends on who is faster. */
Test(conn_turn, what_the_flush_of_one_connection_sends_on_another)
{
    for (unsigned i = 0; i < 10; i++) {
        up = drains = came = 0;
        once();
    }
}

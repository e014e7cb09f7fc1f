/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/frame.h"
#include "common/io/conn.h"
#include "common/limits.h"
#include "common/msg.h"

#define MSGS_MAX 16

/* One end, and what it was told. */
struct end {
    struct conn *c;
    bool trust_on_up, up;
    unsigned count, drains, closes;
    unsigned refill; /* control messages to send as soon as there is room */
    unsigned wanted; /* messages, after which it ends */
    struct {
        unsigned type;
        size_t len;
    } msg[MSGS_MAX];
    struct err why;
    void (*then)(struct end *e); /* called after each message */
    struct end *other;
};

#define MSG_OF_ZEROES 50 /* its bytes are not looked at */
static char zeroes[90000];

static uv_loop_t loop;
static struct tls_ctx *server_ctx, *client_ctx;

static void on_up(struct conn *c, void *arg)
{
    struct end *e = arg;

    e->up = true;
    if (e->trust_on_up)
        conn_trust(c);
}

static void on_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct end *e = arg;

    (void)c;
    for (size_t i = 0; type != MSG_OF_ZEROES && i < body.n; i += 997)
        cr_assert_eq((unsigned char)body.p[i], (unsigned char)(i / 256 + type));
    if (e->count < MSGS_MAX) {
        e->msg[e->count].type = type;
        e->msg[e->count].len = body.n;
    }
    e->count++;
    if (e->then != NULL)
        e->then(e);
}

static void on_drain(struct conn *c, void *arg)
{
    struct end *e = arg;

    e->drains++;
    while (e->refill > 0 && !conn_is_busy(c)) {
        e->refill--;
        cr_assert_eq(conn_send(c, MSG_OF_ZEROES, (struct span){zeroes, sizeof(zeroes)}, false), 0);
    }
}

static void on_close(struct conn *c, const struct err *why, void *arg)
{
    struct end *e = arg;

    cr_assert_eq(e->c, c);
    e->why = *why;
    e->closes++;
    e->c = NULL;
    if (e->other != NULL && e->other->c != NULL)
        conn_finish(e->other->c);
}

static const struct conn_ops ops = {on_up, on_msg, on_drain, on_close};

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(uv_loop_init(&loop), 0);
    cr_assert_eq(tls_ctx_new_cert(&server_ctx, NULL, NULL), 0);
    cr_assert_eq(tls_ctx_new_cert(&client_ctx, tls_ctx_key(server_ctx), NULL), 0);
}

static void teardown(void)
{
    tls_ctx_unref(server_ctx);
    tls_ctx_unref(client_ctx);
    conn_set_times(NULL);
}

static void sockets(int fd[2])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(bind(l, (struct sockaddr *)&a, len) == 0 && listen(l, 1) == 0);
    cr_assert_eq(getsockname(l, (struct sockaddr *)&a, &len), 0);
    fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(connect(fd[0], (struct sockaddr *)&a, len), 0);
    fd[1] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
    cr_assert(fd[1] >= 0);
    close(l);
}

static void join(struct end *client, struct end *server)
{
    int fd[2];

    sockets(fd);
    client->c = conn_new(&loop, fd[0], false, client_ctx, &ops, client);
    server->c = conn_new(&loop, fd[1], true, server_ctx, &ops, server);
    cr_assert(client->c != NULL && server->c != NULL);
    client->other = server;
    server->other = client;
}

/* A conn, and a bare socket as its peer. */
static int stranger(struct end *server)
{
    int fd[2];

    sockets(fd);
    server->c = conn_new(&loop, fd[1], true, server_ctx, &ops, server);
    cr_assert_not_null(server->c);
    return fd[0];
}

/* To the end; nothing may be left in the loop. (In .fini a failed assertion would not count.) */
static void run(void)
{
    cr_assert_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    cr_assert_eq(uv_loop_close(&loop), 0);
}

static void send_msg(struct end *e, unsigned type, size_t len, bool data)
{
    char *p = malloc(len + 1);

    for (size_t i = 0; i < len; i++)
        p[i] = (char)(i / 256 + type);
    cr_assert_eq(conn_send(e->c, type, (struct span){p, len}, data), 0);
    free(p);
}

static void finish_after_4(struct end *e)
{
    if (e->count == 4)
        conn_finish(e->c);
}

Test(conn, messages_of_all_sizes_arrive_whole, .init = setup, .fini = teardown)
{
    static const size_t sizes[] = {0, 1, 65536, 5u << 20};
    struct end c = {.trust_on_up = true}, s = {.trust_on_up = true, .then = finish_after_4};

    join(&c, &s);
    for (unsigned i = 0; i < 4; i++)
        send_msg(&c, i + 1, sizes[i], i % 2);
    send_msg(&s, 9, 70000, true);
    run();
    cr_assert_eq(s.count, 4);
    for (unsigned i = 0, seen = 0; i < 4; i++, seen = 0) {
        for (unsigned k = 0; k < 4; k++)
            seen += s.msg[k].type == i + 1 && s.msg[k].len == sizes[i];
        cr_expect_eq(seen, 1, "message %u", i + 1);
    }
    cr_expect(c.count == 1 && c.msg[0].len == 70000);
    cr_expect(c.closes == 1 && s.closes == 1);
    cr_expect_eq(s.why.code, 0, "closed by us");
    cr_expect_eq(c.why.code, -ECONNRESET);
    cr_expect(strstr(c.why.text, "closed by the peer") != NULL, "%s", c.why.text);
}

static void overtake(struct end *e)
{
    if (e->count == 1)
        send_msg(e->other, 7, 10, false);
    if (e->count == 3)
        conn_finish(e->c);
}

Test(conn, control_overtakes_data, .init = setup, .fini = teardown)
{
    struct end c = {.trust_on_up = true}, s = {.trust_on_up = true, .then = overtake};

    join(&c, &s);
    send_msg(&c, 1, 10, true);
    send_msg(&c, 2, 30u << 20, true);
    run();
    cr_assert_eq(s.count, 3);
    cr_expect_eq(s.msg[1].type, 7, "the control message came in the middle of the data message");
    cr_expect_eq(s.msg[2].len, 30u << 20);
}

static void finish_after(struct end *e)
{
    if (e->count == e->wanted)
        conn_finish(e->c);
}

Test(conn, full_and_drained, .init = setup, .fini = teardown)
{
    struct end c = {.trust_on_up = true}, s = {.trust_on_up = true, .then = finish_after, .wanted = 3};

    join(&c, &s);
    send_msg(&c, 1, LINK_DATA_HIGH / 2, true);
    cr_expect_not(conn_is_full(c.c));
    send_msg(&c, 2, LINK_DATA_HIGH / 2, true);
    cr_expect(conn_is_full(c.c));
    send_msg(&c, 3, 1, true);
    run();
    cr_expect_eq(c.drains, 1);
    cr_expect_eq(s.count, 3);
}

/* Nothing but the room itself has the rest sent, whether the socket was ever full or not. */
Test(conn, busy_until_there_is_room_for_more, .init = setup, .fini = teardown)
{
    struct end c = {.trust_on_up = true, .refill = 20}, s = {.trust_on_up = true, .then = finish_after, .wanted = 40};
    unsigned sent = 0;

    join(&c, &s);
    for (; !conn_is_busy(c.c); sent++)
        cr_assert_eq(conn_send(c.c, MSG_OF_ZEROES, (struct span){zeroes, sizeof(zeroes)}, false), 0);
    cr_expect_geq(conn_queued(c.c), LINK_CONTROL_HIGH);
    c.refill = 40 - sent;
    run();
    cr_expect_eq(s.count, 40);
    cr_expect_eq(c.refill, 0);
    cr_expect_geq(c.drains, 1);
}

Test(conn, finish_sends_what_is_queued, .init = setup, .fini = teardown)
{
    struct end c = {.trust_on_up = true}, s = {.trust_on_up = true};

    join(&c, &s);
    while (!c.up)
        uv_run(&loop, UV_RUN_ONCE);
    send_msg(&c, 1, 3u << 20, true);
    send_msg(&c, 2, 5, false);
    conn_finish(c.c);
    conn_finish(c.c);
    cr_expect_eq(conn_send(c.c, 3, SPAN_NONE, false), -EPIPE);
    run();
    cr_expect_eq(s.count, 2);
    cr_expect_eq(c.why.code, 0);
}

static void close_me(struct end *e)
{
    conn_close(e->c);
    conn_close(e->c);
    cr_expect_eq(e->closes, 0, "never from inside conn_close()");
}

Test(conn, close_inside_a_callback, .init = setup, .fini = teardown)
{
    struct end c = {.trust_on_up = true}, s = {.trust_on_up = true, .then = close_me};

    join(&c, &s);
    c.other = s.other = NULL;
    send_msg(&c, 1, 10, true);
    send_msg(&c, 2, 10, true);
    run();
    cr_expect_eq(s.count, 1);
    cr_expect(s.closes == 1 && c.closes == 1);
    cr_expect_eq(s.why.code, 0);
    cr_expect(c.why.code == -ECONNRESET, "%s", c.why.text);
}

Test(conn, stranger_may_send_4_kib_once_up, .init = setup, .fini = teardown)
{
    struct end c = {.trust_on_up = true}, s = {0};

    join(&c, &s);
    send_msg(&c, 1, 1000, false);
    send_msg(&c, 2, 2000, false);
    send_msg(&c, 3, 2000, false);
    run();
    cr_expect_eq(s.count, 2);
    cr_expect_eq(s.why.code, -E2BIG, "%s", s.why.text);
}

Test(conn, stranger_with_a_long_frame_is_refused_by_its_header, .init = setup, .fini = teardown)
{
    struct end c = {.trust_on_up = true}, s = {0};

    join(&c, &s);
    send_msg(&c, 1, 60000, false);
    run();
    cr_expect_eq(s.count, 0);
    cr_expect_eq(s.why.code, -EPROTO, "%s", s.why.text);
}

Test(conn, mute_stranger_is_dropped, .init = setup, .fini = teardown)
{
    static const struct conn_times short_times = {30, 1000, 1000, 1000};
    struct end s = {0};
    int fd;

    conn_set_times(&short_times);
    fd = stranger(&s);
    run();
    cr_expect_eq(s.why.code, -ETIMEDOUT, "%s", s.why.text);
    close(fd);
}

Test(conn, who_asks_waits_for_the_answer_longer_than_a_stranger_may_take, .init = setup, .fini = teardown)
{
    static const struct conn_times short_times = {500, 100000, 2000, 1000};
    struct end c = {0}, s = {.trust_on_up = true};

    conn_set_times(&short_times);
    join(&c, &s);
    run();
    cr_expect_eq(c.why.code, -ETIMEDOUT, "%s", c.why.text);
    cr_expect_str_eq(c.why.text, "nothing valid heard within 2 s");
}

static void say(struct end *s, const void *bytes, size_t len)
{
    int fd = stranger(s);

    cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
    shutdown(fd, SHUT_WR);
    run();
    close(fd);
}

Test(conn, another_version_is_named_with_ranges_and_peer, .init = setup, .fini = teardown)
{
    struct end s = {0};

    say(&s, "pmistart\0\7\1\2\0\0\0\0 and more", 25);
    cr_expect_eq(s.why.code, -EPROTONOSUPPORT);
    cr_expect(strstr(s.why.text, "versions 7 to 258, this side 1 to 1") != NULL, "%s", s.why.text);
    cr_expect(strstr(s.why.text, "127.0.0.1:") != NULL, "%s", s.why.text);
}

Test(conn, other_version_gets_ours_to_read, .init = setup, .fini = teardown)
{
    struct end s = {0};
    int fd = stranger(&s);
    char got[100];

    cr_assert_eq(write(fd, "pmistart\0\7\0\7\0\0\0\0", 16), 16);
    shutdown(fd, SHUT_WR);
    run();
    cr_expect_eq(read(fd, got, sizeof(got)), 16);
    cr_expect_eq(memcmp(got, "pmistart\0\1\0\1\0\0\0\0", 16), 0);
    cr_expect_eq(read(fd, got, sizeof(got)), 0);
    close(fd);
}

Test(conn, rubbish_is_quoted, .init = setup, .fini = teardown)
{
    struct end s = {0};

    say(&s, "SSH-2.0-OpenSSH_9.2p1\r\n", 23);
    cr_expect_eq(s.why.code, -EPROTO);
    cr_expect(strstr(s.why.text, "not a pmi-start peer") != NULL, "%s", s.why.text);
    cr_expect(strstr(s.why.text, "SSH-2.0-OpenSSH_") != NULL, "%s", s.why.text);
}

Test(conn, plain_bytes_after_the_prologue, .init = setup, .fini = teardown)
{
    struct end s = {0};

    say(&s, "pmistart\0\1\0\1\0\0\0\0GET / HTTP/1.1\r\n\r\n", 34);
    cr_expect_eq(s.why.code, -EPROTO, "%s", s.why.text);
}

Test(conn, hang_up_before_anything, .init = setup, .fini = teardown)
{
    struct end s = {0};

    say(&s, "", 0);
    cr_expect_eq(s.why.code, -ECONNRESET, "%s", s.why.text);
}

Test(conn, wrong_key_is_told_on_both_sides, .init = setup, .fini = teardown)
{
    struct end c = {0}, s = {0};
    struct tls_ctx *good = client_ctx;

    cr_assert_eq(tls_ctx_new_cert(&client_ctx, tls_ctx_key(good), NULL), 0);
    join(&c, &s);
    c.other = s.other = NULL;
    run();
    cr_expect(strstr(c.why.text, "wrong key") != NULL, "%s", c.why.text);
    cr_expect(strstr(s.why.text, "wrong key") != NULL, "%s", s.why.text);
    tls_ctx_unref(good);
}

Test(conn, pings_keep_an_idle_link_and_are_not_delivered, .init = setup, .fini = teardown)
{
    static const struct conn_times short_times = {5000, 10, 5000, 1000};
    struct end c = {.trust_on_up = true}, s = {.trust_on_up = true};
    uint64_t base;

    conn_set_times(&short_times);
    join(&c, &s);
    while (!c.up || !s.up)
        uv_run(&loop, UV_RUN_ONCE);
    base = conn_stats(s.c).bytes_in;
    while (s.c != NULL && conn_stats(s.c).bytes_in < base + 1000)
        uv_run(&loop, UV_RUN_ONCE);
    cr_assert(c.closes == 0 && s.closes == 0, "%s", c.why.text);
    cr_expect(c.count == 0 && s.count == 0);
    conn_finish(c.c);
    run();
}

/* A peer that is stopped: its loop does not run, its kernel still takes bytes. */
Test(conn, mute_peer_is_lost, .init = setup, .fini = teardown)
{
    static const struct conn_times short_times = {5000, 10, 60, 30};
    struct end c = {.trust_on_up = true}, s = {.trust_on_up = true};
    uv_loop_t peer_loop;
    int fd[2];

    conn_set_times(&short_times);
    cr_assert_eq(uv_loop_init(&peer_loop), 0);
    sockets(fd);
    c.c = conn_new(&loop, fd[0], false, client_ctx, &ops, &c);
    s.c = conn_new(&peer_loop, fd[1], true, server_ctx, &ops, &s);
    while (!c.up || !s.up) {
        uv_run(&loop, UV_RUN_NOWAIT);
        uv_run(&peer_loop, UV_RUN_NOWAIT);
    }
    run();
    cr_expect_eq(c.why.code, -ETIMEDOUT, "%s", c.why.text);
    cr_expect_eq(uv_run(&peer_loop, UV_RUN_DEFAULT), 0);
    cr_expect_eq(s.closes, 1);
    cr_assert_eq(uv_loop_close(&peer_loop), 0);
}

static void trip(struct conn *c, unsigned type, struct span body, void *arg)
{
    (void)c;
    (void)type;
    (void)body;
    ((struct end *)arg)->count++;
}

/* The peer goes away without a word while a message is under way. */
Test(conn, cut_off_in_the_middle, .init = setup, .fini = teardown)
{
    static const struct conn_ops trip_ops = {on_up, trip, NULL, on_close};
    struct end c = {.trust_on_up = true}, s = {.trust_on_up = true};

    join(&c, &s);
    c.other = s.other = NULL;
    conn_set_ops(s.c, &trip_ops, &s);
    while (!c.up || !s.up)
        uv_run(&loop, UV_RUN_ONCE);
    send_msg(&c, 1, 20u << 20, true);
    while (conn_stats(s.c).bytes_in < 1u << 20)
        uv_run(&loop, UV_RUN_ONCE);
    conn_close(c.c);
    run();
    cr_expect_eq(s.count, 0);
    cr_expect_eq(s.why.code, -ECONNRESET);
    cr_expect(strstr(s.why.text, "in the middle of a message") != NULL, "%s", s.why.text);
}

Test(conn, refused_connection, .init = setup, .fini = teardown)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    struct end c = {0};
    int held = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    /* A port that is bound, so that nobody else has it, and does not listen. */
    cr_assert_eq(bind(held, (struct sockaddr *)&a, len), 0);
    cr_assert_eq(getsockname(held, (struct sockaddr *)&a, &len), 0);
    connect(fd, (struct sockaddr *)&a, len);
    c.c = conn_new(&loop, fd, false, client_ctx, &ops, &c);
    run();
    cr_expect_eq(c.why.code, -ECONNREFUSED);
    cr_expect_str_eq(c.why.text, "connection refused");
    close(held);
}

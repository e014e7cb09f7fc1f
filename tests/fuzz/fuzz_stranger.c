/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection from its first byte. The first byte of the input says how far it comes: 0: the rest is all that it says;
 * 1: the rest is said once TLS is up, by who is not trusted; 2: by who is. Whatever it is, the connection ends, once,
 * and a stranger has handed in no more than it may. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/conn.h"
#include "common/frame.h"
#include "common/limits.h"
#include "common/msg.h"

#define KEY_BYTES 32
#define INPUT_MAX 100000 /* what a socket takes without being read */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct end {
    struct conn *c;
    bool trusts;
    size_t heard;
    unsigned closed;
};

static void on_up(struct conn *c, void *arg)
{
    if (((struct end *)arg)->trusts)
        conn_trust(c);
}

static void on_msg(struct conn *c, unsigned type, struct span body, void *arg)
{
    struct end *e = arg;
    struct msg_in *m;

    (void)c;
    (void)type;
    assert(e->closed == 0);
    e->heard += FRAME_HEADER + body.n;
    assert(e->trusts || e->heard <= PREAUTH_BYTES_MAX);
    if (msg_in_new(&m, body, NULL) == 0)
        msg_in_free(m);
}

static void on_close(struct conn *c, const struct err *why, void *arg)
{
    (void)c;
    (void)why;
    ((struct end *)arg)->closed++;
}

static const struct conn_ops ops = {on_up, on_msg, NULL, on_close};

/* The other side, by hand: TLS, but for that anything. */
static void to_and_fro(uv_loop_t *loop, struct tls *t, int fd, struct buf *wire, struct buf *plain)
{
    char in[32768];
    ssize_t n;

    for (int turn = 0; turn < 8; turn++) {
        if (wire->len > 0)
            (void)!send(fd, wire->p, wire->len, MSG_NOSIGNAL); /* it may have hung up */
        wire->len = 0;
        uv_run(loop, UV_RUN_NOWAIT);
        n = recv(fd, in, sizeof(in), MSG_DONTWAIT);
        if (n > 0)
            (void)tls_feed(t, (struct span){in, (size_t)n}, plain, wire, NULL);
    }
}

static void say_in_tls(uv_loop_t *loop, struct tls_ctx *ctx, int fd, struct span what)
{
    static const char prologue[] = "pmistart\0\1\0\1\0\0\0";
    struct buf wire = {0}, plain = {0};
    struct tls *t = tls_new(ctx, false);
    char theirs[sizeof(prologue)];

    assert(t != NULL && send(fd, prologue, sizeof(prologue), MSG_NOSIGNAL) == sizeof(prologue));
    uv_run(loop, UV_RUN_NOWAIT);
    assert(recv(fd, theirs, sizeof(theirs), MSG_WAITALL) == sizeof(theirs));
    assert(tls_start(t, &wire, NULL) == 0);
    to_and_fro(loop, t, fd, &wire, &plain);
    assert(tls_is_up(t));
    assert(tls_send(t, what, &wire, NULL) == 0);
    to_and_fro(loop, t, fd, &wire, &plain);
    tls_free(t);
    buf_done(&wire);
    buf_done(&plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tls_ctx *ctx;
    static const uint8_t key[KEY_BYTES] = {1};
    static uv_loop_t loop;
    struct end e = {0};
    struct span what;
    int fd[2];

    if (size < 1 || size > INPUT_MAX)
        return 0;
    if (ctx == NULL)
        assert(tls_ctx_new_psk(&ctx, key, sizeof(key), NULL) == 0 && uv_loop_init(&loop) == 0);
    what = (struct span){(const char *)data + 1, size - 1};
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
    e.trusts = data[0] % 3 == 2;
    e.c = conn_new(&loop, fd[1], true, ctx, &ops, &e);
    assert(e.c != NULL);
    if (data[0] % 3 == 0)
        (void)!send(fd[0], what.p, what.n, MSG_NOSIGNAL);
    else
        say_in_tls(&loop, ctx, fd[0], what);
    uv_run(&loop, UV_RUN_NOWAIT);
    close(fd[0]);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert(e.closed == 1);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* listener.h - one port on every address asked for; strangers are kept within limits
 *
 * At most PREAUTH_CONNS_MAX connections that are not trusted yet, at most PREAUTH_CONNS_PER_ADDR an address (half of
 * all from this machine itself, where many played nodes are one address). Over that one of the address that has most
 * is dropped: of those that have come least far the oldest, so that who only connects cannot push out a provider of the
 * same host. While there are many, accepting slows down and the kernel's queue waits. Strangers are counted, not
 * logged. The owner does not hear of the end of those that the listener drops, unless it has given them other ops; so
 * after listener_close() it may be gone.
 */
#ifndef COMMON_IO_LISTENER_H
#define COMMON_IO_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/err.h"
#include "common/io/conn.h"

struct listener;

/* A connection was accepted: its conn, with the ops given at listener_open(). Its TLS has not begun. */
struct listener_conf {
    const char *interface;        /* NAME, ADDR or CIDR, or NULL: all */
    uint16_t port_low, port_high; /* 0, 0: any; otherwise tried in a random order, -EADDRINUSE when all are taken */
    bool loopback;       /* include 127.0.0.1 and ::1 (played nodes); without `interface` the any-address is bound */
    bool loopback_only;  /* nothing but 127.0.0.1, whatever `interface` says */
    struct tls_ctx *ctx; /* referenced */
    const struct conn_ops *ops;
    void *arg;
};

/* An interface that does not exist: -EINVAL and err lists the choices. */
int listener_open(uv_loop_t *loop, const struct listener_conf *conf, struct listener **out, struct err *err);
uint16_t listener_port(const struct listener *l);
/* Tell it that a connection it accepted is now trusted, and no longer counts as a stranger. */
void listener_trusted(struct listener *l, struct conn *c);
/* How many strangers were dropped so far: for being too many, and for what they said or did not say in time. Who
 * left by itself is not counted: so does each of a peer's attempts but the one that won. */
struct strangers {
    uint64_t crowded, rejected;
};
struct strangers listener_strangers(const struct listener *l);
/* From now on nobody is let in: who comes is told so, before TLS. Those whose TLS is not up yet are dropped. */
void listener_turn_away(struct listener *l);
/* Stop listening; strangers' connections are closed. Freed when the loop has run its close callbacks. */
void listener_close(struct listener *l);

#endif

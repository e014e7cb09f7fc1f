/* SPDX-License-Identifier: BSD-3-Clause */
/* brood.h - take as children those that were logged in to from this node (--rsh-tree)
 *
 * Listens; whoever shows a key that came back over one of our logins, and says hello, is welcomed to its place, and its
 * connection becomes an edge. Nobody else is: strangers have the limits of any listener of ours.
 */
#ifndef SERVER_BROOD_H
#define SERVER_BROOD_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/err.h"
#include "common/io/listener.h"
#include "common/io/tls.h"
#include "common/msg.h"
#include "server/links.h"

struct brood;

struct brood_ops {
    /* What the child at `place` is told beside its place. */
    void (*welcome)(uint32_t place, struct msg_out *m, void *arg);
    /* It is an edge now. */
    void (*on_child)(uint32_t place, bool attached, void *arg);
    /* A hello whose key nobody has vouched for; it is held for its key line to arrive. */
    void (*on_stranger)(void *arg);
    void *arg;
};

struct brood_conf {
    const char *interface;
    uint16_t port_low, port_high;
    bool loopback;       /* there as well: the launcher may be reached by it */
    struct tls_ctx *ctx; /* referenced; with a certificate */
    struct links *links; /* lent */
};

int brood_open(uv_loop_t *loop, const struct brood_conf *conf, const struct brood_ops *ops, struct brood **out,
               struct err *err);
uint16_t brood_port(const struct brood *b);
/* Whoever shows `key` is at `place`. 0 or -ENOMEM. */
int brood_expect(struct brood *b, uint32_t place, const char *key);
/* Its login has failed: who comes from it even so is a stranger. */
void brood_forget(struct brood *b, uint32_t place);
/* Stop listening, and wipe the key of `ctx`: how many strangers there were. Again: none. */
struct strangers brood_stop(struct brood *b);
void brood_close(struct brood *b); /* NULL is fine; memory goes with the loop's close callbacks */

#endif

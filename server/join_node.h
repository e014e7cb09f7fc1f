/* SPDX-License-Identifier: BSD-3-Clause */
/* join_node.h - a provider's side of wiring up: reach the root, get a place, reach the parent, take children */
#ifndef SERVER_JOIN_NODE_H
#define SERVER_JOIN_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/io/tls.h"
#include "conf/provider_conf.h"
#include "server/links.h"
#include "server/logins_msg.h"

struct join_node;

struct join_node_ops {
    /* The root has accepted the hello: the login may end. */
    void (*on_joined)(uint32_t node, uint32_t place, void *arg);
    /* The parent is among the links now. */
    void (*on_wired)(void *arg);
    /* The root's last word: what the run's exit status is. Only where we have joined. */
    void (*on_status)(struct span body, void *arg);
    /* It cannot join, or the root went away. */
    void (*on_failed)(const struct err *why, void *arg);
};

/* `conf`, `ctx` (for the root) and `links` are lent and outlive it; `attached` goes into the hello. */
struct join_node_conf {
    const struct provider_conf *conf;
    struct tls_ctx *ctx;
    struct links *links;
    bool attached;
};

int join_node_open(uv_loop_t *loop, const struct join_node_conf *conf, const struct join_node_ops *ops, void *arg,
                   struct join_node **out, struct err *err);
/* While the root has not answered: what came of each of its addresses so far; nothing later. */
void join_node_state(const struct join_node *j, struct buf *out);
/* Once it has joined: how logins are done from here, lent, or NULL where that is not asked for. */
const struct logins_how *join_node_how(const struct join_node *j);
/* Once it has joined: what --interface is on this host, lent, or NULL. Where it is not known here (an interface that
 * has another name, the launcher's own address) it is the address with which the launcher was reached. */
const char *join_node_interface(const struct join_node *j);
/* All are in their places: take no more children. How many strangers were dropped meanwhile. */
uint64_t join_node_all_in(struct join_node *j);
void join_node_close(struct join_node *j); /* memory goes with the loop's close callbacks */

#endif

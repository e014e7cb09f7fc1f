/* SPDX-License-Identifier: BSD-3-Clause */
/* join_root.h - the launcher's side of wiring up: from a hello to a place in the tree
 *
 * A provider that says hello is known by the key it shows, which came back over its login (or, with --secret-file, by
 * its number: whoever has the secret is believed). It gets the next free place. Where the parent of that place is the
 * root, its connection stays; else it is sent to the parent once that one listens, and its connection here ends when it
 * has got there. One that cannot reach its parent is taken by the root itself, with a warning.
 */
#ifndef SERVER_JOIN_ROOT_H
#define SERVER_JOIN_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/err.h"
#include "common/io/listener.h"
#include "common/io/tls.h"
#include "server/links.h"

struct join_root;

struct join_root_ops {
    void (*on_joined)(uint32_t node, bool attached, void *arg);
    /* Known, but it can never join: `reason` is one line without the host. */
    void (*on_refused)(uint32_t node, const char *reason, void *arg);
    /* A hello whose key nobody has vouched for; it is held for its key line to arrive. */
    void (*on_stranger)(void *arg);
    /* A provider that had joined went away before it was wired. */
    void (*on_lost)(uint32_t node, const struct err *why, void *arg);
    /* Every expected provider is in its place. */
    void (*on_wired)(void *arg);
};

struct join_root_conf {
    const char *interface;
    uint16_t port_low, port_high;
    bool loopback_only;
    struct tls_ctx *ctx;           /* referenced */
    bool by_secret;                /* --secret-file: who has it is the node, or the index, that it says it is */
    uint32_t nodes;                /* of the run, the root's own included */
    const char *noun;              /* what a node is called in messages; static */
    uint32_t providers;            /* expected */
    const uint32_t *node_of_index; /* [providers]; lent for the call */
    uint32_t self;                 /* the root's own node, or TREE_NONE */
    unsigned fanout;
    struct links *links; /* lent; takes the root's children */
};

int join_root_open(uv_loop_t *loop, const struct join_root_conf *conf, const struct join_root_ops *ops, void *arg,
                   struct join_root **out, struct err *err);
uint16_t join_root_port(const struct join_root *j);

/* Whoever shows `key` is `node`. */
int join_root_expect(struct join_root *j, uint32_t node, const char *key);
/* A message of a child of the root that belongs to the wire-up (MSG_LISTENING). */
void join_root_msg(struct join_root *j, uint32_t place, unsigned type, struct span body);

/* After on_wired: the tree, lent. `parent` and `node` have providers + 1 entries. */
const uint32_t *join_root_parents(const struct join_root *j);
const uint32_t *join_root_nodes(const struct join_root *j);

/* At any time: who has been given this place; -1: nobody. */
int64_t join_root_node_at(const struct join_root *j, uint32_t place);

/* Let nobody in any more (all are wired, or the start failed): stop listening, and wipe the keys with which one could
 * join, those of the context too. Where there was a shared secret we go on listening, to turn away whoever comes late,
 * as a restarted pod, which would else wait for us. How many strangers were there? Again: none. */
struct strangers join_root_stop(struct join_root *j);
/* A last word to those who have joined and are not among the links yet. */
void join_root_tell(struct join_root *j, unsigned type, struct span body);
void join_root_close(struct join_root *j); /* memory goes with the loop's close callbacks */

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* node.h - one node's part of a job, the same at the launcher and at a provider
 *
 * Gets messages from above and below, runs this node's tasks, serves their PMI connections and carries their streams.
 * What comes from above and concerns everybody is handed on to the children; what comes from below and is not for a
 * node is handed up. The root of the tree feeds it what a parent would send.
 */
#ifndef SERVER_NODE_H
#define SERVER_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/err.h"
#include "common/span.h"
#include "server/links.h"
#include "server/serve.h"
#include "server/spawner.h"

struct node;

struct node_ops {
    void (*send_up)(unsigned type, struct span body, bool data, void *arg);
    /* Hold back data for now? node_drain() says when it may go on. */
    bool (*up_full)(void *arg);
    /* The first MSG_JOB: the tree is complete, nobody else is let in. How many strangers this node has dropped. */
    uint64_t (*all_in)(void *arg);
    /* After MSG_END: this node's tasks and streams and all below it are done. */
    void (*on_finished)(void *arg);
};

struct node_conf {
    uint32_t place;
    struct links *links;            /* lent */
    struct spawner *spawner;        /* lent; ids below BOOT_ID_BASE are the node's */
    int stdin_fd;                   /* descriptor 0 as it was inherited, for a job with input_handed; -1: none */
    const struct serve_conf *serve; /* for a job whose ranks come from elsewhere; lent */
};

struct node *node_new(uv_loop_t *loop, const struct node_conf *conf, const struct node_ops *ops, void *arg);

void node_down(struct node *n, unsigned type, struct span body);
void node_up(struct node *n, uint32_t place, unsigned type, struct span body);
/* The child at `place` is lost; says so upwards. */
void node_child_lost(struct node *n, uint32_t place, const struct err *why);
/* There is room on the edge to the child at `place`, or LINKS_PARENT. */
void node_drain(struct node *n, uint32_t place);
/* A message from `from` (a child's place, or FAULT_PARENT) makes no sense: the run ends by it. */
void node_refuse(struct node *n, uint32_t from, unsigned type, const struct err *why);
/* Its keeper was killed: says so upwards. The owner ends the node. */
void node_keeper_lost(struct node *n, const char *why);

/* From the spawner, for ids below BOOT_ID_BASE. */
void node_task_started(struct node *n, uint32_t id, pid_t pid);
void node_task_failed(struct node *n, uint32_t id, enum spawn_stage stage, int err_no);
void node_task_exited(struct node *n, uint32_t id, int wstatus);

/* Barrier messages of WORLD that this node has sent down and received from below, for -vv and the tests. */
struct node_counters {
    uint64_t rounds;   /* WORLD rounds completed */
    uint64_t up, down; /* whole barrier messages received from children, releases sent to them */
};
struct node_counters node_counters(const struct node *n);

/* Closes every handle and descriptor; freed by the loop's close callbacks. */
void node_close(struct node *n);

#endif

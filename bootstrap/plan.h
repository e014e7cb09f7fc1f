/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.h - who starts where: from the configuration to nodes and ranks. Pure.
 *
 * Nodes are the hosts in list order (a host that is named twice is two nodes), less those that get no task. How many
 * tasks:
 *   -n and --ppn   -n in all, at most --ppn a node in turn; what is left begins again at the first node
 *   -n             where slots are given (1 for a host that has none): the same with each node's slots; else spread
 *                  evenly, the first nodes take the rest; the single node of `local` without --nodes takes them all
 *   --ppn          so many on every node, whatever its slots
 *   neither        one a slot, one slot a host
 * Several `:` parts: each part's -n, 1 where it has none, adds up to -n in all, and ranks go to the parts in order.
 * MAP_BLOCK fills a node before the next; MAP_CYCLIC gives one to each node that still has room.
 */
#ifndef BOOTSTRAP_PLAN_H
#define BOOTSTRAP_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "common/err.h"
#include "conf/conf.h"

struct plan_node {
    const char *login; /* as the user wrote it, lent by conf; for played nodes this machine's own name */
    const char *host;  /* the same without "user@", which is for the login alone */
    uint32_t ntasks;   /* at least 1 */
    uint32_t *ranks;   /* ascending, ntasks of them */
};

struct plan {
    enum boot_method method; /* decided, never BOOT_AUTO */
    uint32_t node_count;
    struct plan_node *node;
    int32_t self;      /* the node that the launcher runs itself, or -1: it runs no tasks */
    uint32_t size;     /* ranks */
    uint32_t *node_of; /* [size] */
    uint32_t *app_of;  /* [size], index of the `:` part */
    uint32_t *ranks;   /* what the nodes' `ranks` point into */
    char *names;       /* bytes of the hosts that conf does not hold */
};

/* `is_self` says whether an entry of the host list, as it was written, means this machine; `self_name` is this
 * machine's own host name (both handed in, so that the plan stays pure).
 *
 * BOOT_AUTO is slurm where the hosts are in an allocation of Slurm, else rsh where there are hosts, else local. `local`
 * plays --nodes nodes (1), of which the launcher is node 0, and takes no hosts. rsh needs hosts, of which --nodes takes
 * the first ones; self is the first that means this machine, but -1 where --rsh-command and --rsh-attach=yes are both
 * given. slurm is the same, with -1 within a step. manual is like rsh with hosts; where there are none it has --nodes
 * nodes, of which the launcher is node 0 and the others are called node1, node2, ... k8s has --nodes pods, BASE-0 (the
 * launcher) and on, each of which must get a task.
 *
 * 0, -ENOMEM, or -EINVAL with a text for what cannot be (no hosts for rsh, --nodes over the hosts, too many tasks). */
int plan_make(const struct conf *conf, bool (*is_self)(const char *name), const char *self_name, struct plan **out,
              struct err *err);
void plan_free(struct plan *p); /* NULL is fine */

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* tree.h - the tree as it came to be: each place's parent and node, and how many ranks lie below each
 *
 * Places count from 0, the root. The plan is topology.h's k-ary tree, where a provider that could not reach its parent
 * hangs below the root instead; with --rsh-tree it is whatever tree the logins became. Pure.
 */
#ifndef SERVER_TREE_H
#define SERVER_TREE_H

#include <stdint.h>
#include "common/err.h"

#define TREE_NONE UINT32_MAX

struct tree {
    uint32_t count;   /* places */
    uint32_t *parent; /* [count]; parent[0] is TREE_NONE */
    uint32_t *node;   /* [count]; TREE_NONE: a root that runs no tasks */
    uint32_t *ranks;  /* [count], ranks at this place and below */
};

/* Copies. `ranks_at[place]` are the ranks of the place alone. -EPROTO: not a tree; -ENOMEM. */
int tree_make(const uint32_t *parent, const uint32_t *node, const uint32_t *ranks_at, uint32_t count, struct tree **out,
              struct err *err);
void tree_free(struct tree *t);

/* The child of `from` on the way down to `to`, or TREE_NONE where `to` is not below `from`. */
uint32_t tree_next_hop(const struct tree *t, uint32_t from, uint32_t to);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* topology.h - the k-ary tree of nodes, as arithmetic
 *
 * Positions count from 0, the root (the launcher); position p > 0 hangs below (p - 1) / k. Positions are given out in
 * the order in which providers join, so that a node's parent is always there before it.
 */
#ifndef COMMON_TOPOLOGY_H
#define COMMON_TOPOLOGY_H

#include <stdint.h>

/* `k` >= 1, `pos` >= 1. */
static inline uint32_t topo_parent(uint32_t pos, uint32_t k)
{
    return (pos - 1) / k;
}

/* First child of `pos` among `count` positions; how many it has. */
static inline uint32_t topo_first_child(uint32_t pos, uint32_t k)
{
    return pos * k + 1;
}

static inline uint32_t topo_child_count(uint32_t pos, uint32_t k, uint32_t count)
{
    uint64_t first = (uint64_t)pos * k + 1;

    if (first >= count)
        return 0;
    return (uint32_t)(count - first < k ? count - first : k);
}

#endif

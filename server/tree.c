/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t *copy_u32(const uint32_t *v, uint32_t count)
{
    uint32_t *p = malloc(count * sizeof(*p));

    if (p != NULL)
        memcpy(p, v, count * sizeof(*p));
    return p;
}

/* Add each place's ranks to all above it, from the leaves up: a place is through when its children are. -EPROTO: some
 * never are, as they hang in a circle. */
static int add_up(struct tree *t)
{
    uint32_t *kids = calloc(t->count, sizeof(*kids)), *through = malloc(t->count * sizeof(*through)), n = 0;
    int rc = kids == NULL || through == NULL ? -ENOMEM : 0;

    for (uint32_t i = 1; rc == 0 && i < t->count; i++)
        kids[t->parent[i]]++;
    for (uint32_t i = 1; rc == 0 && i < t->count; i++)
        if (kids[i] == 0)
            through[n++] = i;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t up = t->parent[through[i]];

        t->ranks[up] += t->ranks[through[i]];
        if (--kids[up] == 0 && up > 0)
            through[n++] = up;
    }
    if (rc == 0 && n + 1 < t->count)
        rc = -EPROTO;
    free(kids);
    free(through);
    return rc;
}

int tree_make(const uint32_t *parent, const uint32_t *node, const uint32_t *ranks_at, uint32_t count, struct tree **out,
              struct err *err)
{
    struct tree *t;
    int rc;

    if (count == 0 || parent[0] != TREE_NONE)
        return err_set(err, -EPROTO, "a tree without a root");
    for (uint32_t i = 1; i < count; i++)
        if (parent[i] >= count)
            return err_set(err, -EPROTO, "place %u hangs below place %u", i, parent[i]);
    t = calloc(1, sizeof(*t));
    if (t == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    t->count = count;
    t->parent = copy_u32(parent, count);
    t->node = copy_u32(node, count);
    t->ranks = copy_u32(ranks_at, count);
    if (t->parent == NULL || t->node == NULL || t->ranks == NULL) {
        tree_free(t);
        return err_set(err, -ENOMEM, "out of memory for %u nodes", count);
    }
    rc = add_up(t);
    if (rc < 0) {
        tree_free(t);
        return rc == -EPROTO ? err_set(err, rc, "a tree with a circle") : err_set(err, rc, "out of memory");
    }
    *out = t;
    return 0;
}

void tree_free(struct tree *t)
{
    if (t == NULL)
        return;
    free(t->parent);
    free(t->node);
    free(t->ranks);
    free(t);
}

uint32_t tree_next_hop(const struct tree *t, uint32_t from, uint32_t to)
{
    while (to < t->count && to != from) {
        if (t->parent[to] == from)
            return to;
        to = t->parent[to];
    }
    return TREE_NONE;
}

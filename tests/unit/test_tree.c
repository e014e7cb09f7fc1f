/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "common/topology.h"
#include "server/tree.h"

Test(tree, ranks_below_add_up_and_every_place_is_reached)
{
    static const uint32_t widths[] = {1, 2, 3, 7, 32, 1000};

    for (size_t w = 0; w < 6; w++) {
        uint32_t parent[200], node[200], ranks[200], k = widths[w];
        struct tree *t;

        for (uint32_t p = 0; p < 200; p++) {
            parent[p] = p == 0 ? TREE_NONE : topo_parent(p, k);
            node[p] = p;
            ranks[p] = p % 3;
        }
        cr_assert_eq(tree_make(parent, node, ranks, 200, &t, NULL), 0);
        cr_expect_eq(t->ranks[0], 199u, "width %u: %u", k, t->ranks[0]);
        for (uint32_t to = 1; to < 200; to++) {
            uint32_t at = 0, hops = 0;

            while (at != to && hops++ < 200) {
                at = tree_next_hop(t, at, to);
            }
            cr_expect_eq(at, to);
        }
        cr_expect_eq(tree_next_hop(t, 5, 3), TREE_NONE);
        tree_free(t);
    }
}

Test(tree, what_is_no_tree_is_refused)
{
    const uint32_t loop[] = {TREE_NONE, 1}, rootless[] = {0, 0}, ranks[] = {1, 1}, node[] = {0, 1};
    struct tree *t = NULL;
    struct err err = {0};

    cr_expect_eq(tree_make(loop, node, ranks, 2, &t, &err), -EPROTO);
    cr_expect_eq(tree_make(rootless, node, ranks, 2, &t, &err), -EPROTO);
    cr_expect_eq(tree_make(loop, node, ranks, 0, &t, &err), -EPROTO);
    cr_expect_null(t);
}

Test(tree, a_parent_may_have_any_place_but_none_in_a_circle)
{
    /* 0 - 5 - 1 - 4, 0 - 3 - 2 */
    const uint32_t parent[] = {TREE_NONE, 5, 3, 0, 1, 0}, node[] = {0, 1, 2, 3, 4, 5}, ranks[] = {0, 1, 2, 3, 4, 5};
    const uint32_t circle[] = {TREE_NONE, 2, 1, 0, 1, 0}, beyond[] = {TREE_NONE, 6, 0, 0, 0, 0};
    struct tree *t = NULL;

    cr_expect_eq(tree_make(circle, node, ranks, 6, &t, NULL), -EPROTO);
    cr_expect_eq(tree_make(beyond, node, ranks, 6, &t, NULL), -EPROTO);
    cr_assert_eq(tree_make(parent, node, ranks, 6, &t, NULL), 0);
    cr_expect_eq(t->ranks[0], 15);
    cr_expect_eq(t->ranks[5], 10);
    cr_expect_eq(t->ranks[1], 5);
    cr_expect_eq(t->ranks[3], 5);
    cr_expect_eq(tree_next_hop(t, 0, 4), 5);
    cr_expect_eq(tree_next_hop(t, 5, 4), 1);
    cr_expect_eq(tree_next_hop(t, 3, 4), TREE_NONE);
    cr_expect_eq(tree_next_hop(t, 4, 4), TREE_NONE);
    tree_free(t);
}

Test(topology, children_are_counted_to_the_last)
{
    for (uint32_t k = 1; k < 40; k++) {
        for (uint32_t count = 1; count < 140; count++) {
            uint32_t sum = 0;

            for (uint32_t p = 0; p < count; p++)
                sum += topo_child_count(p, k, count);
            cr_expect_eq(sum, count - 1, "k %u count %u: %u", k, count, sum);
        }
    }
}

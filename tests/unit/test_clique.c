/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "client/clique.h"
#include "common/util.h"

static const struct {
    const char *mapping;
    int rank, size;
    const char *ranks;
} cases[] = {
    {"", 2, 4, "2"},
    {NULL, 0, 1, "0"},
    {"(vector,(0,2,2))", 1, 4, "0 1"},
    {"(vector,(0,2,2))", 2, 4, "2 3"},
    {"(vector,(0,2,1),(0,2,1))", 1, 4, "1 3"},
    {"(vector,(0,2,2),(2,2,4))", 11, 12, "8 9 10 11"},
    {"(vector,(0,1,2),(5,1,1),(0,1,1))", 3, 4, "0 1 3"},
    /* More places than ranks. */
    {"(vector,(0,1,64))", 3, 4, "0 1 2 3"},
    {"(vector,(0,4294967295,4294967295))", 1, 2, "0 1"},
    /* Hydra 4.0.2 for four ranks on one node, and for a cyclic layout of two. */
    {"(vector,(0,1,1))", 2, 4, "0 1 2 3"},
    {"(vector,(0,2,1))", 2, 5, "0 2 4"},
    /* It repeats from the first block at node 0. */
    {"(vector,(1,1,1),(0,1,1),(2,1,1))", 3, 5, "1 3"},
    {"(vector,(1,1,1),(0,1,1),(2,1,1))", 4, 5, "2 4"},
    {"(vector,(3,1,1),(4,1,1))", 2, 4, "0 2"},
};

Test(clique, ranks_of_one_node)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int *ranks = NULL, count = 0;
        char text[128] = "";

        cr_assert_eq(clique_read(span_of(cases[i].mapping), cases[i].rank, cases[i].size, &ranks, &count), 0, "%s",
                     cases[i].mapping);
        for (int k = 0; k < count; k++)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%d", k > 0 ? " " : "", ranks[k]);
        cr_expect_str_eq(text, cases[i].ranks, "%s: %s", cases[i].mapping, text);
        free(ranks);
    }
}

Test(clique, no_mapping)
{
    static const char *const bad[] = {
        "x",
        "(vector)",
        "(vector,",
        "(vector,)",
        "(vector,(0,1,1)",
        "(vector,(0,1,0))",
        "(vector,(0,0,1))",
        "(vector,(0,1,1)x",
        "(vector,(-1,1,1))",
        "(vector,(0,1))",
        "(vector,1,0)",
        "(vector,(4294967295,2,1))",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        int *ranks = NULL, count = -1;

        cr_expect_eq(clique_read(span_of(bad[i]), 0, 4, &ranks, &count), -EINVAL, "%s", bad[i]);
        cr_expect(ranks == NULL && count == -1);
    }
}

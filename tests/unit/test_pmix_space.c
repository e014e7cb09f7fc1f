/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_space.h"

#include <criterion/criterion.h>

Test(pmix_space, nodes_without_ranks_are_no_part_of_the_maps)
{
    uint32_t run_node[] = {2, 0, 2}, run_len[] = {2, 1, 1};
    char name[] = "ns", h0[] = "h0", h1[] = "h1", h2[] = "h2", *hosts[] = {h0, h1, h2, NULL};
    struct job_app apps[] = {{.ntasks = 1}, {.ntasks = 3}};
    const struct job j = {.size = 4,
                          .nodes = 3,
                          .runs = 3,
                          .run_node = run_node,
                          .run_len = run_len,
                          .app_count = 2,
                          .app = apps,
                          .nspace = name,
                          .hosts = hosts};
    struct pmix_space s;

    cr_assert_eq(pmix_space_make(&j, 2, "/t", &s), 0);
    cr_expect_str_eq(s.name, "ns");
    cr_expect_str_eq(s.host, "h2");
    cr_expect_str_eq(s.nodes, "h0,h2");
    cr_expect_str_eq(s.procs, "2;0,1,3");
    cr_assert_eq(s.local_size, 3);
    cr_expect(s.local[0] == 0 && s.local[1] == 1 && s.local[2] == 3);
    cr_expect(s.size == 4 && s.apps == 2 && s.node == 2);
    cr_expect_null(s.parent);
    static const struct pmix_rank want[] = {{0, 0, 1, 0}, {1, 0, 1, 1}, {1, 1, 0, 0}, {1, 2, 1, 2}};
    cr_expect_arr_eq(s.rank, want, sizeof(want));
    cr_expect_str_eq(s.tmp, "/t");
    pmix_space_done(&s);
    cr_assert_eq(pmix_space_make(&j, 1, NULL, &s), 0);
    cr_expect_eq(s.local_size, 0);
    pmix_space_done(&s);
}

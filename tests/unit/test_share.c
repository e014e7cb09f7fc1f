/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "bootstrap/growth.h"
#include "bootstrap/share.h"
#include "common/util.h"
#include "share_world.h"

#define SECOND 1000000u

static void expect_ranges(const struct ranges *r, const struct share_range *want, uint32_t count)
{
    uint32_t total = 0;

    cr_assert_eq(r->count, count, "%u ranges", r->count);
    for (uint32_t i = 0; i < count; i++) {
        cr_expect_eq(r->v[i].first, want[i].first);
        cr_expect_eq(r->v[i].count, want[i].count);
        total += want[i].count;
    }
    cr_expect_eq(r->total, total);
}

Test(ranges, neighbours_become_one_and_what_is_cut_out_leaves_two)
{
    const struct share_range halves[] = {{5, 2}, {10, 2}}, whole[] = {{5, 7}}, cut[] = {{5, 2}, {8, 4}};
    struct ranges r = {0};

    cr_assert_eq(ranges_add(&r, halves[1]), 0);
    cr_assert_eq(ranges_add(&r, halves[0]), 0);
    expect_ranges(&r, halves, 2);
    cr_assert_eq(ranges_add(&r, (struct share_range){7, 3}), 0);
    expect_ranges(&r, whole, 1);
    cr_expect_eq(ranges_add(&r, (struct share_range){4, 2}), -EEXIST);
    cr_expect_eq(ranges_add(&r, (struct share_range){11, 9}), -EEXIST);
    cr_expect_eq(ranges_remove(&r, (struct share_range){4, 2}), -ENOENT);
    cr_expect_eq(ranges_remove(&r, (struct share_range){11, 2}), -ENOENT);
    cr_assert_eq(ranges_remove(&r, (struct share_range){7, 1}), 0);
    expect_ranges(&r, cut, 2);
    cr_expect(ranges_has(&r, 6) && !ranges_has(&r, 7) && ranges_has(&r, 11) && !ranges_has(&r, 12));
    cr_expect(ranges_has_all(&r, (struct share_range){9, 3}) && ranges_has_all(&r, (struct share_range){5, 2}));
    cr_expect(!ranges_has_all(&r, (struct share_range){5, 4}) && !ranges_has_all(&r, (struct share_range){11, 2}));
    cr_expect_not(ranges_has_all(&r, (struct share_range){20, 1}));
    ranges_done(&r);
}

Test(ranges, they_are_taken_from_both_ends)
{
    struct ranges r = {0};
    struct share_range last;

    cr_assert_eq(ranges_add(&r, (struct share_range){1, 3}), 0);
    cr_assert_eq(ranges_add(&r, (struct share_range){7, 4}), 0);
    cr_expect_eq(ranges_take_first(&r), 1);
    last = ranges_take_last(&r, 3);
    cr_expect(last.first == 8 && last.count == 3);
    last = ranges_take_last(&r, 3); /* no more than hang together */
    cr_expect(last.first == 7 && last.count == 1);
    last = ranges_take_last(&r, 3);
    cr_expect(last.first == 2 && last.count == 2);
    cr_expect_eq(r.total, 0);
    ranges_done(&r);
}

Test(growth, one_login_after_the_other_and_those_that_are_up_go_on)
{
    /* A login lasts for 2 gaps: at 2 gaps 1; at 3 gaps 2; at 4 gaps 3 and the first one's 1. */
    static const uint32_t want[] = {0, 0, 1, 2, 4, 7, 12};
    struct growth g = {0};

    cr_assert_eq(growth_make(&g, 2 * GROWTH_GAP, 100, 12), 0);
    for (uint32_t i = 0; i < ARRAY_SIZE(want); i++)
        cr_expect_eq(g.in[i * GROWTH_GAP], want[i], "after %u gaps: %u", i, g.in[i * GROWTH_GAP]);
    growth_done(&g);
}

Test(growth, a_width_of_one_is_a_chain)
{
    struct growth g = {0};

    cr_assert_eq(growth_make(&g, 6, 1, 4), 0);
    cr_expect_eq(g.in[5], 0);
    cr_expect_eq(g.in[6], 1);
    cr_expect_eq(g.in[18], 3);
    cr_assert_eq(growth_make(&g, 6, 1, UINT32_MAX), 0);
    cr_expect_eq(g.len, GROWTH_MAX);
    growth_done(&g);
}

/* --- many nodes ------------------------------------------------------------------------------------------------- */

Test(share, all_come_up_in_little_more_than_the_least_time)
{
    static const struct {
        uint64_t login_us, gap_us;
        uint32_t hosts;
        double most; /* times the bound */
    } cases[] = {
        {250000, 16000, 64, 1.15},    {250000, 16000, 256, 1.15},   {250000, 16000, 1024, 1.15},
        {250000, 16000, 4096, 1.15},  {250000, 16000, 20000, 1.15}, {12500000, 800000, 1024, 1.15},
        {360000, 126000, 4096, 1.3}, /* what it is not made for until it has measured */
        {360000, 126000, 20000, 1.2}, {100000, 100000, 20000, 1.5}, {250000, 4000, 64, 1.2},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct world_conf wc = {
            .hosts = cases[i].hosts,
            .width = 32,
            .logins = 32,
            .login_us = cases[i].login_us,
            .gap_us = cases[i].gap_us,
        };
        struct world_result r = world_run(&wc);
        double ratio = (double)r.end_us / (double)world_bound_us(wc.hosts, wc.login_us, wc.gap_us);

        cr_expect_eq(r.up, wc.hosts);
        cr_expect_leq(r.widest, 32u);
        cr_expect_leq(ratio, cases[i].most, "case %zu: %.3f", i, ratio);
    }
}

Test(share, nobody_has_more_children_than_the_width)
{
    static const uint32_t widths[] = {1, 2, 3, 7};

    for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
        for (uint32_t hosts = 1; hosts <= 130; hosts += 43) {
            struct world_conf wc = {hosts, widths[i], 32, SECOND, SECOND / 16, 0, NULL};
            struct world_result r = world_run(&wc);

            cr_expect_eq(r.up, hosts);
            cr_expect_leq(r.widest, widths[i], "%u hosts, width %u: %u", hosts, widths[i], r.widest);
            if (widths[i] == 1)
                cr_expect_eq(r.deepest, hosts);
        }
}

static bool third_cannot(uint32_t from, uint32_t to)
{
    (void)to;
    return from % 3 == 1;
}

static bool none_can(uint32_t from, uint32_t to)
{
    (void)to;
    return from != 0;
}

static bool not_to_fifths(uint32_t from, uint32_t to)
{
    return from != 0 && to % 5 == 0;
}

Test(share, what_fails_from_some_nodes_is_done_from_elsewhere)
{
    static bool (*const fails[])(uint32_t, uint32_t) = {third_cannot, none_can, not_to_fifths};
    static const uint32_t widths[] = {1, 2, 32};

    for (size_t i = 0; i < ARRAY_SIZE(fails); i++)
        for (size_t k = 0; k < ARRAY_SIZE(widths); k++) {
            struct world_conf wc = {200, widths[k], 32, SECOND, SECOND / 16, 0, fails[i]};
            struct world_result r = world_run(&wc);

            cr_expect_eq(r.up, 200u, "case %zu, width %u: %u are up", i, widths[k], r.up);
            if (fails[i] == none_can) /* it is soon seen that asking more of them is of no use */
                cr_expect_leq(r.warnings, 40u, "width %u: %u warnings", widths[k], r.warnings);
        }
}

/* --- one node --------------------------------------------------------------------------------------------------- */

static struct share *launcher(uint32_t width, struct share_range all)
{
    struct share_conf conf = {.width = width, .logins = 32, .is_root = true};
    struct share *s = share_new(&conf);

    cr_assert(s != NULL && share_add(s, all) == 0);
    return s;
}

Test(share, a_lost_child_leaves_all_it_was_dealt_to_whoever_adds_it)
{
    struct share *s = launcher(1, (struct share_range){1, 10});
    struct share_range r;
    uint32_t host, child;

    cr_assert(share_next(s, 0, &host) && host == 1);
    cr_expect_not(share_next(s, 0, &host), "only one child");
    cr_assert_eq(share_up(s, 1, SECOND), 0);
    cr_assert(share_deal(s, SECOND, &child, &r));
    cr_expect(child == 1 && r.first == 2 && r.count == 9);
    cr_expect_eq(share_child_of(s, 5), 1);
    cr_expect(share_dealt(s, 1, (struct share_range){2, 9}) && share_dealt(s, 1, (struct share_range){10, 1}));
    cr_expect(!share_dealt(s, 1, (struct share_range){1, 2}) && !share_dealt(s, 2, (struct share_range){2, 1}));
    cr_expect_not(share_deal(s, SECOND, &child, &r));
    cr_assert(share_lost(s, 1, &r));
    cr_expect(r.first == 2 && r.count == 9);
    cr_expect_not(share_lost(s, 1, &r));
    cr_expect_eq(share_left(s), 0);
    cr_expect_eq(share_children(s), 0);
    cr_expect_eq(share_child_of(s, 5), -1);
    cr_assert_eq(share_add(s, r), 0);
    cr_expect(share_next(s, 2 * SECOND, &host) && host == 2);
    share_free(s);
}

Test(share, a_child_that_hands_back_gets_no_more)
{
    struct share *s = launcher(2, (struct share_range){1, 10});
    struct share_range r;
    uint32_t host, child, dealt = 0;

    cr_assert(share_next(s, 0, &host) && share_next(s, 0, &host));
    cr_assert_eq(share_up(s, 1, SECOND), 0);
    while (share_deal(s, SECOND, &child, &r))
        dealt += r.count;
    cr_assert_gt(dealt, 0);
    cr_expect_eq(share_back(s, 1, (struct share_range){1, 1}), -ENOENT);
    cr_assert_eq(share_close(s, 1), 0);
    cr_assert_eq(share_drop(s, 1, r.first), 0); /* that it could not do */
    if (r.count > 1)
        cr_assert_eq(share_back(s, 1, (struct share_range){r.first + 1, r.count - 1}), 0);
    cr_expect_not(share_deal(s, SECOND, &child, &r));
    cr_assert_eq(share_up(s, 2, SECOND), 0);
    for (dealt = 0; share_deal(s, SECOND, &child, &r); dealt += r.count)
        cr_expect_eq(child, 2);
    cr_expect_eq(dealt, 7);
    share_free(s);
}

Test(share, a_node_asks_once_when_it_has_nothing_left)
{
    struct share_conf conf = {.width = 4, .logins = 32, .login_us = SECOND, .gap_us = SECOND / 10};
    struct share *s = share_new(&conf);
    uint32_t host;

    cr_assert_not_null(s);
    cr_expect_not(share_wants(s, 0), "its parent knows that a newcomer has nothing");
    cr_assert_eq(share_add(s, (struct share_range){7, 1}), 0);
    cr_assert(share_next(s, 0, &host));
    cr_expect_not(share_wants(s, 0), "it is busy");
    cr_expect(share_wants(s, SECOND / 10));
    cr_expect_not(share_wants(s, SECOND));
    cr_expect_eq(share_up(s, 8, SECOND), -ENOENT);
    cr_expect_eq(share_failed(s, 8), -ENOENT);
    cr_expect_eq(share_up(s, 7, SECOND), 0);
    cr_expect_eq(share_times(s).gap_us, SECOND / 10);
    share_free(s);
}

Test(share, a_node_that_gives_up_keeps_what_is_under_way)
{
    struct share *s = launcher(4, (struct share_range){1, 10});
    struct share_range r;
    uint32_t host;

    cr_assert(share_next(s, 0, &host));
    cr_assert(share_give_up(s, &r));
    cr_expect(r.first == 2 && r.count == 9);
    cr_expect_not(share_give_up(s, &r));
    cr_expect_not(share_next(s, 0, &host));
    cr_expect_eq(share_under_way(s), 1);
    cr_expect_eq(share_failed(s, 1), 0);
    cr_expect_eq(share_under_way(s), 0);
    share_free(s);
}

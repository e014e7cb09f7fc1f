/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "client/bench_stats.h"
#include "common/util.h"

static struct stats stats; /* large */

static struct summary sum_of(const uint64_t *ns, size_t n)
{
    struct summary s;

    for (size_t i = 0; i < n; i++)
        stats_add(&stats, ns[i]);
    stats_sum(&stats, &s);
    return s;
}

static void expect(struct summary s, uint64_t min, uint64_t median, uint64_t p99, uint64_t max)
{
    cr_expect_eq(s.min, min, "min %zu", (size_t)s.min);
    cr_expect_eq(s.median, median, "median %zu", (size_t)s.median);
    cr_expect_eq(s.p99, p99, "p99 %zu", (size_t)s.p99);
    cr_expect_eq(s.max, max, "max %zu", (size_t)s.max);
}

Test(bench_stats, nothing_is_all_zero)
{
    struct summary s = sum_of(NULL, 0);

    cr_expect_eq(s.count, 0u);
    expect(s, 0, 0, 0, 0);
}

Test(bench_stats, small_times_are_exact)
{
    static const uint64_t one[] = {17}, three[] = {3, 1, 200};

    expect(sum_of(one, 1), 17, 17, 17, 17);
    stats = (struct stats){0};
    expect(sum_of(three, 3), 1, 3, 200, 200);
}

Test(bench_stats, a_hundred_times_in_order_of_their_size)
{
    uint64_t ns[100];

    for (size_t i = 0; i < ARRAY_SIZE(ns); i++)
        ns[(i * 37) % 100] = i + 1;
    expect(sum_of(ns, ARRAY_SIZE(ns)), 1, 50, 99, 100);
    cr_expect_eq(stats.sum, 5050u);
}

Test(bench_stats, large_times_are_near_and_never_outside_of_what_was_seen)
{
    for (unsigned shift = 8; shift < 64; shift++) {
        uint64_t low = (uint64_t)1 << shift, mid = low + low / 3, high = low + (low - 1);
        const uint64_t ns[] = {low, mid, high};
        struct summary s;

        stats = (struct stats){0};
        s = sum_of(ns, 3);
        cr_expect_eq(s.min, low);
        cr_expect_eq(s.max, high);
        cr_expect((s.median > mid ? s.median - mid : mid - s.median) <= mid / 250, "2^%u", shift);
        cr_expect(s.p99 <= high && high - s.p99 <= high / 250, "2^%u", shift);
    }
}

Test(bench_stats, the_largest_time_that_can_be_said)
{
    static const uint64_t ns[] = {UINT64_MAX, 0};
    struct summary s = sum_of(ns, 2);

    cr_expect_eq(s.min, 0u);
    cr_expect_eq(s.max, UINT64_MAX);
    cr_expect(UINT64_MAX - s.p99 <= UINT64_MAX / 250);
}

Test(bench_stats, ranks_together)
{
    struct summary each[] = {{10, 5, 20, 25, 90, 100}, {0}, {10, 4, 10, 12, 40, 50}, {20, 6, 30, 44, 70, 300}}, all;

    summary_merge(each, ARRAY_SIZE(each), &all);
    cr_expect_eq(all.count, 40u);
    cr_expect_eq(all.mean, (250u + 120u + 880u) / 40u);
    expect(all, 4, 20, 90, 300);
    summary_merge(each, 0, &all);
    cr_expect_eq(all.count, 0u);
}

Test(bench_stats, there_and_back_as_text)
{
    const struct summary one = {1, 2, 3, 33, 4, UINT64_MAX}, two = {6, 7, 8, 88, 9, 10};
    struct summary back;
    struct buf b = {0};
    struct span text;

    cr_assert_eq(summary_write(&b, &one), 0);
    cr_assert_eq(summary_write(&b, &two), 0);
    text = buf_span(&b);
    cr_expect_null(memchr(text.p, ' ', text.n));
    cr_assert_eq(summary_read(&text, &back), 0);
    expect(back, 2, 3, 4, UINT64_MAX);
    cr_assert_eq(summary_read(&text, &back), 0);
    expect(back, 7, 8, 9, 10);
    cr_expect_eq(back.mean, 88u);
    cr_expect_eq(text.n, 0u);
    cr_expect_eq(summary_read(&text, &back), -EPROTO);
    buf_done(&b);
}

Test(bench_stats, text_that_is_none)
{
    static const char *const bad[] = {"",           "1,2,3,4",     "1,2,3,4,5",  "1,2,,4,5,",
                                      "1,2,x,4,5,", "1, 2,3,4,5,", "-1,2,3,4,5,"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct span text = span_of(bad[i]);
        struct summary s = {.count = 77};

        cr_expect_eq(summary_read(&text, &s), -EPROTO, "%s", bad[i]);
        cr_expect(text.n == strlen(bad[i]) && s.count == 77);
    }
}

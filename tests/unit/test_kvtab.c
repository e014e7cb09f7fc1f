/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include "common/kvtab.h"

Test(kvtab, index_stays_small_at_every_size)
{
    struct kvtab t = {0};
    char key[32];

    for (unsigned i = 0; i < 50000; i++) {
        snprintf(key, sizeof(key), "%u", i);
        cr_assert_eq(kvtab_add(&t, (struct kvtab_stamp){0}, span_of(key), span_of("v")), 0);
        cr_assert_eq(kvtab_index(&t), 0);
        if (i >= 256)
            cr_assert_leq(t.places * sizeof(struct kvtab_place), (i + 1) * 13ul, "%u places for %u keys", t.places, i);
    }
    cr_expect_eq(t.keys, 50000);
    kvtab_done(&t);
}

Test(kvtab, stamps_survive_the_wire)
{
    struct kvtab t = {0};
    struct kvtab_stamp s = {KVTAB_ROUND_MAX, TASKS_MAX - 1, UINT32_MAX};
    struct kvtab_entry e;

    cr_assert_eq(kvtab_add(&t, s, span_of("k"), span_of("")), 0);
    e = kvtab_at(&t, KVTAB_BASE);
    cr_expect_eq(e.stamp.round, s.round);
    cr_expect_eq(e.stamp.rank, s.rank);
    cr_expect_eq(e.stamp.seq, s.seq);
    cr_expect(span_is(e.key, "k"));
    cr_expect_eq(e.value.n, 0);
    cr_expect_eq(e.len, KVTAB_HEADER + 1);
    kvtab_done(&t);
}

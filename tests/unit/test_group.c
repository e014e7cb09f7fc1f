/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "common/util.h"
#include "server/barrier.h"
#include "server/group.h"

static const struct {
    const char *list;
    uint32_t size;
    int rc;
    const char *name;
} rows[] = {
    {"0", 1, 0, "0"},
    {"0,2", 4, 0, "0,2"},
    {"2,0", 4, 0, "0,2"},
    {"0,1", 4, 0, "0-1"},
    {"3,1,0,2", 4, 0, "0-3"},
    {"0,0,2,2", 4, 0, "0,2"},
    {"0,32,64,96", 100, 0, "0-96/32"},
    {"0,5,6,7", 8, 0, "0,5-7"},
    {"0,2,4,5,6", 8, 0, "0-4/2,5-6"},
    {"1,4,6,9,10", 11, 0, "1,4,6,9-10"},
    {"", 4, -EINVAL, NULL},
    {"0,", 4, -EINVAL, NULL},
    {",0", 4, -EINVAL, NULL},
    {"0,,1", 4, -EINVAL, NULL},
    {"0, 1", 4, -EINVAL, NULL},
    {"0-1", 4, -EINVAL, NULL},
    {"ROOTS", 4, -EINVAL, NULL},
    {"-1", 4, -EINVAL, NULL},
    {"0,4", 4, -ERANGE, NULL},
    {"99999999999999999999", 4, -ERANGE, NULL},
};

Test(group, one_name_for_one_set_of_ranks)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct buf name = {0};
        int rc = group_name(span_of(rows[i].list), rows[i].size, &name);

        cr_expect_eq(rc, rows[i].rc, "%s: %d", rows[i].list, rc);
        cr_expect_str_eq(buf_str(&name), rows[i].name ? rows[i].name : "", "%s", rows[i].list);
        buf_done(&name);
    }
}

Test(group, a_name_that_is_too_long_is_refused)
{
    struct buf list = {0}, name = {0};

    for (unsigned i = 0, r = 0; i < 1200; i++, r += 1 + i % 3 * i % 700)
        buf_printf(&list, i == 0 ? "%u" : ",%u", r);
    cr_expect_eq(group_name(buf_span(&list), 1000000, &name), -E2BIG);
    cr_expect_eq(name.len, 0);
    /* As long a list, but even. */
    list.len = 0;
    for (unsigned i = 0; i < 400; i++)
        buf_printf(&list, i == 0 ? "%u" : ",%u", 7 * i);
    cr_expect_eq(group_name(buf_span(&list), 1000000, &name), 0);
    cr_expect_str_eq(buf_str(&name), "0-2793/7");
    buf_done(&list);
    buf_done(&name);
}

Test(group, members)
{
    static const char *const good = "0-4/2,7,9-10";

    for (uint32_t r = 0; r < 20; r++) {
        bool in = r == 0 || r == 2 || r == 4 || r == 7 || r == 9 || r == 10;

        cr_expect_eq(group_has(span_of(good), r), in, "%u", r);
    }
}

Test(group, what_is_no_name)
{
    static const char *const bad[] = {"a", ",", "1,", "1-", "3-1", "0-4/3", "0-4/0", "0/2", "4294967296", "0-1-2"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct span rest = span_of(bad[i]);
        struct group_part p;
        int rc;

        while ((rc = group_next(&rest, &p)) > 0) {
        }
        /* A comma or dash at the end is of no account. */
        cr_expect(rc == -EPROTO || strchr(",-", bad[i][strlen(bad[i]) - 1]) != NULL, "%s: %d", bad[i], rc);
    }
}

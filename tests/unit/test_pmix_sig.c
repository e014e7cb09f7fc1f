/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_sig.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include "common/limits.h"
#include "common/util.h"

static void expect_text(struct pmix_member *v, size_t n, const char *want)
{
    struct buf b = {0};

    cr_assert_eq(pmix_sig_make(PMIX_SIG_FENCE, v, n, &b), 0);
    cr_expect_str_eq(buf_str(&b), want);
    buf_done(&b);
}

Test(pmix_sig, one_spelling_whatever_the_order)
{
    struct pmix_member a[] = {{0, 5, 5}, {0, 3, 3}, {1, 0, PMIX_SIG_ALL}, {0, 4, 4}, {0, 9, 9}};
    struct pmix_member b[] = {{1, 0, PMIX_SIG_ALL}, {0, 9, 9}, {0, 3, 5}, {0, 5, 5}};

    expect_text(a, ARRAY_SIZE(a), "f0.3-5,0.9-9,1.*");
    expect_text(b, ARRAY_SIZE(b), "f0.3-5,0.9-9,1.*");
}

Test(pmix_sig, all_of_a_job_swallows_its_ranks)
{
    struct pmix_member v[] = {{2, 7, 7}, {2, 0, PMIX_SIG_ALL}, {3, 0, 0}};

    expect_text(v, ARRAY_SIZE(v), "f2.*,3.0-0");
}

Test(pmix_sig, nobody_is_none)
{
    struct buf b = {0};

    cr_expect_eq(pmix_sig_make(PMIX_SIG_CONNECT, NULL, 0, &b), -EINVAL);
    buf_done(&b);
}

Test(pmix_sig, comes_apart_again)
{
    struct span s = span_of("c0.0-3,0.7-7,2.*");
    struct pmix_member m;

    cr_assert_eq(pmix_sig_next(&s, &m), 1);
    cr_expect(m.job == 0 && m.first == 0 && m.last == 3);
    cr_assert_eq(pmix_sig_next(&s, &m), 1);
    cr_expect(m.job == 0 && m.first == 7 && m.last == 7);
    cr_assert_eq(pmix_sig_next(&s, &m), 1);
    cr_expect(m.job == 2 && m.first == 0 && m.last == PMIX_SIG_ALL);
    cr_expect_eq(pmix_sig_next(&s, &m), 0);
}

Test(pmix_sig, rubbish)
{
    static const char *const bad[] = {
        "f0", "f0.", "f.1-2", "f0.1", "f0.2-1", "f0.1-", "f0.*x", "fx.*", "f0.1-99999999999", "f-1.*", "f,", "f0.0-0,"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct span s = span_of(bad[i]);
        struct pmix_member m;
        int rc;

        while ((rc = pmix_sig_next(&s, &m)) == 1) {
        }
        cr_expect(rc == -EPROTO || (rc == 0 && i == ARRAY_SIZE(bad) - 1), "%s: %d", bad[i], rc);
    }
}

Test(pmix_sig, a_group_has_a_name_behind_its_members_whatever_is_in_it)
{
    struct pmix_member v[] = {{1, 2, 2}, {0, 0, PMIX_SIG_ALL}}, m;
    char longest[PMIX_GROUP_NAME_MAX + 2];
    struct buf b = {0};
    struct span s;

    cr_assert_eq(pmix_sig_make(PMIX_SIG_GROUP, v, ARRAY_SIZE(v), &b), 0);
    cr_assert_eq(pmix_sig_add_name(&b, "a/b,7.7-7"), 0);
    cr_expect_str_eq(buf_str(&b), "g0.*,1.2-2/a/b,7.7-7");
    s = buf_span(&b);
    cr_assert_eq(pmix_sig_next(&s, &m), 1);
    cr_expect(m.job == 0 && m.last == PMIX_SIG_ALL);
    cr_assert_eq(pmix_sig_next(&s, &m), 1);
    cr_expect(m.job == 1 && m.first == 2 && m.last == 2);
    cr_expect_eq(pmix_sig_next(&s, &m), 0);
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    cr_expect_eq(pmix_sig_add_name(&b, longest), -EINVAL);
    buf_done(&b);
}

Test(pmix_sig, as_people_read_it)
{
    static const char *const names[][2] = {
        {"f0.*", "PMIx fence"},
        {"f0.0-3,0.7-7", "PMIx fence of ranks 0-3,7"},
        {"g2.1-2/me", "PMIx group 'me' of ranks 1-2"},
        {"u0.*/me", "PMIx end of group 'me'"},
        {"c0.0-3,1.0-1", "PMIx connect of ranks 0-3 and of other jobs"},
        {"d0.*", "PMIx disconnect"},
        {"k0.3-3", "PMIx get of rank 3's keys"},
        {"l0.3-3/na", "PMIx look-up of 'na' by rank 3"},
    };
    char text[100];

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        pmix_sig_text(span_of(names[i][0]), text, sizeof(text));
        cr_expect_str_eq(text, names[i][1]);
    }
}

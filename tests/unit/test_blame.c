/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "server/blame.h"

Test(blame, the_order_is_abort_signal_lost_status_unfinalized)
{
    static const enum blame_kind weakest_first[] = {BLAME_UNFINALIZED, BLAME_STATUS, BLAME_LOST, BLAME_SIGNAL,
                                                    BLAME_ABORT};

    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) {
            struct blame b = {0};

            cr_expect(blame_add(&b, weakest_first[i], 10 + i, "first"));
            cr_expect_not(blame_add(&b, weakest_first[k], 10 + k, "second"));
            cr_expect_eq(b.status, 10 + (k > i ? k : i));
            cr_expect_str_eq(b.text, k > i ? "second" : "first");
        }
    }
}

Test(blame, highest_status_is_kept_whoever_is_blamed)
{
    struct blame b = {0};

    blame_add(&b, BLAME_SIGNAL, 139, "a");
    blame_add(&b, BLAME_STATUS, 200, "b");
    blame_add(&b, BLAME_STATUS, 3, "c");
    cr_expect_eq(b.status, 139);
    cr_expect_eq(b.highest, 200);
}

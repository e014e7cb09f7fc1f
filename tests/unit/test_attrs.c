/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include "common/limits.h"
#include "server/attrs.h"

static char heard[200];

static void on_got(struct span value, void *arg)
{
    size_t n = strlen(heard);

    snprintf(heard + n, sizeof(heard) - n, "%s=%.*s ", (const char *)arg, SPAN_FMT(value));
}

static const char *get(const struct attrs *a, const char *key)
{
    static char text[100];
    struct span v;

    if (attrs_get(a, span_of(key), &v) < 0)
        return NULL;
    snprintf(text, sizeof(text), "%.*s", SPAN_FMT(v));
    return text;
}

Test(attrs, what_was_put_is_read_and_replaced)
{
    struct attrs *a = attrs_new();

    cr_expect_null(get(a, "k"));
    cr_expect_eq(attrs_put(a, span_of("k"), span_of("1")), 0);
    cr_expect_eq(attrs_put(a, span_of("kk"), span_of("")), 0);
    cr_expect_str_eq(get(a, "k"), "1");
    cr_expect_str_eq(get(a, "kk"), "");
    cr_expect_eq(attrs_put(a, span_of("k"), span_of("two")), 0);
    cr_expect_str_eq(get(a, "k"), "two");
    attrs_free(a);
}

Test(attrs, those_who_wait_are_told_once_in_order)
{
    struct attrs *a = attrs_new();
    char x[] = "x", y[] = "y", z[] = "z";

    attrs_wait(a, span_of("k"), on_got, x);
    attrs_wait(a, span_of("other"), on_got, z);
    attrs_wait(a, span_of("k"), on_got, y);
    attrs_wait(a, span_of("k"), on_got, x);
    attrs_put(a, span_of("k"), span_of("1"));
    cr_expect_str_eq(heard, "x=1 y=1 x=1 ");
    attrs_put(a, span_of("k"), span_of("2"));
    attrs_put(a, span_of("other"), span_of("3"));
    cr_expect_str_eq(heard, "x=1 y=1 x=1 z=3 ");
    attrs_free(a);
}

Test(attrs, a_wait_can_be_withdrawn_and_the_last_place_is_used_again)
{
    struct attrs *a = attrs_new();
    char x[] = "x", y[] = "y";

    attrs_wait(a, span_of("k"), on_got, x);
    attrs_wait(a, span_of("k"), on_got, y);
    attrs_withdraw(a, y);
    attrs_wait(a, span_of("k"), on_got, y);
    attrs_withdraw(a, x);
    attrs_put(a, span_of("k"), span_of("1"));
    cr_expect_str_eq(heard, "y=1 ");
    attrs_wait(a, span_of("never"), on_got, x);
    attrs_free(a);
}

static void on_given_up(struct span value, void *arg)
{
    cr_expect_null(value.p);
    on_got((struct span){"none", 4}, arg);
}

Test(attrs, those_who_wait_in_vain_are_told)
{
    struct attrs *a = attrs_new();
    char x[] = "x", y[] = "y";

    cr_expect(!attrs_is_awaited(a));
    attrs_wait(a, span_of("k"), on_given_up, x);
    attrs_wait(a, span_of("other"), on_given_up, y);
    cr_expect(attrs_is_awaited(a));
    attrs_give_up(a);
    cr_expect_str_eq(heard, "x=none y=none ");
    cr_expect(!attrs_is_awaited(a));
    attrs_wait(a, span_of("k"), on_got, x); /* the list is as good as new */
    attrs_put(a, span_of("k"), span_of("1"));
    cr_expect_str_eq(heard, "x=none y=none x=1 ");
    attrs_free(a);
}

Test(attrs, a_full_store_still_replaces)
{
    struct attrs *a = attrs_new();
    char key[16];

    for (unsigned i = 0; i < ATTRS_MAX; i++) {
        snprintf(key, sizeof(key), "%u", i);
        cr_assert_eq(attrs_put(a, span_of(key), span_of("v")), 0);
    }
    cr_expect_eq(attrs_put(a, span_of("more"), span_of("v")), -ENOSPC);
    cr_expect_eq(attrs_put(a, span_of("7"), span_of("w")), 0);
    cr_expect_str_eq(get(a, "7"), "w");
    attrs_free(a);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include "common/limits.h"
#include "server/names.h"

static struct span s(const char *text)
{
    return span_of(text);
}

Test(names, published_is_found_until_it_is_taken_back)
{
    struct names *n = names_new();
    struct span port;

    cr_expect_eq(names_lookup(n, s("svc"), &port), -ENOENT);
    cr_expect_eq(names_publish(n, s("svc"), s("tag#0$port#1$ blank")), 0);
    cr_assert_eq(names_lookup(n, s("svc"), &port), 0);
    cr_expect(span_is(port, "tag#0$port#1$ blank"));
    cr_expect_eq(names_lookup(n, s("sv"), &port), -ENOENT);
    cr_expect_eq(names_lookup(n, s("svcx"), &port), -ENOENT);
    cr_expect_eq(names_unpublish(n, s("svc")), 0);
    cr_expect_eq(names_unpublish(n, s("svc")), -ENOENT);
    cr_expect_eq(names_lookup(n, s("svc"), &port), -ENOENT);
    names_free(n);
}

Test(names, a_second_publisher_is_refused_and_the_first_stays)
{
    struct names *n = names_new();
    struct span port;

    cr_expect_eq(names_publish(n, s("svc"), s("one")), 0);
    cr_expect_eq(names_publish(n, s("svc"), s("two")), -EEXIST);
    cr_assert_eq(names_lookup(n, s("svc"), &port), 0);
    cr_expect(span_is(port, "one"));
    names_free(n);
}

Test(names, lengths_are_held_to_the_protocols)
{
    struct names *n = names_new();
    char text[NAME_PORT_MAX + 1];
    struct span port;

    memset(text, 'x', sizeof(text));
    cr_expect_eq(names_publish(n, (struct span){text, NAME_SERVICE_MAX + 1}, s("p")), -EINVAL);
    cr_expect_eq(names_publish(n, s("svc"), (struct span){text, NAME_PORT_MAX + 1}), -EINVAL);
    cr_expect_eq(names_publish(n, (struct span){text, NAME_SERVICE_MAX}, (struct span){text, NAME_PORT_MAX}), 0);
    cr_expect_eq(names_publish(n, s(""), s("p")), -EINVAL);
    cr_expect_eq(names_publish(n, s("svc"), s("")), -EINVAL);
    cr_expect_eq(names_lookup(n, s(""), &port), -ENOENT);
    names_free(n);
}

Test(names, no_more_than_the_cap)
{
    struct names *n = names_new();
    char text[32];

    for (int i = 0; i < NAMES_MAX; i++) {
        snprintf(text, sizeof(text), "svc%d", i);
        cr_assert_eq(names_publish(n, s(text), s("p")), 0);
    }
    cr_expect_eq(names_publish(n, s("one more"), s("p")), -ENOSPC);
    cr_expect_eq(names_unpublish(n, s("svc7")), 0);
    cr_expect_eq(names_publish(n, s("one more"), s("p")), 0);
    names_free(n);
}

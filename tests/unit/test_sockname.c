/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>
#include "common/io/sockname.h"
#include "common/util.h"

Test(sockname, numbers_of_both_families)
{
    static const struct {
        const char *number, *text;
    } cases[] = {
        {"10.0.0.1", "10.0.0.1:7"},   {"[10.0.0.1]", "10.0.0.1:7"},           {"::1", "[::1]:7"},
        {"[fd00::2]", "[fd00::2]:7"}, {"2001:DB8:0:0::1", "[2001:db8::1]:7"}, {"::ffff:1.2.3.4", "[::ffff:1.2.3.4]:7"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[SOCKNAME_TEXT];
        union sockname a;

        cr_assert_gt(sockname_set(&a, span_of(cases[i].number), 7), 0, "%s", cases[i].number);
        sockname_text(&a, text);
        cr_expect_str_eq(text, cases[i].text);
        cr_expect_eq(sockname_port(&a), 7);
        cr_expect(sockname_is_number(span_of(cases[i].number)));
    }
}

Test(sockname, what_is_no_number)
{
    static const char *const bad[] = {
        "",
        "h1",
        "10.0.0",
        "10.0.0.256",
        "010.0.0.1",
        "10.0.0.1 ",
        "10.0.0.1:7",
        "[::1",
        "[]",
        "::1]:7",
        "fe80::1%0",
        "[[::1]]",
        "1:2:3:4:5:6:7:8:9",
        "1111:2222:3333:4444:5555:6666:111.111.111.1111",
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        cr_expect_not(sockname_is_number(span_of(bad[i])), "%s", bad[i]);
    cr_expect_not(sockname_is_number((struct span){"10.0.0.1\0x", 10}), "a NUL within");
}

Test(sockname, an_address_of_ipv4_is_the_same_in_ipv6)
{
    uint8_t four[16], six[16], other[16];
    union sockname a;

    sockname_set(&a, span_of("10.0.0.1"), 1);
    cr_assert(sockname_bytes(&a.sa, four));
    sockname_set(&a, span_of("::ffff:10.0.0.1"), 2);
    cr_assert(sockname_bytes(&a.sa, six));
    sockname_set(&a, span_of("::10.0.0.1"), 1);
    cr_assert(sockname_bytes(&a.sa, other));
    cr_expect_arr_eq(four, six, 16);
    cr_expect_neq(memcmp(four, other, 16), 0);
    a.sa.sa_family = AF_UNIX;
    cr_expect_not(sockname_bytes(&a.sa, other));
}

Test(sockname, of_a_socket_and_its_peer)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), to = socket(AF_INET, SOCK_STREAM, 0),
        un = socket(AF_UNIX, SOCK_STREAM, 0);
    socklen_t len;
    union sockname a, own, peer;

    len = sockname_set(&a, span_of("127.0.0.1"), 0);
    cr_assert(bind(fd, &a.sa, len) == 0 && listen(fd, 1) == 0 && sockname_of(fd, false, &own));
    cr_expect_not(sockname_of(fd, true, &peer), "nobody is connected to it");
    cr_assert(connect(to, &own.sa, len) == 0 && sockname_of(to, true, &peer));
    cr_expect(sockname_port(&peer) == sockname_port(&own) && sockname_port(&own) > 0);
    cr_expect_not(sockname_of(un, false, &a), "of another family");
    close(fd);
    close(to);
    close(un);
}

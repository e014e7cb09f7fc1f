/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "common/cidr.h"
#include "common/util.h"

Test(cidr, ranges_hold_what_they_say)
{
    static const struct {
        const char *range, *addr;
        bool in;
    } cases[] = {
        {"10.0.0.0/8", "10.255.0.1", true},      {"10.0.0.0/8", "11.0.0.1", false},
        {"0.0.0.0/0", "255.255.255.255", true},  {"10.1.2.3", "10.1.2.3", true},
        {"10.1.2.3", "10.1.2.4", false},         {"10.1.2.2/31", "10.1.2.3", true},
        {"192.168.4.0/22", "192.168.7.9", true}, {"192.168.4.0/22", "192.168.8.0", false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cidr c;
        uint32_t addr;

        cr_assert_eq(cidr_parse(span_of(cases[i].range), &c), 0, "%s", cases[i].range);
        cr_assert_eq(ipv4_parse(span_of(cases[i].addr), &addr), 0);
        cr_expect_eq(cidr_has(&c, addr), cases[i].in, "%s in %s", cases[i].addr, cases[i].range);
    }
}

Test(cidr, other_texts_are_refused)
{
    static const char *const bad[] = {
        "",           "10",        "10.0.0",     "10.0.0.0.0", "10.0.0.0/",  "10.0.0.0/33",
        "10.0.0.256", "10.0.0.-1", "10.0.0.01",  " 10.0.0.1",  "10.0.0.1 ",  "10.0.0.1/8",
        "::/0",       "10..0.1",   "1.2.3.4/+8", "host",       "0x0a.0.0.1", "10.0.0.1/32/1"};

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct cidr c;

        cr_expect_eq(cidr_parse(span_of(bad[i]), &c), -EINVAL, "%s", bad[i]);
    }
}

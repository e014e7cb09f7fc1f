/* SPDX-License-Identifier: BSD-3-Clause */
/* --serve: where ranks from elsewhere are told to come, and which of them share a node. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "common/limits.h"
#include "common/mapping.h"
#include "common/util.h"
#include "server/serve.h"

#define RANGES_MAX 4

/* Blank-separated. */
static size_t ranges(const char *text, struct cidr out[RANGES_MAX])
{
    size_t n = 0;

    while (*text != '\0') {
        size_t len = strcspn(text, " ");

        cr_assert_eq(cidr_parse((struct span){text, len}, &out[n++]), 0, "%s", text);
        text += len + strspn(text + len, " ");
    }
    return n;
}

static const struct {
    const char *ranges, *given[4], *chosen;
} choices[] = {
    {"10.1.0.0/16", {"192.168.1.5", "10.1.2.3"}, "10.1.2.3"},
    {"10.1.0.0/16", {"fe80::1", "192.168.1.5", "10.2.2.3"}, "192.168.1.5"},
    {"10.1.0.0/16 192.168.0.0/16", {"192.168.1.5", "10.1.2.3"}, "192.168.1.5"},
    {"0.0.0.0/0", {"2001:db8::1", "203.0.113.9"}, "203.0.113.9"},
    {"127.0.0.0/8 10.0.0.0/8", {"10.9.9.9"}, "10.9.9.9"},
    {"127.0.0.0/8 10.0.0.0/8", {NULL}, "127.0.0.1"},
    {"0.0.0.0/0", {"2001:db8::1"}, "127.0.0.1"},
    {"10.0.0.0/8", {"2001:db8::1"}, NULL},
    {"10.0.0.0/8", {NULL}, NULL},
};

Test(serve, an_address_in_a_range_is_preferred)
{
    for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
        struct cidr range[RANGES_MAX];
        size_t n = ranges(choices[i].ranges, range);
        char text[IPV4_TEXT_MAX];
        uint32_t addr;
        int rc = serve_choose((char *const *)choices[i].given, range, n, &addr);

        cr_expect_eq(rc, choices[i].chosen == NULL ? -ENOENT : 0, "case %zu", i);
        if (rc == 0 && choices[i].chosen != NULL)
            cr_expect_str_eq(ipv4_text(addr, text), choices[i].chosen, "case %zu", i);
    }
}

Test(serve, ranges_of_loopback_alone_are_known)
{
    static const struct {
        const char *ranges;
        bool is_loopback;
    } cases[] = {{"127.0.0.0/8", true},  {"127.0.0.1", true},  {"127.1.0.0/16 127.0.0.1/32", true},
                 {"126.0.0.0/7", false}, {"0.0.0.0/0", false}, {"127.0.0.1 10.0.0.0/8", false}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct cidr range[RANGES_MAX];

        cr_expect_eq(serve_is_loopback(range, ranges(cases[i].ranges, range)), cases[i].is_loopback, "case %zu", i);
    }
}

Test(serve, peers_outside_of_every_range_are_told)
{
    struct cidr range[RANGES_MAX];
    size_t n = ranges("10.1.0.0/16 192.168.7.1", range);

    cr_expect(serve_has(range, n, 0x0a01ffff));
    cr_expect(serve_has(range, n, 0xc0a80701));
    cr_expect_not(serve_has(range, n, 0x0a020000));
    cr_expect_not(serve_has(range, n, 0xc0a80702));
    cr_expect_not(serve_has(range, 0, 0x0a010000));
}

static const struct {
    uint32_t size, addr[8];
    const char *text;
} mappings[] = {
    {1, {7}, "(vector,(0,1,1))"},
    {4, {7, 7, 7, 7}, "(vector,(0,1,4))"},
    {4, {9, 8, 7, 6}, "(vector,(0,4,1))"},
    {8, {5, 5, 3, 3, 9, 9, 1, 1}, "(vector,(0,4,2))"},
    {4, {5, 3, 5, 3}, "(vector,(0,2,1),(0,2,1))"},
    {5, {5, 3, 3, 5, 9}, "(vector,(0,1,1),(1,1,2),(0,1,1),(2,1,1))"},
};

Test(serve, one_address_is_one_node_in_the_order_of_ranks)
{
    for (size_t i = 0; i < ARRAY_SIZE(mappings); i++) {
        struct buf b = {0};

        cr_assert_eq(serve_mapping(mappings[i].addr, mappings[i].size, &b), 0);
        cr_expect_str_eq(buf_str(&b), mappings[i].text);
        buf_done(&b);
    }
}

Test(serve, many_ranks_are_mapped_and_too_long_a_mapping_is_none)
{
    uint32_t n = 100000, *addr = malloc(n * sizeof(*addr));
    struct buf b = {0};

    for (uint32_t i = 0; i < n; i++)
        addr[i] = 0x0a000000u + i / 4;
    cr_assert_eq(serve_mapping(addr, n, &b), 0);
    cr_expect_str_eq(buf_str(&b), "(vector,(0,25000,4))");
    b.len = 0;
    for (uint32_t i = 0; i < n; i++)
        addr[i] = i * i % 101;
    cr_expect_eq(serve_mapping(addr, n, &b), -E2BIG);
    cr_expect_eq(b.len, 0);
    buf_done(&b);
    free(addr);
}

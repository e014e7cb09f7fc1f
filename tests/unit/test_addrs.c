/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>
#include "common/io/addrs.h"
#include "common/limits.h"
#include "common/strv.h"
#include "common/util.h"

/* The tests below need networks of their own. Each test is a process, so the namespace ends with it. */
static void own_network(void)
{
    if (unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS | (geteuid() != 0 ? CLONE_NEWUSER : 0)) < 0)
        cr_skip_test("needs a network namespace of its own (root, or user namespaces)");
    if (system("ip link set lo up 2>/dev/null") != 0)
        cr_skip_test("needs ip (iproute2) and the right to use it in a namespace of its own");
}

static void ip(const char *args)
{
    char command[200];

    snprintf(command, sizeof(command), "ip %s", args);
    cr_assert_eq(system(command), 0, "%s", command);
}

/* Two networks without a route between them. */
static void two_networks(void)
{
    own_network();
    ip("link add va type veth peer name vb");
    ip("addr add 10.1.0.1/24 dev va");
    ip("addr add 10.2.0.1/24 dev vb");
    ip("addr add fd00:1::1/64 dev va nodad");
    ip("addr add fd00:2::1/64 dev vb nodad");
    ip("addr add 169.254.7.7/16 dev vb");
    ip("link set va up");
    ip("link set vb up");
}

static struct hostlist *hosts_of(char *const *names, size_t count)
{
    struct hostlist *hl = hostlist_new();

    for (size_t i = 0; i < count; i++)
        cr_assert_eq(hostlist_add_host(hl, span_of(names[i]), 0), 0);
    return hl;
}

static void expect_first(const char *interface, const char *host, const char *want)
{
    char name[64], *names[] = {name};
    struct err err = {0};
    char **v = NULL;

    snprintf(name, sizeof(name), "%s", host);
    struct hostlist *hl = hosts_of(names, 1);
    cr_assert_eq(addrs_to_give(interface, hl, &v, &err), 0, "%s", err.text);
    cr_expect_str_eq(v[0], want, "%s via %s: %s", host, interface ? interface : "any", v[0]);
    for (size_t i = 0; v[i] != NULL; i++)
        cr_expect(strncmp(v[i], "127.", 4) != 0 && strncmp(v[i], "169.254.", 8) != 0 && strncmp(v[i], "fe80", 4) != 0,
                  "gave out %s", v[i]);
    hostlist_free(hl);
    strv_free(v);
}

Test(addrs, source_of_the_route_comes_first)
{
    two_networks();
    expect_first(NULL, "10.1.0.9", "10.1.0.1");
    expect_first(NULL, "10.2.0.9", "10.2.0.1");
    expect_first(NULL, "user@10.2.0.9", "10.2.0.1");
    expect_first(NULL, "fd00:1::9", "fd00:1::1");
    expect_first(NULL, "fd00:2::9", "fd00:2::1");
}

Test(addrs, all_networks_are_given_when_nothing_is_known)
{
    char **v = NULL;

    two_networks();
    cr_assert_eq(addrs_to_give(NULL, NULL, &v, NULL), 0);
    cr_expect_eq(strv_count(v), 4);
    strv_free(v);
}

Test(addrs, no_more_than_the_cap)
{
    char **v = NULL, args[64];

    two_networks();
    for (unsigned i = 2; i < 20; i++) {
        snprintf(args, sizeof(args), "addr add 10.1.0.%u/24 dev va", i);
        ip(args);
    }
    cr_assert_eq(addrs_to_give(NULL, NULL, &v, NULL), 0);
    cr_expect_eq(strv_count(v), ADDRS_MAX);
    strv_free(v);
}

Test(addrs, interface_by_name_address_or_network)
{
    two_networks();
    expect_first("vb", "10.1.0.9", "10.2.0.1");
    expect_first("10.2.0.1", "10.1.0.9", "10.2.0.1");
    expect_first("10.2.0.0/16", "10.1.0.9", "10.2.0.1");
    expect_first("10.2.0.99/25", "10.1.0.9", "10.2.0.1");
    expect_first("0.0.0.0/0", "10.2.0.9", "10.2.0.1");
    expect_first("fd00:2::/64", "fd00:1::9", "fd00:2::1");
    expect_first("::/0", "fd00:1::9", "fd00:1::1");
    expect_first("[fd00:2::1]", "10.1.0.9", "fd00:2::1");
}

Test(addrs, bad_interface_lists_the_choices)
{
    static const struct {
        const char *interface, *say;
    } bad[] = {
        {"eth9", "no interface that is up has the name or address 'eth9'"},
        {"10.3.0.0/16", "no interface that is up has the name or address '10.3.0.0/16'"},
        {"10.2.0.0/33", "no interface that is up has the name or address '10.2.0.0/33'"},
        {"10.2.0/24", "no interface that is up has the name or address '10.2.0/24'"},
        {"", "no interface that is up has the name or address ''"},
        {"127.0.0.1", "interface '127.0.0.1' has no address that other hosts can reach"},
        {"lo", "interface 'lo' has no address that other hosts can reach"},
    };
    char want[300];

    two_networks();
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err err = {0};
        char **v = NULL;

        snprintf(want, sizeof(want), "%s; choices: 10.1.0.1 (va), 10.2.0.1 (vb), fd00:1::1 (va), fd00:2::1 (vb)",
                 bad[i].say);
        cr_expect_eq(addrs_to_give(bad[i].interface, NULL, &v, &err), -EINVAL);
        cr_expect(v == NULL);
        /* The kernel decides in which order it names them. */
        cr_expect(strncmp(err.text, want, strlen(bad[i].say)) == 0, "%s", err.text);
        cr_expect(strstr(err.text, "10.1.0.1 (va)") && strstr(err.text, "fd00:2::1 (vb)"), "%s", err.text);
        cr_expect(strstr(err.text, "(lo)") == NULL, "%s", err.text);
    }
}

Test(addrs, loopback_alone_is_an_error_that_says_so)
{
    struct err err = {0};
    char **v = NULL;

    own_network();
    cr_expect_eq(addrs_to_give(NULL, NULL, &v, &err), -EINVAL);
    cr_expect(strstr(err.text, "no address that other hosts can reach; it has: 127.0.0.1 (lo)"), "%s", err.text);
    cr_expect(v == NULL);
}

/* A DNS server that never answers: a neighbour that is not there. */
Test(addrs, names_that_do_not_resolve_cost_two_seconds_at_most)
{
    char text[40][16], *names[40], path[] = "/tmp/test_addrs.XXXXXX", **v = NULL;
    struct timespec a, b;

    two_networks();
    int fd = mkstemp(path);
    cr_assert(fd >= 0 && dprintf(fd, "nameserver 10.1.0.77\noptions timeout:30 attempts:5\n") > 0);
    close(fd);
    int mounted =
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) | mount(path, "/etc/resolv.conf", NULL, MS_BIND, NULL);
    unlink(path);
    if (mounted != 0)
        cr_skip_test("needs to put a file over /etc/resolv.conf in a namespace of its own");
    for (size_t i = 0; i < 40; i++) {
        snprintf(text[i], sizeof(text[i]), "no-such-%zu.x", i);
        names[i] = text[i];
    }
    memcpy(text[35], "10.2.0.9", 9); /* 35 = 14 * 40 / 16: one of the sixteen that are asked */
    struct hostlist *hl = hosts_of(names, 40);
    clock_gettime(CLOCK_MONOTONIC, &a);
    cr_expect_eq(addrs_to_give(NULL, hl, &v, NULL), 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    cr_expect_lt(b.tv_sec - a.tv_sec, 5);
    cr_assert(v != NULL);
    cr_expect_str_eq(v[0], "10.2.0.1");
    hostlist_free(hl);
    strv_free(v);
}

Test(addrs, this_machine)
{
    own_network();
    ip("addr add 10.9.0.1/24 dev lo");
    cr_assert_eq(sethostname("hosta.bogus", 11), 0);
    cr_expect(addrs_is_self("hosta.bogus"));
    cr_expect(addrs_is_self("HOSTA"));
    cr_expect(addrs_is_self("me@hosta"));
    cr_expect_not(addrs_is_self("hosta.other"));
    cr_expect_not(addrs_is_self("host"));
    cr_expect_not(addrs_is_self("hostab"));
    cr_expect_not(addrs_is_self(""));
    cr_expect(addrs_is_self("localhost"));
    cr_expect(addrs_is_self("127.0.0.1"));
    cr_expect(addrs_is_self("127.9.9.9"));
    cr_expect(addrs_is_self("::1"));
    cr_expect(addrs_is_self("u@[::1]"));
    cr_expect(addrs_is_self("10.9.0.1"));
    cr_expect_not(addrs_is_self("10.9.0.2"));
    cr_expect_str_eq(addrs_interface_of("10.9.0.1"), "lo");
    cr_expect_str_eq(addrs_interface_of("10.9.0.2"), "?");
    cr_expect_str_eq(addrs_interface_of("junk"), "?");
}

/* The full name of a machine whose host name is short: by the domain that short names get, or by /etc/hosts. */
Test(addrs, full_name_of_a_short_host_name)
{
    own_network();
    cr_assert_eq(sethostname("hosta", 5), 0);
    setenv("LOCALDOMAIN", "cluster.example sub.example", 1);
    cr_expect(addrs_is_self("hosta"));
    cr_expect(addrs_is_self("hosta.cluster.example"));
    cr_expect(addrs_is_self("hosta.sub.example"));
    cr_expect_not(addrs_is_self("hosta.elsewhere.example"));
    cr_expect_not(addrs_is_self("hostb.cluster.example"));
}

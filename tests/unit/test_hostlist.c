/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include "common/hostlist.h"
#include "common/limits.h"
#include "common/util.h"

/* Names and slots as "a,b:2". */
static char *flat(const struct hostlist *hl)
{
    static struct buf b;

    b.len = 0;
    for (size_t i = 0; i < hostlist_count(hl); i++) {
        struct host h = hostlist_get(hl, i);

        buf_printf(&b, "%s%s", i > 0 ? "," : "", h.name);
        if (h.slots > 0)
            buf_printf(&b, ":%u", h.slots);
    }
    buf_str(&b);
    return b.p;
}

static const struct {
    const char *in, *out;
} good[] = {
    {"a", "a"},
    {"f[0-2],bar", "f0,f1,f2,bar"},
    {"f[005,4]", "f005,f4"},
    {"f[08-11]", "f08,f09,f10,f11"},
    {"f[9-11]", "f9,f10,f11"},
    {"f[9-010]", "f9,f10"},
    {"f[099-101]", "f099,f100,f101"},
    {"f[1-3,1-2]", "f1,f2,f3,f1,f2"},
    {"h,h,h", "h,h,h"},
    {"b2,b1,b2", "b2,b1,b2"},
    {"a[1-2]b[1-2]", "a1b1,a1b2,a2b1,a2b2"},
    {"a[1-2]c[1-2]d[1-2]", "a1c1d1,a1c1d2,a1c2d1,a1c2d2,a2c1d1,a2c1d2,a2c2d1,a2c2d2"},
    {"a[1-2][3-4]", "a13,a14,a23,a24"},
    {"a-[1-2]", "a-1,a-2"},
    {"f[1-2]-ib.x.example", "f1-ib.x.example,f2-ib.x.example"},
    {"[1-3]", "1,2,3"},
    {"0,7up,n,a-1-b", "0,7up,n,a-1-b"},
    {"w.1.example,w.2.example", "w.1.example,w.2.example"},
    {"10.0.0.[1-2]", "10.0.0.1,10.0.0.2"},
    {" a  b\tc , d ", "a,b,c,d"},
    {"a\nb\r\n", "a,b"},
    {"u@h[1-2]", "u@h1,u@h2"},
    {"h:4", "h:4"},
    {"u@f[1-2]:16,g", "u@f1:16,u@f2:16,g"},
    {"h:1024", "h:1024"},
    {"fd00::2", "fd00::2"},
    {"[fd00::2]", "fd00::2"},
    {"[fd00::2]:3,::1", "fd00::2:3,::1"},
    {"u@[fd00::2],u@fd00::3", "u@fd00::2,u@fd00::3"},
    {"[fe80::1%eth0]", "fe80::1%eth0"},
    {"f[999999999999999999]", "f999999999999999999"},
};

Test(hostlist, expands)
{
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct hostlist *hl = hostlist_new();
        struct err err = {0};
        int rc = hostlist_add(hl, span_of(good[i].in), NULL, NULL, &err);

        cr_expect_eq(rc, 0, "'%s': %s", good[i].in, err.text);
        cr_expect_str_eq(flat(hl), good[i].out, "'%s' gave %s", good[i].in, flat(hl));
        hostlist_free(hl);
    }
}

static const struct {
    const char *in;
    int rc;
    size_t position;
    const char *says;
} bad[] = {
    {"", -EINVAL, 1, "empty"},
    {" ", -EINVAL, 1, "empty"},
    {"f[1-]", -EINVAL, 5, "number is missing"},
    {"f[-1]", -EINVAL, 3, "number is missing"},
    {"f[]", -EINVAL, 3, "empty"},
    {"f[3-1]", -EINVAL, 5, "backwards"},
    {"f[1", -EINVAL, 2, "without ']'"},
    {"g,f[1", -EINVAL, 4, "without ']'"},
    {"f1]", -EINVAL, 3, "without '['"},
    {"f[1]]", -EINVAL, 5, "without '['"},
    {"f[[1]]", -EINVAL, 3, "number is missing"},
    {"f[ 1]", -EINVAL, 3, "number is missing"},
    {"f[1 ]", -EINVAL, 4, "only digits"},
    {"f[1, 2]", -EINVAL, 5, "number is missing"},
    {"f[+1]", -EINVAL, 3, "number is missing"},
    {"f[1-2-3]", -EINVAL, 6, "only digits"},
    {"f[1,]", -EINVAL, 5, "number is missing"},
    {"f[a]", -EINVAL, 3, "number is missing"},
    {"f[0-4:2]", -EINVAL, 6, "only digits"},
    {"a[fd00::1]", -EINVAL, 3, "number is missing"},
    {"a,,b", -EINVAL, 3, "before this comma"},
    {",a", -EINVAL, 1, "before this comma"},
    {"a,", -EINVAL, 2, "after the last comma"},
    {"a , ", -EINVAL, 3, "after the last comma"},
    {"-x", -EINVAL, 1, "begin with '-'"},
    {"a,-oProxyCommand", -EINVAL, 3, "begin with '-'"},
    {"-[1-2]", -EINVAL, 1, "begin with '-'"},
    {"u@-x", -EINVAL, 3, "begin with '-'"},
    {"-u@x", -EINVAL, 1, "begin with '-'"},
    {"-host:a,-host:b", -EINVAL, 1, "begin with '-'"},
    {"..", -EINVAL, 1, "begin with '.'"},
    {"@h", -EINVAL, 1, "user's name is missing"},
    {"u@", -EINVAL, 3, "host name is missing"},
    {"a@b@c", -EINVAL, 4, "letters"},
    {"u$@h", -EINVAL, 2, "user's name has letters"},
    {":4", -EINVAL, 1, "host name is missing"},
    {"a/b", -EINVAL, 2, "letters"},
    {"a\x01", -EINVAL, 2, "letters"},
    {"h\xc3\xb6st", -EINVAL, 2, "letters"},
    {"a:b", -EINVAL, 3, "number of slots"},
    {"a:", -EINVAL, 3, "number of slots"},
    {"a:0", -EINVAL, 3, "number of slots"},
    {"a:-1", -EINVAL, 3, "number of slots"},
    {"hostb:2222", -EINVAL, 7, "port"},
    {"h:99999999999999999999", -EINVAL, 3, "port"},
    {"[fd00::2]x", -EINVAL, 10, "IPv6"},
    {"[fd00::zz]", -EINVAL, 2, "IPv6"},
    {"[fe80::1%]", -EINVAL, 9, "interface"},
    {"a:b:c", -EINVAL, 1, "IPv6"},
    {"^hosts", -EINVAL, 1, "file"},
    {"f[1-999999999]", -E2BIG, 1, "more than"},
    {"f[0-999999999999999999]", -E2BIG, 1, "more than"},
    {"f[0-999][0-999][0-999][0-999][0-999][0-999][0-999]", -E2BIG, 1, "more than"},
    {"f[1-1048575],g", -E2BIG, 14, "more than"},
    {"f[1000000000000000000]", -EINVAL, 3, "digits"},
    {"[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1]", -E2BIG, 49, "brackets"},
};

Test(hostlist, refuses_with_the_position)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct hostlist *hl = hostlist_new();
        struct err err = {0};
        char position[40];

        hostlist_add_host(hl, span_of("kept"), 0);
        snprintf(position, sizeof(position), "position %zu:", bad[i].position);
        cr_expect_eq(hostlist_add(hl, span_of(bad[i].in), NULL, NULL, &err), bad[i].rc, "'%s'", bad[i].in);
        cr_expect(strstr(err.text, position) && strstr(err.text, bad[i].says), "'%s' said: %s", bad[i].in, err.text);
        cr_expect_str_eq(flat(hl), "kept", "'%s' left %s", bad[i].in, flat(hl));
        hostlist_free(hl);
    }
}

Test(hostlist, long_text_is_quoted_in_part)
{
    struct hostlist *hl = hostlist_new();
    struct err err = {0};
    char text[2000];

    memset(text, 'a', sizeof(text));
    memcpy(text + 1000, ",b[1-],", 7);
    for (size_t i = 100; i < 2000; i += 100)
        text[i] = ',';
    cr_expect_eq(hostlist_add(hl, (struct span){text, sizeof(text)}, NULL, NULL, &err), -EINVAL);
    cr_expect(strstr(err.text, "b[1-],aaa") && strstr(err.text, "...") && strlen(err.text) < 300, "%s", err.text);
    hostlist_free(hl);
}

Test(hostlist, longest_name)
{
    struct hostlist *hl = hostlist_new();
    char text[300];

    memset(text, 'a', sizeof(text));
    memcpy(text + HOST_NAME_MAX_LEN - 2, "[8-10]", 6);
    cr_expect_eq(hostlist_add(hl, (struct span){text, HOST_NAME_MAX_LEN + 4}, NULL, NULL, NULL), 0);
    cr_expect_eq(strlen(hostlist_get(hl, 2).name), HOST_NAME_MAX_LEN);
    memcpy(text + HOST_NAME_MAX_LEN - 2, "a[8-10]", 7);
    cr_expect_eq(hostlist_add(hl, (struct span){text, HOST_NAME_MAX_LEN + 5}, NULL, NULL, NULL), -EINVAL);
    cr_expect_eq(hostlist_add(hl, (struct span){text, HOST_NAME_MAX_LEN - 5}, NULL, NULL, NULL), 0);
    hostlist_free(hl);
}

static int add_two(struct hostlist *hl, const char *path, void *arg, struct err *err)
{
    int *calls = arg;

    ++*calls;
    if (strcmp(path, "bad") == 0) {
        hostlist_add_host(hl, span_of("half"), 0);
        return err_set(err, -ENOENT, "%s: no such file", path);
    }
    return hostlist_add(hl, span_of("x1 x2"), NULL, NULL, err);
}

Test(hostlist, files_are_read_where_they_are_named)
{
    struct hostlist *hl = hostlist_new();
    struct err err = {0};
    int calls = 0;

    cr_expect_eq(hostlist_add(hl, span_of("a,^/etc/h[1],b"), add_two, &calls, &err), 0, "%s", err.text);
    cr_expect_str_eq(flat(hl), "a,x1,x2,b");
    cr_expect_eq(hostlist_add(hl, span_of("c,^bad"), add_two, &calls, &err), -ENOENT);
    cr_expect_str_eq(err.text, "bad: no such file");
    cr_expect_str_eq(flat(hl), "a,x1,x2,b");
    cr_expect_eq(hostlist_add(hl, span_of("^"), add_two, &calls, &err), -EINVAL);
    cr_expect_eq(calls, 2);
    hostlist_free(hl);
}

static const struct {
    const char *in;
    int rc;
    const char *out;
} lines[] = {
    {"ha", 0, "ha"},
    {"", 0, ""},
    {" \t", 0, ""},
    {"\r", 0, ""},
    {"# x[1", 0, ""},
    {"  # x", 0, ""},
    {"ha # the first", 0, "ha"},
    {"ha#x", 0, "ha"},
    {"  ha  \r", 0, "ha"},
    {"ha:3", 0, "ha:3"},
    {"ha slots=3", 0, "ha:3"},
    {"ha\t  slots=3 \r", 0, "ha:3"},
    {"h[1-2] slots=2", 0, "h1:2,h2:2"},
    {"h[1-2],g", 0, "h1,h2,g"},
    {"[fd00::1] slots=2", 0, "fd00::1:2"},
    {"ha hb", -EINVAL, "line 7: 'ha hb', position 4: only 'slots=N'"},
    {"ha slots=", -EINVAL, "line 7: 'ha slots=', position 10: a number of slots"},
    {"ha slots=0", -EINVAL, "position 10"},
    {"ha slots=2000", -EINVAL, "1 to 1024"},
    {"ha slots=2 x", -EINVAL, "line 7: 'ha slots=2 x', position 12: only 'slots=N'"},
    {"ha slots=2 \t max_slots=4", -EINVAL, "position 14: only 'slots=N'"},
    {"ha max_slots=4 slots=2", -EINVAL, "position 4: only 'slots=N'"},
    {"ha max_slots=2", -EINVAL, "only 'slots=N'"},
    {"ha:3 slots=3", -EINVAL, "twice"},
    {"  x[1", -EINVAL, "line 7: 'x[1', position 2"},
    {"^other", -EINVAL, "file"},
    {"slots=3", -EINVAL, "letters"},
};

Test(hostlist, host_file_lines)
{
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        struct hostlist *hl = hostlist_new();
        struct err err = {0};
        int rc = hostlist_add_line(hl, span_of(lines[i].in), 7, &err);

        cr_expect_eq(rc, lines[i].rc, "'%s': rc %d %s", lines[i].in, rc, err.text);
        if (rc == 0)
            cr_expect_str_eq(flat(hl), lines[i].out, "'%s' gave %s", lines[i].in, flat(hl));
        else
            cr_expect(strstr(err.text, lines[i].out), "'%s' said: %s", lines[i].in, err.text);
        cr_expect(rc == 0 || hostlist_count(hl) == 0);
        hostlist_free(hl);
    }
}

Test(hostlist, single_hosts)
{
    struct hostlist *hl = hostlist_new();

    cr_expect_eq(hostlist_add_host(hl, span_of("a"), 3), 0);
    cr_expect_eq(hostlist_add_host(hl, span_of("[::1]"), 0), 0);
    cr_expect_eq(hostlist_add_host(hl, span_of("a:3"), 0), -EINVAL);
    cr_expect_eq(hostlist_add_host(hl, span_of("a[1-2]"), 0), -EINVAL);
    cr_expect_eq(hostlist_add_host(hl, span_of("a b"), 0), -EINVAL);
    cr_expect_eq(hostlist_add_host(hl, span_of("-a"), 0), -EINVAL);
    cr_expect_eq(hostlist_add_host(hl, SPAN_NONE, 0), -EINVAL);
    cr_expect_eq(hostlist_add_host(hl, span_of("a"), SLOTS_MAX + 1), -EINVAL);
    cr_expect_str_eq(flat(hl), "a:3,::1");
    hostlist_free(hl);
}

Test(hostlist, exclude_and_truncate)
{
    struct hostlist *hl = hostlist_new(), *gone = hostlist_new();

    hostlist_add(hl, span_of("a[1-4],u@a2,v@a3,b,a1"), NULL, NULL, NULL);
    hostlist_add(gone, span_of("a[1-2],u@a3,zz"), NULL, NULL, NULL);
    cr_expect_eq(hostlist_exclude(hl, gone), 4);
    cr_expect_str_eq(flat(hl), "a3,a4,v@a3,b");
    hostlist_truncate(hl, 2);
    hostlist_truncate(hl, 5);
    cr_expect_str_eq(flat(hl), "a3,a4");
    hostlist_free(hl);
    hostlist_free(gone);
}

static const struct {
    const char *in, *out;
} folds[] = {
    {"a", "a"},
    {"a1", "a1"},
    {"foo[0-12],bar", "foo[0-12],bar"},
    {"f[005,4]", "f[005,4]"},
    {"f[08-11]", "f[08-11]"},
    {"f[099-101]", "f[099-101]"},
    {"f1,f01", "f[1,01]"},
    {"f3,f1,f2", "f[3,1-2]"},
    {"h1,h1,h1", "h1,h1,h1"},
    {"h[1-2,2-3]", "h[1-2,2-3]"},
    {"a[1-2]b[1-2]", "a1b[1-2],a2b[1-2]"},
    {"f[1-2]-ib", "f[1-2]-ib"},
    {"a1x,a2y", "a1x,a2y"},
    {"a1b1,a2b2", "a1b1,a2b2"},
    {"[0-3]", "[0-3]"},
    {"10.0.0.[1-9]", "10.0.0.[1-9]"},
    {"u1@h,u2@h", "u1@h,u2@h"},
    {"u@h[1-2],h3", "u@h[1-2],h3"},
    {"a,a1,a2", "a,a[1-2]"},
    {"fd00::1,fd00::2", "fd00::1,fd00::2"},
    {"h[9999999999999999999]", NULL},
    {"h99999999999999999998,h99999999999999999999", "h99999999999999999998,h99999999999999999999"},
    {"h:4,h2:3,h3", "h,h[2-3]"},
};

Test(hostlist, folds)
{
    for (size_t i = 0; i < ARRAY_SIZE(folds); i++) {
        struct hostlist *hl = hostlist_new();
        struct buf b = {0};

        if (hostlist_add(hl, span_of(folds[i].in), NULL, NULL, NULL) < 0) {
            cr_expect_null(folds[i].out, "'%s'", folds[i].in);
        } else {
            cr_expect_eq(hostlist_fold(hl, false, &b), 0);
            cr_expect_str_eq(buf_str(&b), folds[i].out, "'%s' folded to %s", folds[i].in, buf_str(&b));
        }
        buf_done(&b);
        hostlist_free(hl);
    }
}

Test(hostlist, fold_puts_ipv6_in_brackets)
{
    struct hostlist *hl = hostlist_new();
    struct buf b = {0};

    hostlist_add(hl, span_of("u@fd00::1 a1 a2 ::1"), NULL, NULL, NULL);
    cr_expect_eq(hostlist_fold(hl, true, &b), 0);
    cr_expect_str_eq(buf_str(&b), "u@[fd00::1],a[1-2],[::1]");
    buf_done(&b);
    hostlist_free(hl);
}

static void expect_same(const struct hostlist *a, const struct hostlist *b)
{
    cr_assert_eq(hostlist_count(a), hostlist_count(b));
    for (size_t i = 0; i < hostlist_count(a); i++)
        cr_assert_str_eq(hostlist_get(a, i).name, hostlist_get(b, i).name);
}

/* pdsh takes at most 16,384 hosts in a range and about 10,000 ranges in a pair of brackets. */
Test(hostlist, folds_to_what_pdsh_takes)
{
    static const char *const texts[] = {"f[0-40000]", "f[0-39999]x[1-2]"};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct hostlist *hl = hostlist_new(), *again = hostlist_new();
        struct buf b = {0};

        hostlist_add(hl, span_of(texts[i]), NULL, NULL, NULL);
        cr_expect_eq(hostlist_fold(hl, false, &b), 0);
        cr_expect(i > 0 || strcmp(buf_str(&b), "f[0-16383,16384-32767,32768-40000]") == 0, "%s", buf_str(&b));
        cr_expect_eq(hostlist_add(again, buf_span(&b), NULL, NULL, NULL), 0);
        expect_same(hl, again);
        buf_done(&b);
        hostlist_free(hl);
        hostlist_free(again);
    }
}

Test(hostlist, every_other_node_three_times)
{
    struct hostlist *hl = hostlist_new(), *again = hostlist_new();
    struct buf b = {0};

    for (unsigned i = 1; i < 60000; i += 2) {
        char text[60];

        snprintf(text, sizeof(text), "h%u,h%u,h%u", i / 3, i, i);
        cr_assert_eq(hostlist_add(hl, span_of(text), NULL, NULL, NULL), 0);
    }
    for (unsigned i = 0; i < 60000; i += 2) {
        char text[20];

        snprintf(text, sizeof(text), "h%u", i);
        cr_assert_eq(hostlist_add(hl, span_of(text), NULL, NULL, NULL), 0);
    }
    cr_expect_eq(hostlist_fold(hl, false, &b), 0);
    cr_expect_eq(hostlist_add(again, buf_span(&b), NULL, NULL, NULL), 0);
    expect_same(hl, again);
    buf_done(&b);
    hostlist_free(hl);
    hostlist_free(again);
}

Test(hostlist, a_full_list_holds_and_folds)
{
    struct hostlist *hl = hostlist_new();
    struct buf b = {0};

    cr_expect_eq(hostlist_add(hl, span_of("n[0-1048575]"), NULL, NULL, NULL), 0);
    cr_expect_eq(hostlist_count(hl), HOSTS_MAX);
    cr_expect_str_eq(hostlist_get(hl, HOSTS_MAX - 1).name, "n1048575");
    cr_expect_eq(hostlist_add_host(hl, span_of("x"), 0), -E2BIG);
    cr_expect_eq(hostlist_fold(hl, false, &b), 0);
    buf_done(&b);
    hostlist_free(hl);
}

Test(hostlist, cut_for_messages)
{
    static const char *const names[] = {"f1", "f3", "f5", "f7", "g"};
    struct buf b = {0};

    cr_expect_eq(hostnames_fold(names, 5, 0, &b), 0);
    cr_expect_str_eq(buf_str(&b), "f[1,3,5,7],g");
    b.len = 0;
    cr_expect_eq(hostnames_fold(names, 5, 8, &b), 0);
    cr_expect_str_eq(buf_str(&b), "f[1,3],... (5 hosts)");
    b.len = 0;
    cr_expect_eq(hostnames_fold(names, 5, 1, &b), 0);
    cr_expect_str_eq(buf_str(&b), "f[1],... (5 hosts)");
    b.len = 0;
    cr_expect_eq(hostnames_fold(names, 0, 1, &b), 0);
    cr_expect_eq(b.len, 0);
    buf_done(&b);
}

Test(hostlist, fold_that_does_not_fit_adds_nothing)
{
    static const char *const names[] = {"f1", "f2", "ggggggggg"};
    struct buf b;

    buf_init(&b, 12);
    buf_add_str(&b, "x");
    cr_expect_eq(hostnames_fold(names, 3, 0, &b), -E2BIG);
    cr_expect_str_eq(buf_str(&b), "x");
    buf_done(&b);
}

Test(hostlist, numbers)
{
    static const uint32_t v[] = {0, 1, 2, 3, 7, 9, 10, UINT32_MAX};
    struct buf b = {0};

    cr_expect_eq(numbers_fold(v, ARRAY_SIZE(v), 0, &b), 0);
    cr_expect_str_eq(buf_str(&b), "0-3,7,9-10,4294967295");
    b.len = 0;
    cr_expect_eq(numbers_fold(v, ARRAY_SIZE(v), 6, &b), 0);
    cr_expect_str_eq(buf_str(&b), "0-3,7,... (8 in all)");
    b.len = 0;
    cr_expect_eq(numbers_fold(v, 1, 0, &b), 0);
    cr_expect_str_eq(buf_str(&b), "0");
    buf_done(&b);
}

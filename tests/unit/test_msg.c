/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "common/limits.h"
#include "common/msg.h"
#include "common/strv.h"
#include "common/util.h"

static struct msg_in *read_back(struct msg_out *w)
{
    struct msg_in *m = NULL;
    struct err err = {0};
    struct span body;

    cr_assert_eq(msg_out_done(w, &body), 0);
    cr_assert_eq(msg_in_new(&m, body, &err), 0, "%s", err.text);
    return m;
}

Test(msg, numbers_come_back)
{
    static const uint64_t u[] = {0, 127, 128, 65536, UINT32_MAX, UINT64_MAX};
    static const int64_t s[] = {0, -1, -33, INT32_MIN, INT64_MIN, INT64_MAX};

    for (size_t i = 0; i < ARRAY_SIZE(u); i++) {
        struct msg_out *w = msg_out_new();
        uint64_t gu = 1;
        int64_t gs = 1;
        bool b = false;

        msg_put_u64(w, "u", u[i]);
        msg_put_i64(w, "s", s[i]);
        msg_put_bool(w, "b", true);
        struct msg_in *m = read_back(w);
        cr_expect_eq(msg_get_u64(m, "u", 0, UINT64_MAX, &gu, NULL), 0);
        cr_expect_eq(gu, u[i]);
        cr_expect_eq(msg_get_i64(m, "s", &gs, NULL), 0);
        cr_expect_eq(gs, s[i]);
        cr_expect_eq(msg_get_bool(m, "b", &b, NULL), 0);
        cr_expect(b);
        msg_in_free(m);
        msg_out_free(w);
    }
}

Test(msg, texts_and_bytes_come_back)
{
    struct msg_out *w = msg_out_new();
    struct span s;
    char *text;

    msg_put_str(w, "absent", NULL);
    msg_put_bin(w, "absent", SPAN_NONE);
    msg_put_str(w, "empty", "");
    msg_put_bin(w, "nothing", (struct span){"", 0});
    msg_put_str(w, "not utf-8", "\xff\xfe");
    msg_put_bin(w, "nul", (struct span){"a\0b", 3});
    struct msg_in *m = read_back(w);
    cr_expect_eq(msg_get_bin(m, "absent", &s, NULL), -ENOENT);
    cr_expect_eq(msg_get_bin(m, "nothing", &s, NULL), 0);
    cr_expect(s.p != NULL && s.n == 0);
    cr_expect_eq(msg_get_bin(m, "nul", &s, NULL), 0);
    cr_expect(span_eq(s, (struct span){"a\0b", 3}));
    cr_expect_eq(msg_get_str(m, "nul", &text, NULL), -EPROTO);
    cr_assert_eq(msg_get_str(m, "empty", &text, NULL), 0);
    cr_expect_str_eq(text, "");
    free(text);
    cr_assert_eq(msg_get_str(m, "not utf-8", &text, NULL), 0);
    cr_expect_str_eq(text, "\xff\xfe");
    free(text);
    msg_in_free(m);
    msg_out_free(w);
}

Test(msg, lists_come_back_and_strings_can_be_added_to)
{
    char text[][4] = {"a", "", "c d", "e", "f"}, *v[] = {text[0], text[1], text[2], text[3], text[4]};
    uint32_t n[] = {0, 1, UINT32_MAX}, *got_n;
    struct msg_out *w = msg_out_new();
    size_t count;
    char **got;

    msg_put_strv(w, "v", v, 5);
    msg_put_strv(w, "none", NULL, 0);
    msg_put_u32v(w, "n", n, 3);
    struct msg_in *m = read_back(w);
    cr_assert_eq(msg_get_strv(m, "v", 5, &got, &count, NULL), 0);
    cr_expect_eq(count, 5);
    for (size_t i = 0; i < 5; i++)
        cr_expect_str_eq(got[i], v[i]);
    for (size_t i = 0; i < 20; i++)
        cr_assert_eq(strv_add(&got, "more"), 0);
    cr_expect_eq(strv_count(got), 25);
    strv_free(got);
    cr_assert_eq(msg_get_strv(m, "none", 0, &got, &count, NULL), 0);
    cr_expect(count == 0 && got[0] == NULL);
    strv_free(got);
    cr_expect_eq(msg_get_strv(m, "v", 4, &got, &count, NULL), -EPROTO);
    cr_expect_eq(msg_get_strv(m, "n", 9, &got, &count, NULL), -EPROTO);
    cr_expect_eq(msg_get_u32v(m, "v", 9, &got_n, &count, NULL), -EPROTO);
    cr_assert_eq(msg_get_u32v(m, "n", 3, &got_n, &count, NULL), 0);
    cr_expect(count == 3 && memcmp(got_n, n, sizeof(n)) == 0);
    free(got_n);
    msg_in_free(m);
    msg_out_free(w);
}

Test(msg, wrong_values_are_named_and_change_nothing)
{
    struct msg_out *w = msg_out_new();
    struct err err = {0};
    struct span s = {"old", 3};
    uint64_t u = 7;
    int64_t i = 7;
    bool b = true;

    msg_put_u64(w, "rank", 12);
    msg_put_i64(w, "status", -3);
    msg_put_u64(w, "big", UINT64_MAX);
    struct msg_in *m = read_back(w);
    cr_expect_eq(msg_get_u64(m, "node", 0, 9, &u, &err), -ENOENT);
    cr_expect_str_eq(err.text, "'node' is missing");
    cr_expect_eq(msg_get_u64(m, "rank", 0, 11, &u, &err), -EPROTO);
    cr_expect_str_eq(err.text, "'rank' is 12, not 0 to 11");
    cr_expect_eq(msg_get_u64(m, "rank", 13, 20, &u, NULL), -EPROTO);
    cr_expect_eq(msg_get_u64(m, "status", 0, 9, &u, NULL), -EPROTO);
    cr_expect_eq(msg_get_i64(m, "big", &i, NULL), -EPROTO);
    cr_expect_eq(msg_get_bool(m, "rank", &b, NULL), -EPROTO);
    cr_expect_eq(msg_get_bin(m, "rank", &s, NULL), -EPROTO);
    cr_expect(u == 7 && i == 7 && b && span_is(s, "old"));
    msg_in_free(m);
    msg_out_free(w);
}

static const struct {
    const char *name;
    struct span body;
} bad[] = {
#define BYTES(s)                                                                                                       \
    {                                                                                                                  \
        s, sizeof(s) - 1                                                                                               \
    }
    {"empty", BYTES("")},
    {"no map", BYTES("\x90")},
    {"a number", BYTES("\x01")},
    {"key is a number", BYTES("\x81\x01\x02")},
    {"second key is binary", BYTES("\x82\xa1y\x01\xc4\x01x\x02")},
    {"value missing", BYTES("\x81\xa1x")},
    {"bytes behind", BYTES("\x80\x00")},
    {"two maps", BYTES("\x80\x80")},
    {"reserved code", BYTES("\x81\xa1x\xc1")},
    {"text cut off", BYTES("\x81\xa1x\xa5"
                           "abcd")},
    {"length cut off", BYTES("\x81\xa1x\xdb\xff\xff")},
    {"4 GiB of text", BYTES("\x81\xa1x\xdb\xff\xff\xff\xff")},
    {"4 GiB of binary", BYTES("\x81\xa1x\xc6\xff\xff\xff\xff")},
    {"4 GiB of ext", BYTES("\x81\xa1x\xc9\xff\xff\xff\xff\x01")},
    {"2^32 elements", BYTES("\x81\xa1x\xdd\xff\xff\xff\xff")},
    {"2^32 pairs", BYTES("\xdf\xff\xff\xff\xff")},
    {"2^32 pairs inside", BYTES("\x81\xa1x\xdf\xff\xff\xff\xff")},
    {"nested 9 deep", BYTES("\x81\xa1x\x91\x91\x91\x91\x91\x91\x91\x91\x00")},
};

Test(msg, what_is_refused)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct msg_in *m = NULL;
        struct err err = {0};

        cr_expect_eq(msg_in_new(&m, bad[i].body, &err), -EPROTO, "%s", bad[i].name);
        cr_expect(m == NULL && err.code == -EPROTO, "%s", bad[i].name);
    }
}

Test(msg, unknown_kinds_are_skipped)
{
    static const char all[] = "\xde\x00\x0a"
                              "\xa1"
                              "a\xc0"
                              "\xa1"
                              "b\xca\x01\x02\x03\x04"
                              "\xa1"
                              "c\xcb\x01\x02\x03\x04\x05\x06\x07\x08"
                              "\xa1"
                              "d\xd4\x01\x02"
                              "\xa1"
                              "e\xd8\x01"
                              "0123456789abcdef"
                              "\xa1"
                              "f\xc7\x02\x01xy"
                              "\xa1"
                              "g\x92\x90\x80"
                              "\xa1"
                              "h\x91\x91\x91\x91\x91\x91\x91\x05"
                              "\xa1"
                              "i\xd3\xff\xff\xff\xff\xff\xff\xff\xfe"
                              "\xa1"
                              "z\x05";
    struct err err = {0};
    struct msg_in *m;
    uint64_t z = 0;
    int64_t i = 0;

    cr_assert_eq(msg_in_new(&m, (struct span){all, sizeof(all) - 1}, &err), 0, "%s", err.text);
    cr_expect_eq(msg_get_u64(m, "z", 0, 9, &z, NULL), 0);
    cr_expect_eq(z, 5);
    cr_expect_eq(msg_get_i64(m, "i", &i, NULL), 0);
    cr_expect_eq(i, -2);
    cr_expect_eq(msg_get_u64(m, "b", 0, 9, &z, NULL), -EPROTO);
    msg_in_free(m);
}

Test(msg, every_prefix_of_a_message_is_refused)
{
    char one[] = "one", two[] = "two", *v[] = {one, two};
    struct msg_out *w = msg_out_new();
    struct msg_in *m;
    struct span body;

    msg_put_strv(w, "v", v, 2);
    msg_put_u64(w, "n", 70000);
    cr_assert_eq(msg_out_done(w, &body), 0);
    for (size_t n = 0; n < body.n; n++)
        cr_expect_eq(msg_in_new(&m, (struct span){body.p, n}, NULL), -EPROTO, "%zu bytes", n);
    msg_out_free(w);
}

Test(msg, more_than_a_message_may_hold_is_refused)
{
    struct msg_out *w = msg_out_new();
    char *big = calloc(1, MESSAGE_MAX);
    struct span body;

    msg_put_bin(w, "b", (struct span){big, MESSAGE_MAX});
    cr_expect_eq(msg_out_done(w, &body), -E2BIG);
    msg_put_u64(w, "later", 1);
    cr_expect_eq(msg_out_done(w, &body), -E2BIG);
    free(big);
    msg_out_free(w);
}

Test(msg, names)
{
    cr_expect_str_eq(msg_name(MSG_HELLO), "hello");
    cr_expect_str_eq(msg_name(MSG_NODE_LOST), "node-lost");
    cr_expect_str_eq(msg_name(77777), "type 77777");
}

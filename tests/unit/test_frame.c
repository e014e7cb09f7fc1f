/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "common/frame.h"
#include "common/reasm.h"

static void add(struct buf *b, unsigned type, unsigned flags, const char *body, size_t len)
{
    char head[FRAME_HEADER];

    frame_put_header(head, (uint16_t)type, (uint16_t)flags, (uint32_t)len);
    cr_assert_eq(buf_add(b, head, sizeof(head)), 0);
    cr_assert_eq(buf_add(b, body, len), 0);
}

Test(frame, round_trip_and_every_shorter_prefix_needs_more)
{
    struct buf b = {0};
    struct frame f = {.type = 9};

    add(&b, 0xabcd, FRAME_DATA, "hello", 5);
    cr_expect_eq(memcmp(b.p, "\0\0\0\5\xab\xcd\0\2hello", b.len), 0);
    for (size_t n = 0; n < b.len; n++)
        cr_expect_eq(frame_take((struct span){b.p, n}, 100, &f, NULL), 0, "%zu bytes", n);
    cr_expect_eq(f.type, 9, "outputs are untouched");
    cr_expect_eq(frame_take(buf_span(&b), 5, &f, NULL), 13);
    cr_expect_eq(f.type, 0xabcd);
    cr_expect_eq(f.flags, FRAME_DATA);
    cr_expect(span_is(f.body, "hello"));
    buf_done(&b);
}

Test(frame, long_body_and_unknown_flags_are_refused_from_the_header)
{
    char head[FRAME_HEADER];
    struct frame f;
    struct err err = {0};

    frame_put_header(head, 1, 0, FRAME_BODY_MAX + 1);
    cr_expect_eq(frame_take((struct span){head, 8}, FRAME_BODY_MAX, &f, &err), -EPROTO);
    cr_expect(strstr(err.text, "65537") != NULL, "%s", err.text);
    frame_put_header(head, 1, 4, 0);
    cr_expect_eq(frame_take((struct span){head, 8}, FRAME_BODY_MAX, &f, &err), -EPROTO);
    cr_expect(strstr(err.text, "0x0004") != NULL, "%s", err.text);
}

Test(reasm, control_stands_inside_a_data_message)
{
    struct reasm r;
    unsigned type = 0;
    struct span body;

    reasm_init(&r, FRAME_BODY_MAX);
    add(&r.bytes, 1, FRAME_DATA | FRAME_MORE, "ab", 2);
    add(&r.bytes, 2, 0, "now", 3);
    add(&r.bytes, 1, FRAME_DATA, "cd", 2);
    cr_assert_eq(reasm_next(&r, &type, &body, NULL), 1);
    cr_expect(type == 2 && span_is(body, "now"));
    cr_assert_eq(reasm_next(&r, &type, &body, NULL), 1);
    cr_expect(type == 1 && span_is(body, "abcd"));
    cr_expect_eq(reasm_next(&r, &type, &body, NULL), 0);
    cr_expect_not(reasm_is_midway(&r));
    reasm_done(&r);
}

Test(reasm, another_type_inside_a_message_is_refused)
{
    struct reasm r;
    unsigned type = 0;
    struct span body;
    struct err err = {0};

    reasm_init(&r, FRAME_BODY_MAX);
    add(&r.bytes, 1, FRAME_MORE, "ab", 2);
    cr_expect_eq(reasm_next(&r, &type, &body, &err), 0);
    cr_expect(reasm_is_midway(&r));
    add(&r.bytes, 2, 0, "cd", 2);
    cr_expect_eq(reasm_next(&r, &type, &body, &err), -EPROTO);
    cr_expect_eq(type, 0);
    reasm_done(&r);
}

Test(reasm, message_over_the_cap_is_refused)
{
    static const char zeros[FRAME_BODY_MAX];
    struct reasm r;
    unsigned type = 0, n = 0;
    struct span body;
    int rc = 0;

    reasm_init(&r, FRAME_BODY_MAX);
    while (rc == 0 && n++ < 2000) {
        add(&r.bytes, 1, FRAME_MORE | FRAME_DATA, zeros, sizeof(zeros));
        rc = reasm_next(&r, &type, &body, NULL);
    }
    cr_expect_eq(rc, -EPROTO);
    cr_expect_eq(n, MESSAGE_MAX / FRAME_BODY_MAX + 1);
    reasm_done(&r);
}

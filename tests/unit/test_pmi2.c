/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "common/pmi2.h"
#include "common/util.h"

static const struct {
    const char *in;
    int rc;
    size_t len;
} headers[] = {
    {"    23", 0, 23},      {"23    ", 0, 23},       {"  23  ", 0, 23},      {"000023", 0, 23},
    {"999999", 0, 999999},  {"     1", 0, 1},        {"     0", -EPROTO, 0}, {"      ", -EPROTO, 0},
    {"cmd=in", -EPROTO, 0}, {"  2 3 ", -EPROTO, 0},  {"    -1", -EPROTO, 0}, {"   +23", -EPROTO, 0},
    {"0x0010", -EPROTO, 0}, {"\t   23", -EPROTO, 0},
};

Test(pmi2, headers)
{
    for (size_t i = 0; i < ARRAY_SIZE(headers); i++) {
        size_t len = 0;

        cr_expect_eq(pmi2_header(headers[i].in, &len), headers[i].rc, "'%s'", headers[i].in);
        cr_expect_eq(len, headers[i].len, "'%s': %zu", headers[i].in, len);
    }
}

static const struct {
    const char *in, *key, *want; /* want NULL: none */
} gets[] = {
    {"cmd=kvs-put;key=a;value=b;", "key", "a"},
    {"cmd=kvs-put;key=a;value=b;", "value", "b"},
    {"cmd=kvs-put;key=a;value=semi;;colon=x y;", "value", "semi;colon=x y"},
    {"cmd=kvs-put;key=a;value=;;;;x;;;", "value", ";;x;"},
    {"cmd=kvs-put;value=;;key=a;;key=b;", "value", ";key=a;key=b"},
    {"cmd=kvs-put;value=;;key=a;;key=b;", "key", NULL},
    {"cmd=kvs-put;key=;value=1\n2;", "key", ""},
    {"cmd=kvs-put;key=;value=1\n2;", "value", "1\n2"},
    {"cmd=kvs-put;xkey=1;keyx=2;key=3;key=4;", "key", "3"},
    {"cmd=finalize;flag;key=1;", "flag", NULL},
    {"cmd=finalize;flag;key=1;", "key", "1"},
    {"cmd=a;key=1", "key", NULL},
};

Test(pmi2, values_are_found_and_doubled_semicolons_made_single)
{
    for (size_t i = 0; i < ARRAY_SIZE(gets); i++) {
        struct buf room = {0};
        struct span raw = pmi2_get(span_of(gets[i].in), gets[i].key), plain;

        if (gets[i].want == NULL) {
            cr_expect_null(raw.p, "%s", gets[i].in);
            continue;
        }
        cr_expect_eq(pmi2_plain(raw, &room, &plain), 0);
        cr_expect(span_is(plain, gets[i].want), "%s: '%.*s'", gets[i].in, SPAN_FMT(plain));
        buf_done(&room);
    }
}

static const struct {
    const char *in;
    size_t len; /* 0: as text */
    const char *name;
} checks[] = {
    {"cmd=job-getid;", 0, "job-getid"},
    {"cmd=job-getid;thrid=0x7ffc12d00ff0;", 0, "job-getid"},
    {"cmd=x;flag;a=b=c;", 0, "x"},
    {"cmd=x;a=;", 0, "x"},
    {"", 0, NULL},
    {";", 0, NULL},
    {"cmd;", 0, NULL},
    {"cmd=;", 0, NULL},
    {"cmd=a b;", 0, NULL},
    {"cmd=a=b;", 0, NULL},
    {"cmd=a;;b;", 0, NULL},
    {"cmd=a", 0, NULL},
    {"cmd=a;;", 0, NULL},
    {"key=a;cmd=b;", 0, NULL},
    {"cmd=a;=b;", 0, NULL},
    {"cmd=a;b=c", 0, NULL},
    {"cmd=a;b=c;;", 0, NULL},
    {"cmd=a;b=\0;", 10, NULL},
    {"cmd=a;\0\0\0\0\0\0", 12, NULL},
};

Test(pmi2, a_payload_is_whole_fields_that_begin_with_a_command)
{
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        struct span in = {checks[i].in, checks[i].len ? checks[i].len : strlen(checks[i].in)}, name;
        int rc = pmi2_check(in, &name);

        cr_expect_eq(rc, checks[i].name == NULL ? -EPROTO : 0, "%s: %d", checks[i].in, rc);
        cr_expect(rc < 0 || span_is(name, checks[i].name), "%s", checks[i].in);
    }
}

Test(pmi2, a_frame_is_aligned_right_and_doubles_semicolons)
{
    struct buf out = {0};

    cr_expect_eq(pmi2_begin(&out, span_of("kvs-get-response")), 0);
    cr_expect_eq(pmi2_add_raw(&out, "thrid", span_of("a;;b")), 0);
    cr_expect_eq(pmi2_add_str(&out, "found", "TRUE"), 0);
    cr_expect_eq(pmi2_add(&out, "value", span_of(";a;;b c=d;")), 0);
    cr_expect_eq(pmi2_add(&out, "empty", SPAN_NONE), 0);
    cr_expect_eq(pmi2_add_int(&out, "rc", -1), 0);
    cr_expect_eq(pmi2_end(&out), 0);
    cr_expect_str_eq(buf_str(&out),
                     "    77cmd=kvs-get-response;thrid=a;;b;found=TRUE;value=;;a;;;;b c=d;;;empty=;rc=-1;");
    /* The next frame takes its place. */
    cr_expect_eq(pmi2_begin(&out, span_of("finalize")), 0);
    cr_expect_eq(pmi2_end(&out), 0);
    cr_expect_str_eq(buf_str(&out), "    13cmd=finalize;");
    buf_done(&out);
}

Test(pmi2, a_payload_that_six_digits_cannot_count_is_refused)
{
    static char big[PMI2_PAYLOAD_MAX];
    struct buf out = {0};
    size_t len;

    memset(big, 'a', sizeof(big));
    pmi2_begin(&out, span_of("x"));
    pmi2_add(&out, "v", (struct span){big, PMI2_PAYLOAD_MAX - 9});
    cr_expect_eq(pmi2_end(&out), 0);
    cr_expect_eq(pmi2_header(out.p, &len), 0);
    cr_expect_eq(len, PMI2_PAYLOAD_MAX);
    pmi2_begin(&out, span_of("x"));
    pmi2_add(&out, "v", (struct span){big, PMI2_PAYLOAD_MAX - 8});
    cr_expect_eq(pmi2_end(&out), -E2BIG);
    buf_done(&out);
}

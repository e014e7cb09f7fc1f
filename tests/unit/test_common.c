/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/num.h"
#include "common/util.h"

static const struct {
    const char *in;
    int rc;
    uint64_t ms;
} durations[] = {
    {"250ms", 0, 250},  {"10s", 0, 10000},
    {"5m", 0, 300000},  {"1h", 0, 3600000},
    {"7", 0, 7000},     {"1.5s", 0, 1500},
    {"0.25", 0, 250},   {"", -EINVAL, 0},
    {"-1", -EINVAL, 0}, {"1 s", -EINVAL, 0},
    {"1d", -EINVAL, 0}, {"s", -EINVAL, 0},
    {"1.", -EINVAL, 0}, {"99999999999999999999s", -ERANGE, 0},
};

Test(num, durations)
{
    for (size_t i = 0; i < ARRAY_SIZE(durations); i++) {
        uint64_t ms = 0;
        int rc = num_duration_ms(span_of(durations[i].in), &ms);

        cr_expect_eq(rc, durations[i].rc, "'%s': rc %d", durations[i].in, rc);
        cr_expect_eq(ms, durations[i].ms, "'%s': %llu ms", durations[i].in, (unsigned long long)ms);
    }
}

Test(num, integers_are_strict)
{
    uint64_t u = 7;
    int64_t s = 7;

    cr_expect_eq(num_u64(span_of("18446744073709551615"), 0, UINT64_MAX, &u), 0);
    cr_expect_eq(u, UINT64_MAX);
    cr_expect_eq(num_u64(span_of("18446744073709551616"), 0, UINT64_MAX, &u), -ERANGE);
    cr_expect_eq(num_u64(span_of(" 1"), 0, 10, &u), -EINVAL);
    cr_expect_eq(num_u64(span_of("+1"), 0, 10, &u), -EINVAL);
    cr_expect_eq(num_u64(span_of("0x1"), 0, 10, &u), -EINVAL);
    cr_expect_eq(num_u64(span_of("11"), 0, 10, &u), -ERANGE);
    cr_expect_eq(num_i64(span_of("-5"), -10, 10, &s), 0);
    cr_expect_eq(s, -5);
    cr_expect_eq(num_i64(span_of("--5"), -10, 10, &s), -EINVAL);
}

Test(buf, cap_holds_and_failure_changes_nothing)
{
    struct buf b;

    buf_init(&b, 8);
    cr_expect_eq(buf_add_str(&b, "12345678"), 0);
    cr_expect_eq(buf_add_str(&b, "9"), -E2BIG);
    cr_expect_str_eq(buf_str(&b), "12345678");
    buf_drop(&b, 6);
    cr_expect_eq(buf_printf(&b, "%d", 123456), 0);
    cr_expect_str_eq(buf_str(&b), "78123456");
    buf_done(&b);
}

Test(buf, escaped)
{
    struct buf b;

    buf_init(&b, 0);
    cr_expect_eq(buf_add_escaped(&b, (struct span){"a\n\x01\xff z", 6}), 0);
    cr_expect_str_eq(buf_str(&b), "a\\n\\x01\\xff z");
    buf_done(&b);
}

Test(err, prefix_keeps_code_and_cut_is_marked)
{
    struct err e = {0};
    char big[1000];

    cr_expect_eq(err_set(&e, -EINVAL, "bad '%s'", "x"), -EINVAL);
    cr_expect_eq(err_prefix(&e, "file %d", 3), -EINVAL);
    cr_expect_str_eq(e.text, "file 3: bad 'x'");
    memset(big, 'a', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    err_set(&e, -EINVAL, "%s", big);
    cr_expect_eq(e.text[strlen(e.text) - 1], '+');
}

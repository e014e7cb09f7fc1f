/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_num.c - any text as a number, a time, a range of ports; what is accepted means what the C library reads */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "common/num.h"
#include "conf/set.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_unsigned(const char *copy, struct span text)
{
    uint64_t v = 77;

    if (num_u64(text, 0, UINT64_MAX, &v) == 0)
        assert(strlen(copy) == text.n && strtoull(copy, NULL, 10) == v);
    else
        assert(v == 77);
    v = 77;
    assert(num_u64(text, 3, 5, &v) < 0 ? v == 77 : v >= 3 && v <= 5);
}

static void check_signed(const char *copy, struct span text)
{
    int64_t v = 77;

    if (num_i64(text, INT64_MIN, INT64_MAX, &v) == 0)
        assert(strlen(copy) == text.n && strtoll(copy, NULL, 10) == v);
    else
        assert(v == 77);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    char *copy = strndup(size ? text.p : "", size);
    struct conf_ports ports = {0};
    uint64_t ms = 77;

    if (copy == NULL)
        return 0;
    check_unsigned(copy, text);
    check_signed(copy, text);
    assert(num_duration_ms(text, &ms) < 0 ? ms == 77 : ms <= 1000000000000u);
    assert(ports_parse(text, &ports) < 0 ? !ports.given : ports.given && ports.low >= 1 && ports.low <= ports.high);
    free(copy);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/num.h"

#include <errno.h>
#include "common/util.h"

#define DURATION_MS_MAX 1000000000000ull

int num_u64(struct span text, uint64_t min, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;

    if (text.n == 0)
        return -EINVAL;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return -EINVAL;
    for (size_t i = 0; i < text.n; i++) {
        unsigned digit = (unsigned)(text.p[i] - '0');

        if (v > (UINT64_MAX - digit) / 10)
            return -ERANGE;
        v = v * 10 + digit;
    }
    if (v < min || v > max)
        return -ERANGE;
    *out = v;
    return 0;
}

int num_i64(struct span text, int64_t min, int64_t max, int64_t *out)
{
    bool negative = text.n > 0 && text.p[0] == '-';
    uint64_t v;
    int rc;

    if (negative)
        text = (struct span){text.p + 1, text.n - 1};
    rc = num_u64(text, 0, INT64_MAX, &v);
    if (rc < 0)
        return rc;
    int64_t s = negative ? -(int64_t)v : (int64_t)v;
    if (s < min || s > max)
        return -ERANGE;
    *out = s;
    return 0;
}

int num_duration_ms(struct span text, uint64_t *out_ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    uint64_t ms = 0, whole, part = 0, scale = 1;
    size_t i = 0, frac;
    int rc;

    while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9')
        i++;
    rc = num_u64((struct span){text.p, i}, 0, DURATION_MS_MAX, &whole);
    if (rc < 0)
        return rc;
    if (i < text.n && text.p[i] == '.') {
        frac = ++i;
        while (i < text.n && text.p[i] >= '0' && text.p[i] <= '9') {
            scale *= 10;
            if (++i - frac > 9)
                return -EINVAL;
        }
        rc = num_u64((struct span){text.p + frac, i - frac}, 0, UINT64_MAX, &part);
        if (rc < 0)
            return rc;
    }
    for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
        if (!span_is((struct span){text.p + i, text.n - i}, units[u].name))
            continue;
        if (whole > DURATION_MS_MAX / units[u].ms)
            return -ERANGE;
        ms = whole * units[u].ms + part * units[u].ms / scale;
        if (ms > DURATION_MS_MAX)
            return -ERANGE;
        *out_ms = ms;
        return 0;
    }
    return -EINVAL;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/bench_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "common/num.h"
#include "common/util.h"

#define FINE (1u << STATS_FINE)

/* The classes of one power of two stand side by side; below 2 * FINE each number has one of its own. */
static size_t class_of(uint64_t ns)
{
    unsigned shift;

    if (ns < 2 * FINE)
        return (size_t)ns;
    shift = 63u - STATS_FINE - (unsigned)__builtin_clzll(ns);
    return ((size_t)shift << STATS_FINE) + (size_t)(ns >> shift);
}

static uint64_t middle_of(size_t class)
{
    unsigned shift;

    if (class < 2 * FINE)
        return class;
    shift = (unsigned)(class >> STATS_FINE) - 1;
    return ((uint64_t)(class - ((size_t)shift << STATS_FINE)) << shift) + (((uint64_t)1 << shift) - 1) / 2;
}

void stats_add(struct stats *s, uint64_t ns)
{
    if (s->count == 0 || ns < s->min)
        s->min = ns;
    if (ns > s->max)
        s->max = ns;
    s->count++;
    s->sum += ns;
    s->in_class[class_of(ns)]++;
}

/* The least time that `percent` of a hundred do not exceed. */
static uint64_t quantile(const struct stats *s, unsigned percent)
{
    uint64_t wanted = (s->count / 100) * percent + ((s->count % 100) * percent + 99) / 100, seen = 0;
    size_t c = 0;

    if (s->count == 0)
        return 0;
    for (seen = s->in_class[0]; seen < wanted; seen += s->in_class[c])
        c++;
    return MIN(MAX(middle_of(c), s->min), s->max);
}

void stats_sum(const struct stats *s, struct summary *out)
{
    uint64_t mean = s->count > 0 ? s->sum / s->count : 0;

    *out = (struct summary){s->count, s->min, quantile(s, 50), mean, quantile(s, 99), s->max};
}

static int by_median(const void *a, const void *b)
{
    const struct summary *x = a, *y = b;

    return x->median < y->median ? -1 : x->median > y->median;
}

void summary_merge(struct summary *each, size_t n, struct summary *out)
{
    double sum = 0; /* 64 bits do not hold every sum */
    size_t kept = 0;

    *out = (struct summary){0};
    for (size_t i = 0; i < n; i++) {
        struct summary one = each[i];

        if (one.count == 0)
            continue;
        out->min = kept == 0 ? one.min : MIN(out->min, one.min);
        out->p99 = MAX(out->p99, one.p99);
        out->max = MAX(out->max, one.max);
        out->count += one.count;
        sum += (double)one.mean * (double)one.count;
        each[kept++] = one;
    }
    if (kept == 0)
        return;
    qsort(each, kept, sizeof(*each), by_median);
    out->median = each[(kept - 1) / 2].median;
    out->mean = (uint64_t)(sum / (double)out->count);
}

int summary_write(struct buf *out, const struct summary *s)
{
    return buf_printf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", s->count, s->min,
                      s->median, s->mean, s->p99, s->max);
}

int summary_read(struct span *text, struct summary *out)
{
    struct span rest = *text;
    uint64_t v[6];

    for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
        const char *end = rest.n > 0 ? memchr(rest.p, ',', rest.n) : NULL;
        size_t n = end != NULL ? (size_t)(end - rest.p) : 0;

        if (n == 0 || num_u64((struct span){rest.p, n}, 0, UINT64_MAX, &v[i]) < 0)
            return -EPROTO;
        rest.p += n + 1;
        rest.n -= n + 1;
    }
    *out = (struct summary){v[0], v[1], v[2], v[3], v[4], v[5]};
    *text = rest;
    return 0;
}

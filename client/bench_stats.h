/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_stats.h - times, gathered in constant room: the least, median, mean, the 99th of a hundred, the most
 *
 * A histogram whose classes are at most 1/128 wide: median and p99 are within 0.4 percent, the rest is exact. Nothing
 * is allocated or sorted while somebody measures. Pure. All times are in nanoseconds.
 */
#ifndef CLIENT_BENCH_STATS_H
#define CLIENT_BENCH_STATS_H

#include <stdint.h>
#include "common/buf.h"
#include "common/span.h"

#define STATS_FINE 7 /* bits behind the leading one that are told apart */
#define STATS_CLASSES ((64 - STATS_FINE + 1) << STATS_FINE)

/* A zeroed struct is an empty one. */
struct stats {
    uint64_t count, min, max, sum;
    uint64_t in_class[STATS_CLASSES];
};

/* What is told of many times; all 0 where count is 0. */
struct summary {
    uint64_t count, min, median, mean, p99, max;
};

void stats_add(struct stats *s, uint64_t ns);
void stats_sum(const struct stats *s, struct summary *out);

/* Several ranks' summaries as one: the least and the most of any, the median of their medians, the largest p99, the
 * mean of all. Those of nothing do not count. `each` is put into another order. */
void summary_merge(struct summary *each, size_t n, struct summary *out);

/* As text, to send it as a PMI value, which had better have no blanks: six numbers and a comma behind each. 0,
 * -ENOMEM. */
int summary_write(struct buf *out, const struct summary *s);
/* Take one from the front of `*text`. -EPROTO: that is none. */
int summary_read(struct span *text, struct summary *out);

#endif

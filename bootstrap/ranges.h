/* SPDX-License-Identifier: BSD-3-Clause */
/* ranges.h - a set of numbers as a few ascending ranges. Pure */
#ifndef BOOTSTRAP_RANGES_H
#define BOOTSTRAP_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct share_range {
    uint32_t first, count; /* count >= 1, and first + count does not overflow */
};

/* Zeroed: empty. */
struct ranges {
    struct share_range *v;
    uint32_t count, cap; /* of v */
    uint32_t total;      /* numbers in the set */
};

void ranges_done(struct ranges *r);
/* None of `add` is in the set. 0, -EEXIST or -ENOMEM. */
int ranges_add(struct ranges *r, struct share_range add);
/* All of `cut` is in the set. 0, -ENOENT or -ENOMEM; on failure nothing has changed. */
int ranges_remove(struct ranges *r, struct share_range cut);
bool ranges_has(const struct ranges *r, uint32_t number);
/* All of `part`? */
bool ranges_has_all(const struct ranges *r, struct share_range part);
/* The lowest number out of it; the set is not empty. */
uint32_t ranges_take_first(struct ranges *r);
/* The highest numbers out of it that are neighbours, `most` (>= 1) of them at most; the set is not empty. */
struct share_range ranges_take_last(struct ranges *r, uint32_t most);

#endif

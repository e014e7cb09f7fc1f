/* SPDX-License-Identifier: BSD-3-Clause */
#include "bootstrap/ranges.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ranges_done(struct ranges *r)
{
    free(r->v);
    *r = (struct ranges){0};
}

static uint32_t end_of(struct share_range r)
{
    return r.first + r.count;
}

/* The place of the first range that ends behind `number`. */
static uint32_t find(const struct ranges *r, uint32_t number)
{
    uint32_t low = 0, high = r->count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (end_of(r->v[mid]) <= number)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int insert(struct ranges *r, uint32_t at, struct share_range add)
{
    if (r->count == r->cap) {
        uint32_t cap = r->cap == 0 ? 4 : r->cap * 2;
        struct share_range *more = realloc(r->v, cap * sizeof(*more));

        if (more == NULL)
            return -ENOMEM;
        r->v = more;
        r->cap = cap;
    }
    memmove(r->v + at + 1, r->v + at, (r->count - at) * sizeof(*r->v));
    r->v[at] = add;
    r->count++;
    return 0;
}

static void erase(struct ranges *r, uint32_t at)
{
    r->count--;
    memmove(r->v + at, r->v + at + 1, (r->count - at) * sizeof(*r->v));
}

int ranges_add(struct ranges *r, struct share_range add)
{
    uint32_t at = find(r, add.first);
    bool before = at > 0 && end_of(r->v[at - 1]) == add.first;
    bool behind = at < r->count && r->v[at].first == end_of(add);
    int rc = 0;

    if (at < r->count && r->v[at].first < end_of(add))
        return -EEXIST;
    if (before && behind) {
        r->v[at - 1].count += add.count + r->v[at].count;
        erase(r, at);
    } else if (before) {
        r->v[at - 1].count += add.count;
    } else if (behind) {
        r->v[at].first = add.first;
        r->v[at].count += add.count;
    } else {
        rc = insert(r, at, add);
    }
    if (rc == 0)
        r->total += add.count;
    return rc;
}

/* Neighbours are one range, so that what is all there lies in one. */
bool ranges_has_all(const struct ranges *r, struct share_range part)
{
    uint32_t at = find(r, part.first);

    return at < r->count && r->v[at].first <= part.first && end_of(part) <= end_of(r->v[at]);
}

int ranges_remove(struct ranges *r, struct share_range cut)
{
    uint32_t at = find(r, cut.first);
    struct share_range *v, behind;

    if (!ranges_has_all(r, cut))
        return -ENOENT;
    v = &r->v[at];
    behind = (struct share_range){end_of(cut), end_of(*v) - end_of(cut)};
    if (cut.first == v->first && behind.count == 0) {
        erase(r, at);
    } else if (cut.first == v->first) {
        *v = behind;
    } else {
        if (behind.count > 0 && insert(r, at + 1, behind) < 0)
            return -ENOMEM;
        r->v[at].count = cut.first - r->v[at].first;
    }
    r->total -= cut.count;
    return 0;
}

bool ranges_has(const struct ranges *r, uint32_t number)
{
    uint32_t at = find(r, number);

    return at < r->count && r->v[at].first <= number;
}

uint32_t ranges_take_first(struct ranges *r)
{
    uint32_t number;

    assert(r->count > 0);
    number = r->v[0].first++;
    if (--r->v[0].count == 0)
        erase(r, 0);
    r->total--;
    return number;
}

struct share_range ranges_take_last(struct ranges *r, uint32_t most)
{
    struct share_range *v, taken;

    assert(r->count > 0 && most > 0);
    v = &r->v[r->count - 1];
    taken.count = v->count < most ? v->count : most;
    taken.first = end_of(*v) - taken.count;
    v->count -= taken.count;
    if (v->count == 0)
        r->count--;
    r->total -= taken.count;
    return taken;
}

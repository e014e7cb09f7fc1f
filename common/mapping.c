/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/mapping.h"

#include <errno.h>
#include <inttypes.h>
#include "common/limits.h"
#include "common/num.h"

struct triplet {
    uint32_t first, nodes, ranks;
};

/* How many ranks from `rank` on are on the same node. */
static uint32_t run_length(const uint32_t *node_of, uint32_t size, uint32_t rank)
{
    uint32_t n = 1;

    while (n < size - rank && node_of[rank + n] == node_of[rank])
        n++;
    return n;
}

/* The triplet that begins at `rank`. Returns how many ranks it covers. */
static uint32_t take_triplet(const uint32_t *node_of, uint32_t size, uint32_t rank, struct triplet *t)
{
    uint32_t covered;

    *t = (struct triplet){node_of[rank], 1, run_length(node_of, size, rank)};
    covered = t->ranks;
    while (covered < size - rank && node_of[rank + covered] == t->first + t->nodes &&
           run_length(node_of, size, rank + covered) == t->ranks) {
        t->nodes++;
        covered += t->ranks;
    }
    return covered;
}

int mapping_write(const uint32_t *node_of, uint32_t size, struct buf *out)
{
    size_t start = out->len;
    struct triplet t;
    int rc = size > 0 ? buf_add_str(out, "(vector") : -EINVAL;

    for (uint32_t rank = 0; rc == 0 && rank < size;) {
        rank += take_triplet(node_of, size, rank, &t);
        rc = buf_printf(out, ",(%" PRIu32 ",%" PRIu32 ",%" PRIu32 ")", t.first, t.nodes, t.ranks);
        if (rc == 0 && out->len - start >= PMI_MAPPING_MAX)
            rc = -E2BIG;
    }
    if (rc == 0)
        rc = buf_add_str(out, ")");
    if (rc < 0)
        out->len = start;
    return rc;
}

/* Take `text` away from the front of `s`. */
static bool skip(struct span *s, const char *text)
{
    if (!span_starts(*s, text))
        return false;
    s->p += strlen(text);
    s->n -= strlen(text);
    return true;
}

static bool skip_number(struct span *s, uint32_t min, uint32_t *out)
{
    struct span digits = {s->p, 0};
    uint64_t v;

    while (digits.n < s->n && s->p[digits.n] >= '0' && s->p[digits.n] <= '9')
        digits.n++;
    if (num_u64(digits, min, UINT32_MAX, &v) < 0)
        return false;
    s->p += digits.n;
    s->n -= digits.n;
    *out = (uint32_t)v;
    return true;
}

static bool skip_triplet(struct span *s, struct triplet *t)
{
    return skip(s, ",(") && skip_number(s, 0, &t->first) && skip(s, ",") && skip_number(s, 1, &t->nodes) &&
           skip(s, ",") && skip_number(s, 1, &t->ranks) && skip(s, ")");
}

/* Ranks that the text covers, or 0 where it is wrong or covers more than `size`. */
static uint64_t count_ranks(struct span text, uint32_t size)
{
    uint64_t ranks = 0;
    struct triplet t;

    if (!skip(&text, "(vector"))
        return 0;
    while (!span_is(text, ")")) {
        if (!skip_triplet(&text, &t) || t.nodes - 1 > UINT32_MAX - t.first)
            return 0;
        ranks += (uint64_t)t.nodes * t.ranks; /* at most size + (2^32-1)^2: no overflow */
        if (ranks > size)
            return 0;
    }
    return ranks;
}

int mapping_read(struct span text, uint32_t *node_of, uint32_t size)
{
    struct triplet t;
    uint32_t rank = 0;

    if (text.p == NULL || size == 0 || count_ranks(text, size) != size)
        return -EINVAL;
    skip(&text, "(vector");
    while (skip_triplet(&text, &t))
        for (uint64_t i = 0; i < (uint64_t)t.nodes * t.ranks; i++)
            node_of[rank++] = t.first + (uint32_t)(i / t.ranks);
    return 0;
}

/* Well formed, with a block at least: `*again` is the text from where it is repeated. */
static bool find_repeat(struct span text, struct span *again)
{
    struct triplet t;
    bool found = false;

    if (!skip(&text, "(vector"))
        return false;
    *again = text;
    while (!span_is(text, ")")) {
        struct span here = text;

        if (!skip_triplet(&text, &t) || t.nodes - 1 > UINT32_MAX - t.first)
            return false;
        if (t.first == 0 && !found)
            *again = here;
        found = found || t.first == 0;
    }
    return again->n > 1;
}

int mapping_read_repeated(struct span text, uint32_t *node_of, uint32_t size)
{
    struct span again;
    struct triplet t;
    uint32_t rank = 0;

    if (text.p == NULL || size == 0 || !find_repeat(text, &again))
        return -EINVAL;
    skip(&text, "(vector");
    while (rank < size) {
        if (!skip_triplet(&text, &t)) {
            text = again;
            continue;
        }
        for (uint64_t i = 0; i < (uint64_t)t.nodes * t.ranks && rank < size; i++)
            node_of[rank++] = t.first + (uint32_t)(i / t.ranks);
    }
    return 0;
}

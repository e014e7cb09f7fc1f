/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/group.h"

#include <errno.h>
#include <stdlib.h>
#include "common/num.h"
#include "common/util.h"
#include "server/barrier.h"

static struct span cut(struct span *rest, char end)
{
    const char *p = memchr(rest->p, end, rest->n);
    struct span part = {rest->p, p == NULL ? rest->n : (size_t)(p - rest->p)};
    size_t used = part.n + (p != NULL);

    *rest = (struct span){rest->p + used, rest->n - used};
    return part;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static int read_ranks(struct span list, uint32_t size, uint32_t *rank, size_t *count)
{
    size_t n = 0;
    uint64_t v;

    if (list.p[list.n - 1] == ',')
        return -EINVAL;
    while (list.n > 0) {
        int rc = num_u64(cut(&list, ','), 0, size - 1u, &v);

        if (rc < 0)
            return rc;
        rank[n++] = (uint32_t)v;
    }
    *count = n;
    return 0;
}

static size_t without_doubles(uint32_t *rank, size_t count)
{
    size_t n = 1;

    for (size_t i = 1; i < count; i++)
        if (rank[i] != rank[n - 1])
            rank[n++] = rank[i];
    return n;
}

static int write_parts(const uint32_t *rank, size_t count, struct buf *name)
{
    int rc = 0;

    for (size_t i = 0, end; i < count && rc == 0; i = end) {
        uint32_t step = i + 1 < count ? rank[i + 1] - rank[i] : 0;

        for (end = i + 1; end < count && rank[end] - rank[end - 1] == step; end++) {
        }
        /* Two ranks apart are shorter as they are. */
        if (end - i == 2 && step > 1)
            end = i + 1;
        rc = buf_printf(name, i == 0 ? "%u" : ",%u", rank[i]);
        if (rc == 0 && end - i > 1)
            rc = buf_printf(name, "-%u", rank[end - 1]);
        if (rc == 0 && end - i > 1 && step > 1)
            rc = buf_printf(name, "/%u", step);
    }
    return rc;
}

int group_name(struct span list, uint32_t size, struct buf *name)
{
    size_t start = name->len, count = 0;
    uint32_t *rank;
    int rc;

    if (list.n == 0 || size == 0)
        return -EINVAL;
    rank = calloc(list.n / 2 + 1, sizeof(*rank)); /* each but the last has a digit and a comma */
    if (rank == NULL)
        return -ENOMEM;
    rc = read_ranks(list, size, rank, &count);
    if (rc == 0) {
        qsort(rank, count, sizeof(*rank), by_number);
        rc = write_parts(rank, without_doubles(rank, count), name);
    }
    free(rank);
    if (rc == 0 && name->len - start > BARRIER_NAME_MAX)
        rc = -E2BIG;
    if (rc < 0)
        name->len = start;
    return rc;
}

int group_next(struct span *rest, struct group_part *part)
{
    struct span text, first, last;
    uint64_t a, b, step = 1;

    if (rest->n == 0)
        return 0;
    text = cut(rest, ',');
    first = cut(&text, '-');
    last = cut(&text, '/');
    if (num_u64(first, 0, UINT32_MAX, &a) < 0)
        return -EPROTO;
    b = a;
    if (last.n > 0 && num_u64(last, a, UINT32_MAX, &b) < 0)
        return -EPROTO;
    if (text.n > 0 && num_u64(text, 1, UINT32_MAX, &step) < 0)
        return -EPROTO;
    if ((b - a) % step != 0)
        return -EPROTO;
    *part = (struct group_part){(uint32_t)a, (uint32_t)b, (uint32_t)step};
    return 1;
}

bool group_has(struct span name, uint32_t rank)
{
    struct group_part p;

    while (group_next(&name, &p) > 0)
        if (rank >= p.first && rank <= p.last && (rank - p.first) % p.step == 0)
            return true;
    return false;
}

bool group_cut_tag(struct span *group, struct span tag, int64_t *out)
{
    const char *colon = group->n == 0 ? NULL : memrchr(group->p, ':', group->n);
    struct span behind = SPAN_NONE;

    if (colon != NULL) {
        size_t n = (size_t)(colon - group->p);

        behind = (struct span){colon + 1, group->n - n - 1};
        group->n = n;
    }
    if (tag.p == NULL)
        tag = behind;
    return tag.p == NULL || num_i64(tag, INT64_MIN, INT64_MAX, out) == 0;
}

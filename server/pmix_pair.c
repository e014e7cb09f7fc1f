/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_pair.h"

#include <errno.h>

#define HEAD 16 /* job, rank, length of key and of value: 4 bytes each */

static void put(char *p, uint32_t v)
{
    for (int i = 3; i >= 0; i--, v >>= 8)
        p[i] = (char)(v & 255);
}

static uint32_t get(const char *p)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

int pmix_pair_add(struct buf *out, const struct pmix_pair *p)
{
    char head[HEAD];
    int rc;

    if (p->key.n > UINT32_MAX || p->value.n > UINT32_MAX)
        return -E2BIG;
    rc = buf_reserve(out, HEAD + p->key.n + p->value.n);
    if (rc < 0)
        return rc;
    put(head, p->job);
    put(head + 4, p->rank);
    put(head + 8, (uint32_t)p->key.n);
    put(head + 12, (uint32_t)p->value.n);
    (void)buf_add(out, head, sizeof(head));
    if (p->key.n > 0)
        (void)buf_add(out, p->key.p, p->key.n);
    if (p->value.n > 0)
        (void)buf_add(out, p->value.p, p->value.n);
    return 0;
}

int pmix_pair_next(struct span *bytes, struct pmix_pair *p)
{
    uint64_t key, value;

    if (bytes->n == 0)
        return 0;
    if (bytes->n < HEAD)
        return -EPROTO;
    key = get(bytes->p + 8);
    value = get(bytes->p + 12);
    if (key + value > bytes->n - HEAD)
        return -EPROTO;
    *p = (struct pmix_pair){get(bytes->p), get(bytes->p + 4), {bytes->p + HEAD, (size_t)key}, SPAN_NONE};
    p->value = (struct span){p->key.p + key, (size_t)value};
    *bytes = (struct span){p->value.p + value, bytes->n - HEAD - (size_t)(key + value)};
    return 1;
}

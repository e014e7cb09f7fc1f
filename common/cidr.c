/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/cidr.h"

#include <errno.h>
#include "common/num.h"

/* The text up to `sep`, which is cut off with it; where there is none, all. */
static struct span cut(struct span *text, char sep)
{
    const char *at = text->n == 0 ? NULL : memchr(text->p, sep, text->n);
    struct span head = {text->p, at == NULL ? text->n : (size_t)(at - text->p)};

    *text = at == NULL ? SPAN_NONE : (struct span){at + 1, text->n - head.n - 1};
    return head;
}

int ipv4_parse(struct span text, uint32_t *addr)
{
    uint32_t v = 0;

    for (int i = 0; i < 4; i++) {
        struct span part = cut(&text, '.');
        uint64_t byte;

        if (num_u64(part, 0, 255, &byte) < 0 || (part.n > 1 && part.p[0] == '0') || (text.p == NULL) != (i == 3))
            return -EINVAL;
        v = v << 8 | (uint32_t)byte;
    }
    *addr = v;
    return 0;
}

int cidr_parse(struct span text, struct cidr *out)
{
    struct span addr = cut(&text, '/');
    uint64_t bits = 32;
    uint32_t base, mask;

    if (ipv4_parse(addr, &base) < 0 || (text.p != NULL && num_u64(text, 0, 32, &bits) < 0))
        return -EINVAL;
    mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);
    if ((base & ~mask) != 0)
        return -EINVAL;
    *out = (struct cidr){base, mask};
    return 0;
}

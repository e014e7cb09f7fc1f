/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/msg_check.h"

#include <stdint.h>

/* One msgpack item: `len` bytes that belong to it alone, then `items` further items inside it. */
struct item {
    uint64_t len;
    uint64_t items;
};

static uint64_t big_endian(const unsigned char *p, size_t n)
{
    uint64_t v = 0;

    while (n-- > 0)
        v = v << 8 | *p++;
    return v;
}

/* The codes 0xc0 to 0xdf: a length of `size` bytes may follow, then `fixed` bytes; the length counts bytes (per 0), or
 * `per` items each. */
static bool long_item_at(const unsigned char *p, size_t left, struct item *out)
{
    unsigned size = 0, fixed = 0, per = 0;
    uint64_t n;

    switch (*p) {
    case 0xc0:          /* nil */
    case 0xc2 ... 0xc3: /* false, true */
        break;
    case 0xc4 ... 0xc6: /* bin */
        size = 1u << (*p - 0xc4);
        break;
    case 0xc7 ... 0xc9: /* ext, with a type byte */
        size = 1u << (*p - 0xc7);
        fixed = 1;
        break;
    case 0xca ... 0xcb: /* float */
        fixed = 4u << (*p - 0xca);
        break;
    case 0xcc ... 0xcf: /* unsigned */
    case 0xd0 ... 0xd3: /* signed */
        fixed = 1u << (*p & 3);
        break;
    case 0xd4 ... 0xd8: /* ext of 1 to 16 bytes, with a type byte */
        fixed = 1 + (1u << (*p - 0xd4));
        break;
    case 0xd9 ... 0xdb: /* text */
        size = 1u << (*p - 0xd9);
        break;
    case 0xdc ... 0xdd: /* array */
        size = 2u << (*p - 0xdc);
        per = 1;
        break;
    case 0xde ... 0xdf: /* map */
        size = 2u << (*p - 0xde);
        per = 2;
        break;
    default: /* 0xc1 is never used */
        return false;
    }
    if (size >= left)
        return false;
    n = big_endian(p + 1, size);
    *out = (struct item){1u + size + fixed + (per == 0 ? n : 0), n * per};
    return true;
}

/* What stands at p. false: not msgpack, or the length itself is cut off. */
static bool item_at(const unsigned char *p, size_t left, struct item *out)
{
    unsigned c = *p;

    if (c >= 0xc0 && c < 0xe0)
        return long_item_at(p, left, out);
    if (c < 0x80 || c >= 0xe0) /* small integers */
        *out = (struct item){1, 0};
    else if (c < 0x90) /* small map */
        *out = (struct item){1, 2 * (c & 0x0f)};
    else if (c < 0xa0) /* small array */
        *out = (struct item){1, c & 0x0f};
    else /* short text */
        *out = (struct item){1 + (c & 0x1f), 0};
    return true;
}

bool msg_is_whole(struct span body)
{
    uint64_t open[MSG_DEPTH_MAX + 1] = {1}; /* items still to come at each level; level 0 holds the one item */
    const unsigned char *p = (const unsigned char *)body.p;
    size_t left = body.n;
    unsigned depth = 0;
    struct item it;

    for (;;) {
        while (open[depth] == 0) {
            if (depth-- == 0)
                return left == 0;
        }
        if (left == 0 || !item_at(p, left, &it) || it.len > left || it.items > left - it.len)
            return false;
        p += it.len;
        left -= (size_t)it.len;
        open[depth]--;
        if (it.items == 0)
            continue;
        if (++depth > MSG_DEPTH_MAX)
            return false;
        open[depth] = it.items;
    }
}

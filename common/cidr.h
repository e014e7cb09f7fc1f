/* SPDX-License-Identifier: BSD-3-Clause */
/* cidr.h - ranges of IPv4 addresses: "10.1.0.0/16", or one address. Pure. */
#ifndef COMMON_CIDR_H
#define COMMON_CIDR_H

#include <stdbool.h>
#include <stdint.h>
#include "common/span.h"

struct cidr {
    uint32_t base, mask; /* host byte order; base has no bit outside of mask */
};

/* "A.B.C.D", four numbers without signs, blanks or leading zeros. 0 or -EINVAL. */
int ipv4_parse(struct span text, uint32_t *addr);
/* 0 or -EINVAL, also where address bits are set behind the prefix: 10.1.2.3/16 may well be a slip. */
int cidr_parse(struct span text, struct cidr *out);
static inline bool cidr_has(const struct cidr *c, uint32_t addr)
{
    return (addr & c->mask) == c->base;
}

#endif

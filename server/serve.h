/* SPDX-License-Identifier: BSD-3-Clause */
/* serve.h - --serve, as far as it is pure: whose peers are served, where they are told to come, who shares a node */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/buf.h"
#include "common/cidr.h"

#define IPV4_TEXT_MAX 16

/* What the node at the launcher is told; lent to it. */
struct serve_conf {
    const struct cidr *range;
    size_t count;
    uint32_t addr;        /* that the ranks are told, host byte order */
    bool listen_all;      /* on every address of this machine, else on `addr` alone */
    uint16_t low, high;   /* ports; 0: any */
    uint64_t patience_ms; /* how long ranks may wait for one that does not come */
};

bool serve_has(const struct cidr *range, size_t count, uint32_t addr);
/* No range has an address outside of 127.0.0.0/8. */
bool serve_is_loopback(const struct cidr *range, size_t count);
/* Of `given`, texts of this machine's addresses, best first: the first IPv4 one in a range, else the first IPv4 one,
 * else 127.0.0.1 where a range has it. 0 or -ENOENT. */
int serve_choose(char *const *given, const struct cidr *range, size_t count, uint32_t *addr);
/* PMI_process_mapping of ranks with these addresses: equal ones share a node, nodes are numbered as they come up first
 * in the order of ranks. As mapping_write(). */
int serve_mapping(const uint32_t *addr, uint32_t size, struct buf *out);
/* Dotted. */
const char *ipv4_text(uint32_t addr, char out[IPV4_TEXT_MAX]);

#endif

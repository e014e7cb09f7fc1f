/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/serve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/mapping.h"
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define LOOPBACK 0x7f000001u

static const struct cidr loopback = {0x7f000000u, 0xff000000u};

bool serve_has(const struct cidr *range, size_t count, uint32_t addr)
{
    for (size_t i = 0; i < count; i++)
        if (cidr_has(&range[i], addr))
            return true;
    return false;
}

bool serve_is_loopback(const struct cidr *range, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!cidr_has(&loopback, range[i].base) || (range[i].mask & loopback.mask) != loopback.mask)
            return false;
    return true;
}

int serve_choose(char *const *given, const struct cidr *range, size_t count, uint32_t *addr)
{
    bool any = false;

    for (size_t i = 0; given != NULL && given[i] != NULL; i++) {
        uint32_t one;

        if (ipv4_parse(span_of(given[i]), &one) < 0)
            continue;
        if (!any || serve_has(range, count, one))
            *addr = one;
        any = true;
        if (serve_has(range, count, one))
            return 0;
    }
    if (any)
        return 0;
    *addr = LOOPBACK;
    return serve_has(range, count, LOOPBACK) ? 0 : -ENOENT;
}

struct seen {
    UT_hash_handle hh;
    uint32_t addr, node;
};

/* Which node each rank is on. The table's memory is one block of `size`. */
static int number_nodes(const uint32_t *addr, uint32_t size, struct seen *seen, uint32_t *node_of)
{
    struct seen *table = NULL, *s;
    uint32_t nodes = 0;
    int rc = 0;

    for (uint32_t rank = 0; rc == 0 && rank < size; rank++) {
        HASH_FIND(hh, table, &addr[rank], sizeof(addr[rank]), s);
        if (s == NULL) {
            s = &seen[nodes];
            *s = (struct seen){.addr = addr[rank], .node = nodes};
            HASH_ADD(hh, table, addr, sizeof(s->addr), s);
            rc = s->hh.tbl == NULL ? -ENOMEM : 0;
            nodes += rc == 0;
        }
        node_of[rank] = s->node;
    }
    HASH_CLEAR(hh, table);
    return rc;
}

int serve_mapping(const uint32_t *addr, uint32_t size, struct buf *out)
{
    struct seen *seen = calloc(size + 1u, sizeof(*seen));
    uint32_t *node_of = calloc(size + 1u, sizeof(*node_of));
    int rc = seen == NULL || node_of == NULL ? -ENOMEM : number_nodes(addr, size, seen, node_of);

    if (rc == 0)
        rc = mapping_write(node_of, size, out);
    free(seen);
    free(node_of);
    return rc;
}

const char *ipv4_text(uint32_t addr, char out[IPV4_TEXT_MAX])
{
    snprintf(out, IPV4_TEXT_MAX, "%u.%u.%u.%u", addr >> 24, addr >> 16 & 255, addr >> 8 & 255, addr & 255);
    return out;
}

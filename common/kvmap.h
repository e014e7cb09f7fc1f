/* SPDX-License-Identifier: BSD-3-Clause */
/* kvmap.h - a node's keys in a file in memory that its tasks map read-only: how they lie there, and the reader
 *
 * A head, a word for each task of the node, and two tables of kvtab.h: what is installed, and what the node keeps to
 * itself, which the former hides. The one writer counts `seq` up before and behind every change of what a reader looks
 * at, so that it is odd meanwhile; a reader copies out what it wants and tries again unless `seq` was even and the same
 * before and behind. Where more room is needed than there is, all moves to another file and `seq` becomes KVMAP_GONE:
 * the reader is to ask for that. Two processes of one machine: integers are the machine's.
 *
 * What a task has put and no barrier has installed yet is not here. Its word has bit kvmap_bit() of every such key, so
 * that it asks its server about those; and it does so about whatever is not found, as a server knows best.
 */
#ifndef COMMON_KVMAP_H
#define COMMON_KVMAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "common/kvtab.h"
#include "common/span.h"

#define KVMAP_MAGIC "pmikvs1" /* with its terminator 8 bytes */
#define KVMAP_GONE UINT32_MAX
#define KVMAP_TABLES 2

/* Where a table may lie; does not change. Offsets are from the start of the file. */
struct kvmap_table {
    uint64_t index, arena;
    uint32_t places, room; /* of the index in places, of the arena in bytes */
};

struct kvmap_head {
    char magic[8];
    uint64_t size; /* of the file */
    uint64_t waiting;
    uint32_t slots, unused;
    struct kvmap_table table[KVMAP_TABLES];
    _Atomic(uint32_t) seq;
    _Atomic(uint32_t) places[KVMAP_TABLES]; /* of the index, in use */
};

static inline uint32_t kvmap_bit(uint32_t hash)
{
    return UINT32_C(1) << (hash & 31);
}

/* One task's view. No pointer of it is into anything that the file says without having been checked. */
struct kvmap {
    const char *base; /* lent */
    const struct kvmap_head *head;
    const _Atomic(uint32_t) *waiting;
    struct kvmap_table table[KVMAP_TABLES];
};

/* `base` is a mapping of `size` bytes, all of which can be read, and is aligned as malloc() aligns; for the task in
 * `slot` of the node. 0, or -EPROTO: it is none of these. */
int kvmap_open(struct kvmap *m, const void *base, size_t size, uint32_t slot);

/* 0: `value` (without a terminator) is what the task sees. -ENOENT: the server is to be asked. -EAGAIN: likewise, as it
 * did not stand still, or makes no sense. -ESTALE: a newer file has taken its place. Whatever the file says, nothing
 * outside of it is read, and no more than KVTAB_VALUE_MAX bytes are written. */
int kvmap_get(const struct kvmap *m, struct span key, char value[KVTAB_VALUE_MAX], size_t *len);

#endif

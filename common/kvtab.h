/* SPDX-License-Identifier: BSD-3-Clause */
/* kvtab.h - key-value entries in one run of bytes, and an index of offsets over it
 *
 * An entry is a 16-byte header (little endian), the key, the value; entries follow each other without gaps and are the
 * same in memory and on the wire. The index is an open-addressing table of (hash, offset). Neither holds a pointer, so
 * that both can lie in a mapping which another process reads through a struct kvtab_view. No policy here: who may see
 * what, and what is sent where, is kvs.c's business.
 */
#ifndef COMMON_KVTAB_H
#define COMMON_KVTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/limits.h"
#include "common/span.h"

#define KVTAB_HEADER 16
#define KVTAB_BASE 16 /* offset of the first entry; 0 is an empty place of the index */
#define KVTAB_KEY_MAX (PMI_KEY_MAX - 1)
#define KVTAB_VALUE_MAX (PMI_VALUE_MAX - 1)
#define KVTAB_ENTRY_MAX (KVTAB_HEADER + KVTAB_KEY_MAX + KVTAB_VALUE_MAX)
#define KVTAB_ROUND_MAX ((UINT64_C(1) << 48) - 1)

/* Orders the puts of one key: the largest wins. All zero: below every put of a task. */
struct kvtab_stamp {
    uint64_t round; /* <= KVTAB_ROUND_MAX */
    uint32_t rank;  /* < TASKS_MAX */
    uint32_t seq;
};

struct kvtab_entry {
    struct kvtab_stamp stamp;
    struct span key, value; /* views into the arena */
    uint32_t len;           /* of the whole entry */
};

struct kvtab_place {
    uint32_t hash, off;
};

/* All that a lookup reads. */
struct kvtab_view {
    const char *arena;
    const struct kvtab_place *index;
    uint32_t places;
};

struct kvtab;

/* Who lends a table its memory in place of the heap, such as a mapping that others read. `more`: at least `cap` bytes
 * of arena and `places` places of index are needed (0: as there are). Sets t->cap and t->room_places, the places being
 * zero, or takes the table to another room by kvtab_move(). 0 or -ENOMEM. */
struct kvtab_lender {
    int (*more)(struct kvtab *t, size_t cap, uint32_t places, void *arg); /* NULL: it is the heap */
    void *arg;
};

struct kvtab_room {
    char *arena;
    size_t cap;
    struct kvtab_place *index; /* all zero */
    uint32_t places;
    struct kvtab_lender lender;
};

struct kvtab {
    char *arena; /* NULL until something is added */
    size_t cap;
    uint32_t used;    /* end of the last entry; KVTAB_BASE when empty, 0 as long as arena is NULL */
    uint32_t indexed; /* entries below this offset are in the index */
    struct kvtab_place *index;
    uint32_t places, keys;
    size_t dead;          /* bytes of indexed entries that lost to a larger stamp */
    uint32_t room_places; /* of an index that is lent: room for so many */
    struct kvtab_lender lender;
};

/* A zeroed struct is a valid empty table. `_done` leaves one. */
void kvtab_done(struct kvtab *t);

uint32_t kvtab_hash(struct span key);
/* Where a hash belongs: its share of the table, so that growing keeps the order and any size will do. */
static inline uint32_t kvtab_home(uint32_t hash, uint32_t places)
{
    return (uint32_t)((uint64_t)hash * places >> 32);
}

/* 0 or -ENOENT. `hash` is kvtab_hash(key). */
int kvtab_find(const struct kvtab_view *v, struct span key, uint32_t hash, struct span *value);
struct kvtab_view kvtab_view(const struct kvtab *t);

/* The lengths that an entry's header says, whatever it says. */
void kvtab_lengths(const char header[KVTAB_HEADER], size_t *key, size_t *value);
/* The entry at `off`, which must be the start of one. */
struct kvtab_entry kvtab_at(const struct kvtab *t, uint32_t off);

/* 0, or -EPROTO: not a run of whole entries with lawful lengths, keys and values (neither holds NUL or newline). */
int kvtab_check(struct span block);

/* Take a table to other memory, with all that is in it; it gives back what it had of the heap, while what was lent is
 * its lender's to take back. Memory of the heap (lender {0}) is the table's own from here on. -ENOSPC: too small, and
 * nothing changed. */
int kvtab_move(struct kvtab *t, const struct kvtab_room *room);

/* Append, not yet indexed. `key` and `value` within the limits. 0 or -ENOMEM. */
int kvtab_add(struct kvtab *t, struct kvtab_stamp stamp, struct span key, struct span value);
/* Append a run of whole entries that kvtab_check() accepted. */
int kvtab_add_block(struct kvtab *t, struct span block);
/* Index what was appended; of equal keys the larger stamp stays, of equal stamps the later entry. 0 or -ENOMEM (what
 * was done so far stays; may be tried again). */
int kvtab_index(struct kvtab *t);

/* More than half is dead, and it is worth the walk. */
bool kvtab_wants_squeeze(const struct kvtab *t);
/* Take out what is dead, keeping the order. Everything must be indexed. `marks`: offsets of entries or the end, in
 * ascending order of value, which are moved to the first entry at or after them that is left. */
void kvtab_squeeze(struct kvtab *t, uint32_t **marks, size_t count);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/kvmap.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define TRIES 100 /* some microseconds; a question over the wire takes as long */

/* Places of the index that are looked at for a key. A table that is at most four fifths full has no run of taken ones
 * anywhere near as long. */
#define PROBES 4096

/* `count` items of `each` bytes at `at` lie within `size`. */
static bool is_within(uint64_t at, uint64_t count, uint64_t each, uint64_t size)
{
    return at <= size && count <= (size - at) / each;
}

int kvmap_open(struct kvmap *m, const void *base, size_t size, uint32_t slot)
{
    struct kvmap_head h;

    if (size < sizeof(h))
        return -EPROTO;
    memcpy(&h, base, sizeof(h));
    atomic_signal_fence(memory_order_seq_cst); /* what was checked is what is used: nothing is read anew */
    if (memcmp(h.magic, KVMAP_MAGIC, sizeof(h.magic)) != 0 || h.size != size || slot >= h.slots)
        return -EPROTO;
    if (h.waiting % sizeof(uint32_t) != 0 || !is_within(h.waiting, h.slots, sizeof(uint32_t), size))
        return -EPROTO;
    for (unsigned i = 0; i < KVMAP_TABLES; i++) {
        if (!is_within(h.table[i].index, h.table[i].places, sizeof(struct kvtab_place), size) ||
            !is_within(h.table[i].arena, h.table[i].room, 1, size))
            return -EPROTO;
        m->table[i] = h.table[i];
    }
    m->base = base;
    m->head = base;
    m->waiting = (const _Atomic(uint32_t) *)(const void *)(m->base + h.waiting) + slot;
    return 0;
}

/* 0, -ENOENT: it has another key, -EAGAIN: no entry can be there. */
static int read_entry(const char *arena, uint32_t room, uint32_t off, struct span key, char *value, size_t *len)
{
    size_t key_len, value_len;
    char header[KVTAB_HEADER];

    if (off < KVTAB_BASE || off > room || room - off < KVTAB_HEADER)
        return -EAGAIN;
    memcpy(header, arena + off, sizeof(header));
    atomic_signal_fence(memory_order_seq_cst);
    kvtab_lengths(header, &key_len, &value_len);
    if (value_len > KVTAB_VALUE_MAX || room - off - KVTAB_HEADER < key_len + value_len)
        return -EAGAIN;
    arena += off + KVTAB_HEADER;
    if (key_len != key.n || memcmp(arena, key.p, key.n) != 0)
        return -ENOENT;
    memcpy(value, arena + key_len, value_len);
    *len = value_len;
    return 0;
}

static int find(const struct kvmap *m, unsigned i, struct span key, uint32_t hash, char *value, size_t *len)
{
    const struct kvmap_table *t = &m->table[i];
    uint32_t places = atomic_load_explicit(&m->head->places[i], memory_order_relaxed), at;

    if (places == 0)
        return -ENOENT;
    if (places > t->places)
        return -EAGAIN;
    at = kvtab_home(hash, places);
    for (uint32_t n = 0; n < places && n < PROBES; n++) {
        struct kvtab_place place;
        int rc;

        memcpy(&place, m->base + t->index + (uint64_t)at * sizeof(place), sizeof(place));
        if (place.off == 0)
            return -ENOENT;
        rc = place.hash == hash ? read_entry(m->base + t->arena, t->room, place.off, key, value, len) : -ENOENT;
        if (rc != -ENOENT)
            return rc;
        at = at + 1 == places ? 0 : at + 1;
    }
    return -EAGAIN;
}

static int look(const struct kvmap *m, struct span key, uint32_t hash, char *value, size_t *len)
{
    int rc = -ENOENT;

    if ((atomic_load_explicit(m->waiting, memory_order_relaxed) & kvmap_bit(hash)) != 0)
        return -ENOENT;
    for (unsigned i = 0; i < KVMAP_TABLES && rc == -ENOENT; i++)
        rc = find(m, i, key, hash, value, len);
    return rc;
}

int kvmap_get(const struct kvmap *m, struct span key, char value[KVTAB_VALUE_MAX], size_t *len)
{
    uint32_t hash = kvtab_hash(key);

    for (unsigned i = 0; i < TRIES; i++) {
        uint32_t before = atomic_load_explicit(&m->head->seq, memory_order_acquire);
        int rc;

        if (before == KVMAP_GONE)
            return -ESTALE;
        if (before % 2 != 0)
            continue;
        rc = look(m, key, hash, value, len);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&m->head->seq, memory_order_relaxed) == before)
            return rc;
    }
    return -EAGAIN;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/kvtab.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include "common/util.h"

#define PLACES_MIN 16
#define SQUEEZE_MIN 16384 /* dead bytes below which a walk is not worth it */
#define BATCH 16          /* entries hashed ahead, so that their places are on the way from memory together */

/* The header is two words: round (48 bits) and value length (16); rank (24), sequence (32) and key length (8). */
static struct kvtab_entry decode(const char *p)
{
    struct kvtab_entry e;
    uint64_t a, b;

    memcpy(&a, p, 8);
    memcpy(&b, p + 8, 8);
    a = le64toh(a);
    b = le64toh(b);
    e.stamp = (struct kvtab_stamp){.round = a >> 16, .rank = (uint32_t)(b >> 40), .seq = (uint32_t)(b >> 8)};
    e.key = (struct span){p + KVTAB_HEADER, b & 0xff};
    e.value = (struct span){e.key.p + e.key.n, a & 0xffff};
    e.len = (uint32_t)(KVTAB_HEADER + e.key.n + e.value.n);
    return e;
}

static void encode_header(char *p, struct kvtab_stamp s, size_t key_len, size_t value_len)
{
    uint64_t a = htole64(s.round << 16 | value_len);
    uint64_t b = htole64((uint64_t)s.rank << 40 | (uint64_t)s.seq << 8 | key_len);

    memcpy(p, &a, 8);
    memcpy(p + 8, &b, 8);
}

static bool stamp_less(struct kvtab_stamp a, struct kvtab_stamp b)
{
    if (a.round != b.round)
        return a.round < b.round;
    if (a.rank != b.rank)
        return a.rank < b.rank;
    return a.seq < b.seq;
}

static void free_own(struct kvtab *t)
{
    if (t->lender.more != NULL)
        return;
    free(t->arena);
    free(t->index);
}

void kvtab_done(struct kvtab *t)
{
    free_own(t);
    *t = (struct kvtab){0};
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    a *= b;
    return a ^ a >> 32;
}

uint32_t kvtab_hash(struct span key)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ key.n, w;
    const char *p = key.p;
    size_t n = key.n;

    for (; n >= 8; p += 8, n -= 8) {
        memcpy(&w, p, 8);
        h = mix(h ^ w, 0xd6e8feb86659fd93u);
    }
    w = 0;
    memcpy(&w, p, n);
    h = mix(h ^ w, 0xa0761d6478bd642fu);
    return (uint32_t)(h >> 32); /* the better mixed half: every bit of the input reaches it */
}

void kvtab_lengths(const char header[KVTAB_HEADER], size_t *key, size_t *value)
{
    struct kvtab_entry e = decode(header);

    *key = e.key.n;
    *value = e.value.n;
}

static bool has_key(const char *arena, uint32_t off, struct span key)
{
    const char *p = arena + off;

    /* The key's length is the header's ninth byte. */
    return (unsigned char)p[8] == key.n && memcmp(p + KVTAB_HEADER, key.p, key.n) == 0;
}

/* The place of `key`, or the empty one where it belongs. There is always an empty place. */
static uint32_t probe(const struct kvtab_view *v, struct span key, uint32_t hash)
{
    uint32_t i = kvtab_home(hash, v->places);

    while (v->index[i].off != 0) {
        if (v->index[i].hash == hash && has_key(v->arena, v->index[i].off, key))
            break;
        i = i + 1 == v->places ? 0 : i + 1;
    }
    return i;
}

struct kvtab_view kvtab_view(const struct kvtab *t)
{
    return (struct kvtab_view){t->arena, t->index, t->places};
}

int kvtab_find(const struct kvtab_view *v, struct span key, uint32_t hash, struct span *value)
{
    uint32_t i;

    if (v->places == 0)
        return -ENOENT;
    i = probe(v, key, hash);
    if (v->index[i].off == 0)
        return -ENOENT;
    *value = decode(v->arena + v->index[i].off).value;
    return 0;
}

struct kvtab_entry kvtab_at(const struct kvtab *t, uint32_t off)
{
    assert(off >= KVTAB_BASE && off < t->used);
    return decode(t->arena + off);
}

static bool is_clean(const char *p, size_t n)
{
    return memchr(p, '\0', n) == NULL && memchr(p, '\n', n) == NULL;
}

int kvtab_check(struct span block)
{
    size_t at = 0;

    while (at < block.n) {
        struct kvtab_entry e;

        if (block.n - at < KVTAB_HEADER)
            return -EPROTO;
        e = decode(block.p + at);
        if (e.key.n == 0 || e.key.n > KVTAB_KEY_MAX || e.value.n > KVTAB_VALUE_MAX || e.len > block.n - at)
            return -EPROTO;
        /* Key and value lie side by side: one look at both. */
        if (!is_clean(e.key.p, e.key.n + e.value.n))
            return -EPROTO;
        at += e.len;
    }
    return 0;
}

static void begin_arena(struct kvtab *t)
{
    if (t->used > 0)
        return;
    memset(t->arena, 0, KVTAB_BASE);
    t->used = t->indexed = KVTAB_BASE;
}

/* Room for `more` bytes. Grows by little: the C library remaps large blocks instead of copying them. */
static int reserve(struct kvtab *t, size_t more)
{
    size_t used = t->arena ? t->used : KVTAB_BASE, need = used + more, cap;
    char *p;

    if (need > UINT32_MAX)
        return -ENOMEM;
    if (need > t->cap) {
        cap = need < (1u << 20) ? need + need / 2 + 64 : need + need / 32;
        if (t->lender.more != NULL)
            return t->lender.more(t, MIN(cap, (size_t)UINT32_MAX), 0, t->lender.arg);
        p = realloc(t->arena, cap);
        if (p == NULL)
            return -ENOMEM;
        t->arena = p;
        t->cap = cap;
    }
    begin_arena(t);
    return 0;
}

int kvtab_move(struct kvtab *t, const struct kvtab_room *room)
{
    if (room->cap < t->used || room->places < t->places)
        return -ENOSPC;
    if (t->used > 0)
        memcpy(room->arena, t->arena, t->used);
    if (t->places > 0)
        memcpy(room->index, t->index, t->places * sizeof(*t->index));
    free_own(t);
    t->arena = room->arena;
    t->index = room->index;
    t->cap = room->cap;
    t->room_places = room->places;
    t->lender = room->lender;
    begin_arena(t);
    return 0;
}

int kvtab_add(struct kvtab *t, struct kvtab_stamp stamp, struct span key, struct span value)
{
    size_t len = KVTAB_HEADER + key.n + value.n;
    int rc;

    assert(key.n > 0 && key.n <= KVTAB_KEY_MAX && value.n <= KVTAB_VALUE_MAX);
    assert(stamp.round <= KVTAB_ROUND_MAX && stamp.rank < TASKS_MAX);
    rc = reserve(t, len);
    if (rc < 0)
        return rc;
    encode_header(t->arena + t->used, stamp, key.n, value.n);
    memcpy(t->arena + t->used + KVTAB_HEADER, key.p, key.n);
    if (value.n > 0)
        memcpy(t->arena + t->used + KVTAB_HEADER + key.n, value.p, value.n);
    t->used += (uint32_t)len;
    return 0;
}

int kvtab_add_block(struct kvtab *t, struct span block)
{
    int rc = reserve(t, block.n);

    if (rc < 0)
        return rc;
    if (block.n > 0)
        memcpy(t->arena + t->used, block.p, block.n);
    t->used += (uint32_t)block.n;
    return 0;
}

/* The hashes are at hand and the order stays, so this is a straight walk. `to` is empty. */
static void refill(const struct kvtab_place *from, uint32_t count, struct kvtab_place *to, uint32_t places)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at;

        if (from[i].off == 0)
            continue;
        at = kvtab_home(from[i].hash, places);
        while (to[at].off != 0)
            at = at + 1 == places ? 0 : at + 1;
        to[at] = from[i];
    }
}

/* Room that is lent stays where it is: by way of a copy. */
static int grow_in_room(struct kvtab *t, uint32_t places)
{
    size_t bytes = t->places * sizeof(*t->index);
    struct kvtab_place *copy;

    if (places > t->room_places && t->lender.more(t, 0, places, t->lender.arg) < 0)
        return -ENOMEM;
    copy = malloc(bytes + 1);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, t->index, bytes);
    memset(t->index, 0, bytes);
    refill(copy, t->places, t->index, places);
    free(copy);
    t->places = places;
    return 0;
}

/* A larger index with the same content. */
static int grow(struct kvtab *t)
{
    uint32_t places = t->places < PLACES_MIN ? PLACES_MIN : t->places + t->places / 4 + 8;
    struct kvtab_place *index;

    if (t->lender.more != NULL)
        return grow_in_room(t, places);
    index = calloc(places, sizeof(*index));
    if (index == NULL)
        return -ENOMEM;
    refill(t->index, t->places, index, places);
    free(t->index);
    t->index = index;
    t->places = places;
    return 0;
}

/* At most 4 of 5 places are taken: an index of 8 x 5/4 to 8 x 25/16 bytes a key. */
static bool is_full(const struct kvtab *t)
{
    return (uint64_t)t->keys * 5 >= (uint64_t)t->places * 4;
}

static int index_one(struct kvtab *t, uint32_t off, uint32_t hash)
{
    struct kvtab_entry e, old;
    struct kvtab_view v;
    struct kvtab_place *place;

    if (is_full(t) && grow(t) < 0) /* which may move the arena too */
        return -ENOMEM;
    e = decode(t->arena + off);
    v = kvtab_view(t);
    place = &t->index[probe(&v, e.key, hash)];
    if (place->off == 0) {
        *place = (struct kvtab_place){hash, off};
        t->keys++;
        return 0;
    }
    old = decode(t->arena + place->off);
    if (stamp_less(e.stamp, old.stamp)) {
        t->dead += e.len;
        return 0;
    }
    t->dead += old.len;
    place->off = off;
    return 0;
}

int kvtab_index(struct kvtab *t)
{
    uint32_t off[BATCH + 1], hash[BATCH];

    while (t->indexed < t->used) {
        unsigned n = 0;

        off[0] = t->indexed;
        while (n < BATCH && off[n] < t->used) {
            struct kvtab_entry e = decode(t->arena + off[n]);

            hash[n] = kvtab_hash(e.key);
            if (t->places > 0)
                __builtin_prefetch(&t->index[kvtab_home(hash[n], t->places)], 1);
            off[n + 1] = off[n] + e.len;
            n++;
        }
        for (unsigned i = 0; i < n; i++) {
            if (index_one(t, off[i], hash[i]) < 0)
                return -ENOMEM;
            t->indexed = off[i + 1];
        }
    }
    return 0;
}

bool kvtab_wants_squeeze(const struct kvtab *t)
{
    return t->dead > SQUEEZE_MIN && t->dead > t->used / 2;
}

void kvtab_squeeze(struct kvtab *t, uint32_t **marks, size_t count)
{
    struct kvtab_view v = kvtab_view(t);
    uint32_t to = KVTAB_BASE, len;
    size_t m = 0;

    assert(t->indexed == t->used && t->used >= KVTAB_BASE);
    for (uint32_t at = KVTAB_BASE; at < t->used; at += len) {
        struct kvtab_entry e = decode(t->arena + at);
        struct kvtab_place *place = &t->index[probe(&v, e.key, kvtab_hash(e.key))];

        len = e.len;
        while (m < count && *marks[m] <= at)
            *marks[m++] = to;
        /* What was moved before has an offset below `at`, so it is never taken for this one. */
        if (place->off != at)
            continue;
        memmove(t->arena + to, t->arena + at, len);
        place->off = to;
        to += len;
    }
    while (m < count)
        *marks[m++] = to;
    t->used = t->indexed = to;
    t->dead = 0;
}

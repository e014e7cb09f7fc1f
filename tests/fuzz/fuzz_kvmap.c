/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client reads of a mapping that is not what it should be: a small good one with some bytes changed, or the
 * input itself. Nothing outside of it is read, no get takes for ever, and what comes out is no longer than a value. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/kvmap.h"

#define KEYS 12
#define PATCH 6 /* bytes of input a change: where (2), and what (4) */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct span key_of(unsigned i, char text[16])
{
    snprintf(text, 16, "key-%u", i);
    return span_of(text);
}

static void fill(struct kvtab *t, unsigned from, unsigned to)
{
    char key[16], value[100];

    for (unsigned i = from; i < to; i++) {
        size_t n = (size_t)snprintf(value, sizeof(value), "value %u %*u", i, (int)(i * 7), i);

        if (kvtab_add(t, (struct kvtab_stamp){0}, key_of(i, key), (struct span){value, n}) < 0)
            abort();
    }
    if (kvtab_index(t) < 0)
        abort();
}

static size_t append(char *to, size_t at, const void *from, size_t n)
{
    memcpy(to + at, from, n);
    return at + n;
}

/* As server/kvs_share.c lays it out, but with nothing between the parts. */
static char *make_good(size_t *size)
{
    struct kvtab t[KVMAP_TABLES] = {0};
    struct kvmap_head h = {.magic = KVMAP_MAGIC, .slots = 2, .waiting = sizeof(h)};
    uint64_t at = sizeof(h) + 2 * sizeof(uint32_t);
    char *base;

    fill(&t[0], 0, KEYS - 2);
    fill(&t[1], KEYS - 4, KEYS);
    for (unsigned i = 0; i < KVMAP_TABLES; i++) {
        h.table[i] = (struct kvmap_table){at, at + t[i].places * sizeof(struct kvtab_place), t[i].places, t[i].used};
        h.places[i] = t[i].places;
        at = h.table[i].arena + t[i].used;
    }
    h.size = *size = at;
    base = calloc(1, at);
    if (base == NULL)
        abort();
    at = append(base, 0, &h, sizeof(h)) + 2 * sizeof(uint32_t);
    for (unsigned i = 0; i < KVMAP_TABLES; i++) {
        at = append(base, at, t[i].index, t[i].places * sizeof(struct kvtab_place));
        at = append(base, at, t[i].arena, t[i].used);
        kvtab_done(&t[i]);
    }
    return base;
}

static void read_all(const struct kvmap *m, bool is_good)
{
    char key[16], *value = malloc(KVTAB_VALUE_MAX);

    for (unsigned i = 0; value != NULL && i < KEYS + 1; i++) {
        size_t n = 0;
        int rc = kvmap_get(m, key_of(i, key), value, &n);

        assert(rc == 0 || rc == -ENOENT || rc == -EAGAIN || rc == -ESTALE);
        assert(n <= KVTAB_VALUE_MAX);
        assert(!is_good || rc == (i < KEYS ? 0 : -ENOENT));
        assert(!is_good || rc < 0 || memcmp(value, "value ", 6) == 0);
    }
    free(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_raw = size > 0 && data[0] == 'p', is_good = !is_raw && size < PATCH;
    struct kvmap m;
    size_t n = size;
    char *base;

    base = is_raw ? malloc(size) : make_good(&n);
    if (base == NULL)
        return 0;
    if (is_raw)
        memcpy(base, data, size);
    for (size_t at = 0; !is_raw && at + PATCH <= size; at += PATCH) {
        size_t where = (size_t)(data[at] | data[at + 1] << 8) % (n - 3);

        memcpy(base + where, data + at + 2, 4);
    }
    if (kvmap_open(&m, base, n, 1) == 0)
        read_all(&m, is_good);
    else
        assert(!is_good);
    free(base);
    return 0;
}

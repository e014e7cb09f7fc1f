/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/buf.h"
#include "common/kvtab.h"
#include "common/util.h"
#include "server/kvs.h"

static int put(struct kvs *k, unsigned slot, const char *key, const char *value)
{
    return kvs_put(k, slot, span_of(key), span_of(value));
}

/* NULL: not found. */
static const char *get(struct kvs *k, unsigned slot, const char *key)
{
    static char text[8][KVTAB_VALUE_MAX + 1];
    static unsigned turn;
    struct span v;
    char *p = text[turn++ % 8];

    if (kvs_get(k, slot, span_of(key), &v) < 0)
        return NULL;
    snprintf(p, sizeof(text[0]), "%.*s", (int)v.n, v.p);
    return p;
}

#define expect_get(k, slot, key, want)                                                                                 \
    do {                                                                                                               \
        const char *got_ = get(k, slot, key);                                                                          \
        cr_expect(got_ != NULL && strcmp(got_, want) == 0, "%s: got %s, want %s", key, got_ ? got_ : "nothing", want); \
    } while (0)

Test(kvs, own_puts_are_seen_at_once_by_their_rank_alone)
{
    struct kvs *k = kvs_new(2, 1, false);

    cr_expect_eq(put(k, 0, "a", "1"), 0);
    expect_get(k, 0, "a", "1");
    cr_expect_null(get(k, 1, "a"));
    cr_expect_eq(put(k, 0, "a", "2"), 0);
    expect_get(k, 0, "a", "2");
    cr_expect_eq(kvs_commit(k, 0, 0, 0), 0);
    expect_get(k, 0, "a", "2");
    cr_expect_null(get(k, 1, "a"));
    cr_expect_eq(kvs_install(k), 0);
    expect_get(k, 0, "a", "2");
    expect_get(k, 1, "a", "2");
    kvs_free(k);
}

Test(kvs, local_keys_and_preputs_stay_on_the_node)
{
    struct kvs *k = kvs_new(2, 2, true);
    char big[PMI_VALUE_MAX];

    cr_expect_eq(kvs_preput(k, span_of("map"), span_of("x")), 0);
    expect_get(k, 0, "map", "x");
    cr_expect_eq(put(k, 0, "local::n", "5"), 0);
    expect_get(k, 1, "local::n", "5");
    cr_expect_eq(put(k, 1, "local::n", "6"), 0);
    expect_get(k, 0, "local::n", "6");
    cr_expect_eq(kvs_commit(k, 0, 0, 0), 0);
    cr_expect_eq(kvs_commit(k, 1, 1, 0), 0);
    cr_expect_eq(kvs_install(k), 0);
    cr_expect_eq(kvs_unsent(k, 0, 65536).n, 0);
    cr_expect_eq(kvs_unsent(k, 1, 65536).n, 0);
    /* A task's put hides a preput. */
    cr_expect_eq(put(k, 0, "map", "y"), 0);
    cr_expect_eq(kvs_commit(k, 0, 0, 0), 0);
    cr_expect_eq(kvs_install(k), 0);
    expect_get(k, 1, "map", "y");

    memset(big, 'v', sizeof(big));
    cr_expect_eq(kvs_preput(k, span_of(""), span_of("x")), -EINVAL);
    cr_expect_eq(kvs_preput(k, span_of("a\nb"), span_of("x")), -EINVAL);
    cr_expect_eq(kvs_preput(k, span_of("a"), (struct span){"\0", 1}), -EINVAL);
    cr_expect_eq(kvs_preput(k, span_of("a"), (struct span){big, PMI_VALUE_MAX}), -EINVAL);
    cr_expect_eq(kvs_preput(k, span_of("a"), (struct span){big, PMI_VALUE_MAX - 1}), 0);
    kvs_free(k);
}

Test(kvs, same_key_latest_round_then_higher_rank_then_last_put)
{
    struct kvs *k = kvs_new(3, 1, false);

    put(k, 2, "a", "r2");
    put(k, 1, "a", "r1");
    put(k, 2, "a", "r2 again");
    kvs_commit(k, 2, 2, 0);
    kvs_commit(k, 1, 1, 0);
    kvs_install(k);
    expect_get(k, 0, "a", "r2 again");
    /* A later barrier of the same WORLD round, a lower rank: hidden. */
    put(k, 0, "a", "r0");
    kvs_commit(k, 0, 0, 0);
    kvs_install(k);
    expect_get(k, 1, "a", "r2 again");
    put(k, 0, "a", "r0 round 1");
    kvs_commit(k, 0, 0, 1);
    kvs_install(k);
    expect_get(k, 2, "a", "r0 round 1");
    /* Two commits of one rank in one round: the last. */
    put(k, 1, "a", "x");
    kvs_commit(k, 1, 1, 1);
    put(k, 1, "a", "y");
    kvs_commit(k, 1, 1, 1);
    kvs_install(k);
    expect_get(k, 0, "a", "y");
    kvs_free(k);
}

/* A put between commit and install, as by a second session of the rank, goes with the next commit. */
Test(kvs, put_between_commit_and_install)
{
    struct kvs *k = kvs_new(2, 2, true);
    struct span block;

    put(k, 0, "a", "1");
    kvs_commit(k, 0, 0, 0);
    put(k, 0, "b", "2");
    block = kvs_unsent(k, 0, 2048);
    cr_expect_eq(block.n, KVTAB_HEADER + 2);
    kvs_install(k);
    expect_get(k, 1, "a", "1");
    cr_expect_null(get(k, 1, "b"));
    expect_get(k, 0, "b", "2");
    kvs_commit(k, 0, 0, 1);
    block = kvs_unsent(k, 0, 2048);
    cr_expect_eq(block.n, KVTAB_HEADER + 2, "only what is new goes up");
    kvs_install(k);
    expect_get(k, 1, "b", "2");
    kvs_free(k);
}

Test(kvs, blocks_go_to_the_other_edges_only_and_are_whole_entries)
{
    struct kvs *a = kvs_new(1, 1, true), *b = kvs_new(1, 3, true);
    char key[32], value[200];
    size_t total = 0, up = 0, side = 0;
    struct span s;

    memset(value, 'v', sizeof(value));
    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "key-%d", i);
        cr_assert_eq(kvs_put(a, 0, span_of(key), (struct span){value, sizeof(value)}), 0);
    }
    kvs_commit(a, 0, 7, 0);
    while ((s = kvs_unsent(a, 0, 2048)).n > 0) {
        cr_expect_leq(s.n, 2048);
        cr_expect_eq(kvtab_check(s), 0);
        cr_assert_eq(kvs_append(b, 1, s, NULL), 0);
        total += s.n;
    }
    put(b, 0, "mine", "1");
    kvs_commit(b, 0, 8, 0);
    cr_expect_null(get(b, 0, "key-5"), "not before install");
    s = kvs_unsent(b, 1, 2048);
    cr_expect_eq(s.n, KVTAB_HEADER + 5, "what came from child 1 does not go back");
    while ((s = kvs_unsent(b, 0, 3000)).n > 0)
        up += s.n;
    while ((s = kvs_unsent(b, 2, 65536)).n > 0)
        side += s.n;
    cr_expect_eq(up, total + KVTAB_HEADER + 5);
    cr_expect_eq(side, up);
    cr_expect_eq(kvs_unsent(b, 1, 2048).n, 0);
    kvs_install(b);
    cr_expect_not_null(get(b, 0, "key-99"));
    kvs_free(a);
    kvs_free(b);
}

static void add_entry(struct buf *b, unsigned klen, unsigned vlen, const char *key, size_t keep)
{
    uint8_t h[KVTAB_HEADER] = {0};
    char fill[70000];
    size_t n = strlen(key);

    memset(fill, 'k', sizeof(fill));
    memcpy(fill, key, n);
    h[0] = (uint8_t)vlen;
    h[1] = (uint8_t)(vlen >> 8);
    h[8] = (uint8_t)klen;
    buf_add(b, h, sizeof(h));
    buf_add(b, fill, keep);
}

static const struct {
    const char *name;
    unsigned klen, vlen;
    const char *key;
    size_t keep; /* bytes that follow the header */
    int rc;
} blocks[] = {
    {"plain", 3, 5, "abc", 8, 0},
    {"empty value", 3, 0, "abc", 3, 0},
    {"longest", 63, 1023, "abc", 1086, 0},
    {"key too long", 64, 0, "abc", 64, -EPROTO},
    {"value too long", 3, 1024, "abc", 1027, -EPROTO},
    {"value far too long", 3, 65535, "abc", 65538, -EPROTO},
    {"no key", 0, 5, "", 5, -EPROTO},
    {"cut", 3, 5, "abc", 7, -EPROTO},
    {"header alone", 3, 5, "", 0, -EPROTO},
    {"newline in key", 3, 5, "a\nc", 8, -EPROTO},
    {"newline in value", 1, 5, "a12\n", 6, -EPROTO},
    {"something behind", 3, 5, "abc", 9, -EPROTO},
};

Test(kvs, append_refuses_what_is_not_whole_entries)
{
    struct kvs *k = kvs_new(1, 2, false);

    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
        struct buf b = {0};
        struct err err = {0};
        struct kvs_stats before = kvs_stats(k);
        int rc;

        add_entry(&b, 2, 2, "good", 4);
        add_entry(&b, blocks[i].klen, blocks[i].vlen, blocks[i].key, blocks[i].keep);
        rc = kvs_append(k, 1, buf_span(&b), &err);
        cr_expect_eq(rc, blocks[i].rc, "%s: %d", blocks[i].name, rc);
        cr_expect_eq(err.code, rc);
        cr_expect_eq(kvs_install(k), 0);
        if (rc < 0)
            cr_expect_eq(kvs_stats(k).keys, before.keys, "%s left something", blocks[i].name);
        buf_done(&b);
    }
    cr_expect_eq(kvs_append(k, 1, (struct span){"\0\0\0", 3}, NULL), -EPROTO);
    cr_expect_eq(kvs_append(k, 1, (struct span){"", 0}, NULL), 0);
    kvs_free(k);
}

/* ---- several nodes in one process ---- */

#define NODES 24
#define LOCAL 3

struct net {
    unsigned nodes;
    struct kvs *kvs[NODES];
    int parent[NODES];
    unsigned kid_edge[NODES]; /* which edge of its parent it is */
    unsigned nkids[NODES];
};

static void net_init(struct net *n, unsigned nodes)
{
    memset(n, 0, sizeof(*n));
    n->nodes = nodes;
    for (unsigned i = 1; i < nodes; i++) {
        n->parent[i] = rand() % (int)i;
        n->kid_edge[i] = ++n->nkids[n->parent[i]];
    }
    for (unsigned i = 0; i < nodes; i++)
        n->kvs[i] = kvs_new(LOCAL, n->nkids[i] + 1, i > 0);
}

static void net_done(struct net *n)
{
    for (unsigned i = 0; i < n->nodes; i++)
        kvs_free(n->kvs[i]);
}

static size_t carry(struct kvs *from, unsigned out, struct kvs *to, unsigned in)
{
    size_t sum = 0;
    struct span s;

    while ((s = kvs_unsent(from, out, 2048 + (size_t)(rand() % 3000))).n > 0) {
        cr_assert_eq(kvs_append(to, in, s, NULL), 0);
        sum += s.n;
    }
    return sum;
}

/* One WORLD barrier: up from the last node to the first, install, down again. Numbers grow away from the root. */
static void world_barrier(struct net *n, uint64_t round)
{
    for (unsigned i = n->nodes; i-- > 0;) {
        for (unsigned t = 0; t < LOCAL; t++)
            cr_assert_eq(kvs_commit(n->kvs[i], t, i * LOCAL + t, round), 0);
        if (i > 0)
            carry(n->kvs[i], 0, n->kvs[n->parent[i]], n->kid_edge[i]);
    }
    for (unsigned i = 0; i < n->nodes; i++) {
        if (i > 0)
            carry(n->kvs[n->parent[i]], n->kid_edge[i], n->kvs[i], 0);
        cr_assert_eq(kvs_install(n->kvs[i]), 0);
    }
}

Test(kvs, random_trees_agree)
{
    static struct net n;
    enum { KEYS = 40 };

    for (unsigned seed = 1; seed <= 25; seed++) {
        char want[KEYS][32] = {{0}};

        srand(seed);
        net_init(&n, 1 + (unsigned)rand() % NODES);
        for (unsigned round = 0; round < 12; round++) {
            /* Ranks ascending, each several times: the last written here is what must win. */
            for (unsigned r = 0; r < n.nodes * LOCAL; r++)
                for (int i = rand() % 4; i > 0; i--) {
                    int key = rand() % KEYS;
                    char name[16];

                    snprintf(name, sizeof(name), "k%d", key);
                    snprintf(want[key], sizeof(want[key]), "%u.%u.%d", round, r, rand());
                    cr_assert_eq(put(n.kvs[r / LOCAL], r % LOCAL, name, want[key]), 0);
                }
            world_barrier(&n, round);
            for (unsigned i = 0; i < n.nodes; i++)
                for (int key = 0; key < KEYS; key++) {
                    char name[16];

                    snprintf(name, sizeof(name), "k%d", key);
                    if (want[key][0] != '\0')
                        expect_get(n.kvs[i], (unsigned)rand() % LOCAL, name, want[key]);
                }
        }
        net_done(&n);
    }
}

/* Every edge carries each entry once: the root's own side of a flat tree of N nodes receives N-1 and sends N-1 to
 * each. */
Test(kvs, nothing_goes_twice_over_an_edge)
{
    static struct net n;

    srand(4);
    net_init(&n, 10);
    for (unsigned i = 0; i < n.nodes; i++)
        put(n.kvs[i], 0, (char[]){(char)('a' + i), 0}, "v");
    world_barrier(&n, 0);
    for (unsigned i = 1; i < n.nodes; i++) {
        cr_expect_eq(carry(n.kvs[i], 0, n.kvs[n.parent[i]], n.kid_edge[i]), 0);
        cr_expect_eq(carry(n.kvs[n.parent[i]], n.kid_edge[i], n.kvs[i], 0), 0);
    }
    net_done(&n);
}

static size_t footprint(const struct net *n)
{
    size_t sum = 0;

    for (unsigned i = 0; i < n->nodes; i++) {
        struct kvs_stats s = kvs_stats(n->kvs[i]);

        sum += s.arena_bytes + s.index_bytes;
    }
    return sum;
}

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define ROUNDS 10000
#define MANY 100000u
#else
#define ROUNDS 100000
#define MANY 1000000u
#endif

Test(kvs, memory_is_flat_over_many_rounds)
{
    static struct net n;
    size_t early = 0;
    char key[32], value[64];

    srand(2);
    net_init(&n, 5);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < n.nodes; i++) {
            snprintf(key, sizeof(key), "card-%u", i);
            snprintf(value, sizeof(value), "round %u of node %u", round, i);
            put(n.kvs[i], round % LOCAL, key, value);
        }
        world_barrier(&n, round);
        if (round == 2000)
            early = footprint(&n);
    }
    cr_expect_leq(footprint(&n), early, "%zu bytes after 2,000 rounds, %zu at the end", early, footprint(&n));
    cr_expect_lt(early, 5 * 200000);
    for (unsigned i = 0; i < n.nodes; i++) {
        snprintf(value, sizeof(value), "round %u of node 4", ROUNDS - 1);
        expect_get(n.kvs[i], 0, "card-4", value);
        cr_expect_eq(kvs_stats(n.kvs[i]).keys, 5);
    }
    net_done(&n);
}

/* Puts without a barrier, and local:: keys, over and over: no growth either. */
Test(kvs, memory_is_flat_without_a_barrier)
{
    struct kvs *k = kvs_new(1, 2, true);
    char value[32];

    for (int i = 0; i < 200000; i++) {
        snprintf(value, sizeof(value), "%d", i);
        put(k, 0, i % 2 ? "a" : "b", value);
        put(k, 0, "local::x", value);
    }
    cr_expect_lt(kvs_stats(k).arena_bytes, 200000);
    expect_get(k, 0, "a", "199999");
    kvs_commit(k, 0, 0, 0);
    cr_expect_eq(kvs_unsent(k, 0, 2048).n, 2 * (KVTAB_HEADER + 1 + 6), "superseded puts are not sent");
    kvs_free(k);
}

/* What waits for room on an edge ends where the log ended when it was to be sent, whatever came since. */
Test(kvs, what_is_sent_later_has_nothing_of_what_came_since)
{
    struct kvs *k = kvs_new(1, 3, true), *b = kvs_new(1, 1, true);
    uint32_t end;
    struct span s;

    put(k, 0, "a", "first");
    kvs_commit(k, 0, 0, 0);
    end = kvs_end(k);
    kvs_hold(k, true);
    kvs_install(k);
    for (int i = 1; i <= 5000; i++) { /* enough to be squeezed out otherwise */
        put(k, 0, "a", "later");
        kvs_commit(k, 0, 0, (uint64_t)i);
        kvs_install(k);
    }
    cr_expect(kvs_has_unsent(k, 1, end));
    s = kvs_unsent_to(k, 1, end, 4096);
    cr_expect_eq(s.n, KVTAB_HEADER + 1 + 5);
    cr_assert_eq(kvs_append(b, 0, s, NULL), 0);
    kvs_install(b);
    expect_get(b, 0, "a", "first");
    cr_expect(!kvs_has_unsent(k, 1, end) && kvs_has_unsent(k, 1, kvs_end(k)));
    cr_expect_not(kvs_has_unsent(b, 0, kvs_end(b)), "it came over this edge");
    kvs_hold(k, false);
    kvs_install(k);
    cr_expect_lt(kvs_stats(k).arena_bytes, 400000);
    carry(k, 1, b, 0);
    kvs_install(b);
    expect_get(b, 0, "a", "later");
    kvs_free(k);
    kvs_free(b);
}

/* An edge that nobody asks keeps its place while the others go on. */
Test(kvs, slow_edge_gets_everything_in_the_end)
{
    struct kvs *k = kvs_new(1, 3, false), *late = kvs_new(1, 1, true);
    char key[16], value[32];

    for (int i = 0; i < 20000; i++) {
        snprintf(key, sizeof(key), "k%d", i % 50);
        snprintf(value, sizeof(value), "%d", i);
        put(k, 0, key, value);
        kvs_commit(k, 0, 0, (uint64_t)i);
        while (kvs_unsent(k, 1, 4096).n > 0)
            ;
        kvs_install(k);
    }
    cr_expect_lt(kvs_stats(k).arena_bytes, 200000);
    carry(k, 2, late, 0);
    kvs_install(late);
    for (int i = 0; i < 50; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        snprintf(value, sizeof(value), "%d", 19950 + i);
        expect_get(late, 0, key, value);
    }
    kvs_free(k);
    kvs_free(late);
}

Test(kvs, overhead_a_key)
{
    struct kvs *k = kvs_new(1, 1, false);
    char key[32];
    struct kvs_stats s;

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(key, sizeof(key), "P%u-card", i);
        cr_assert_eq(put(k, 0, key, "description#host$port#45045$ifname#10.0.0.1$"), 0);
    }
    cr_assert_eq(kvs_commit(k, 0, 0, 0), 0);
    cr_assert_eq(kvs_install(k), 0);
    s = kvs_stats(k);
    cr_expect_eq(s.keys, MANY);
    cr_expect_leq(s.arena_bytes + s.index_bytes - s.live_bytes, (size_t)MANY * 32, "%zu bytes a key",
                  (s.arena_bytes + s.index_bytes - s.live_bytes) / MANY);
    expect_get(k, 0, "P999-card", "description#host$port#45045$ifname#10.0.0.1$");
    cr_expect_null(get(k, 0, "P9999999-card"));
    kvs_free(k);
}

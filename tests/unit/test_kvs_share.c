/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/kvmap.h"
#include "common/util.h"
#include "server/kvs.h"

/* A task's mapping. */
struct view {
    struct kvmap map;
    void *base;
    size_t size;
};

static bool view_open(struct view *v, int fd, uint32_t slot)
{
    struct stat st;

    cr_assert(fd >= 0, "%s", strerror(-fd));
    cr_assert_eq(fstat(fd, &st), 0);
    v->size = (size_t)st.st_size;
    v->base = mmap(NULL, v->size, PROT_READ, MAP_SHARED, fd, 0);
    cr_assert_neq(v->base, MAP_FAILED);
    return kvmap_open(&v->map, v->base, v->size, slot) == 0;
}

static void view_close(struct view *v)
{
    munmap(v->base, v->size);
}

/* NULL: the server is to be asked. */
static const char *look(const struct view *v, const char *key)
{
    static char text[8][KVTAB_VALUE_MAX + 1];
    static unsigned turn;
    char *p = text[turn++ % 8];
    size_t n = 0;

    if (kvmap_get(&v->map, span_of(key), p, &n) < 0)
        return NULL;
    p[n] = '\0';
    return p;
}

#define expect_look(v, key, want)                                                                                      \
    do {                                                                                                               \
        const char *got_ = look(v, key);                                                                               \
        cr_expect(got_ != NULL && strcmp(got_, want) == 0, "%s: got %s, want %s", key, got_ ? got_ : "nothing", want); \
    } while (0)

static void put(struct kvs *k, unsigned slot, const char *key, const char *value)
{
    cr_assert_eq(kvs_put(k, slot, span_of(key), span_of(value)), 0);
}

static void barrier(struct kvs *k, unsigned slots, uint64_t round)
{
    for (unsigned i = 0; i < slots; i++)
        cr_assert_eq(kvs_commit(k, i, i, round), 0);
    cr_assert_eq(kvs_install(k), 0);
}

Test(kvs_share, shows_what_all_may_read_and_no_more)
{
    struct kvs *k = kvs_new(2, 1, false);
    struct view v, w;

    cr_assert_eq(kvs_preput(k, span_of("map"), span_of("x")), 0);
    put(k, 0, "old", "1");
    barrier(k, 2, 0);
    put(k, 1, "early", "waits");
    cr_assert(view_open(&v, kvs_map(k), 0));
    cr_assert(view_open(&w, kvs_map(k), 1));
    expect_look(&v, "map", "x");
    expect_look(&v, "old", "1");
    cr_expect_null(look(&v, "early"));
    cr_expect_null(look(&w, "early"), "put before there was a map");
    put(k, 0, "old", "2");
    cr_expect_null(look(&v, "old"), "its own put, of which only the server knows");
    expect_look(&w, "old", "1");
    put(k, 0, "local::n", "5");
    expect_look(&w, "local::n", "5");
    put(k, 1, "local::n", "6");
    expect_look(&v, "local::n", "6");
    put(k, 0, "map", "y");
    expect_look(&w, "map", "x");
    barrier(k, 2, 1);
    expect_look(&v, "old", "2");
    expect_look(&w, "old", "2");
    expect_look(&w, "map", "y");
    expect_look(&v, "early", "waits");
    cr_expect_null(look(&v, "nobody"));
    view_close(&w);
    kvs_free(k);
    cr_expect_eq(kvmap_get(&v.map, span_of("old"), (char[KVTAB_VALUE_MAX]){0}, &(size_t){0}), -ESTALE);
    view_close(&v);
}

/* What was put meanwhile is no part of a barrier that others complete. */
Test(kvs_share, own_puts_stay_hidden_until_they_are_installed)
{
    struct kvs *k = kvs_new(2, 1, false);
    struct view v;

    cr_assert(view_open(&v, kvs_map(k), 0));
    put(k, 0, "a", "1");
    cr_assert_eq(kvs_commit(k, 0, 0, 0), 0);
    cr_expect_null(look(&v, "a"));
    put(k, 0, "a", "2");
    cr_assert_eq(kvs_install(k), 0);
    cr_expect_null(look(&v, "a"), "the server has a 2 for it");
    barrier(k, 2, 1);
    expect_look(&v, "a", "2");
    view_close(&v);
    kvs_free(k);
}

static void big(char *key, char *value, unsigned i)
{
    snprintf(key, 32, "key-%u", i);
    memset(value, 'a' + (int)(i % 26), KVTAB_VALUE_MAX);
    value[i % 5 == 0 ? KVTAB_VALUE_MAX : i % 200] = '\0';
}

/* A reader notices that it has to ask again, and what it has mapped stays readable. */
Test(kvs_share, grows_into_other_files)
{
    struct kvs *k = kvs_new(1, 1, false);
    char key[32], value[KVTAB_VALUE_MAX + 1];
    unsigned moves = 0;
    struct view v;

    cr_assert(view_open(&v, kvs_map(k), 0));
    for (unsigned i = 0; i < 60000; i++) {
        big(key, value, i);
        put(k, 0, key, value);
        if (i % 97 != 0)
            continue;
        barrier(k, 1, i);
        if (look(&v, key) == NULL) {
            moves++;
            view_close(&v);
            cr_assert(view_open(&v, kvs_map(k), 0));
        }
        expect_look(&v, key, value);
    }
    barrier(k, 1, 60000);
    cr_expect(moves >= 1 && moves <= 5, "%u moves", moves);
    view_close(&v);
    cr_assert(view_open(&v, kvs_map(k), 0));
    for (unsigned i = 0; i < 60000; i++) {
        big(key, value, i);
        expect_look(&v, key, value);
    }
    view_close(&v);
    kvs_free(k);
}

/* Over and over the same keys: squeezed where they lie, for one mapping from the first to the last. */
Test(kvs_share, squeezing_needs_no_other_file)
{
    struct kvs *k = kvs_new(1, 2, true);
    char key[32], value[64];
    struct view v;

    cr_assert(view_open(&v, kvs_map(k), 0));
    for (unsigned round = 0; round < 20000; round++) {
        for (unsigned i = 0; i < 20; i++) {
            snprintf(key, sizeof(key), "key-%u", i);
            snprintf(value, sizeof(value), "round %u of key %u", round, i);
            put(k, 0, key, value);
        }
        put(k, 0, "local::r", value);
        barrier(k, 1, round);
        snprintf(key, sizeof(key), "key-%u", round % 20);
        snprintf(value, sizeof(value), "round %u of key %u", round, round % 20);
        expect_look(&v, key, value);
    }
    cr_expect_leq(kvs_stats(k).arena_bytes, 200000);
    view_close(&v);
    kvs_free(k);
}

/* --- reading while it changes ----------------------------------------------------------------------------------- */

#define RACE_KEYS 50
#define RACE_ROUNDS 4000
#define RACE_READERS 3

struct race {
    _Atomic(int) fd;             /* of a copy: the reader closes it; -1: there is none to be had now */
    _Atomic(uint32_t) installed; /* rounds */
    atomic_bool over;
    _Atomic(uint32_t) found, missed, moved, bad;
};

/* "ROUND:KEY:" and filler that depends on both, so that a value of two halves is none. */
static size_t race_value(char *value, uint32_t round, unsigned key)
{
    size_t n = (size_t)snprintf(value, KVTAB_VALUE_MAX + 1, "%u:%u:", round, key), want = n + (round * 37 + key) % 700;

    memset(value + n, (int)('a' + (round + key) % 26), want - n);
    value[want] = '\0';
    return want;
}

static void race_get(struct race *r, struct view *v, unsigned i)
{
    char key[32], value[KVTAB_VALUE_MAX + 1], want[KVTAB_VALUE_MAX + 1];
    uint32_t before = atomic_load(&r->installed), round;
    size_t n = 0;
    int rc;

    snprintf(key, sizeof(key), "key-%u", i);
    rc = kvmap_get(&v->map, span_of(key), value, &n);
    if (rc == -ESTALE) {
        int fd = atomic_exchange(&r->fd, -1);

        if (fd < 0)
            return;
        view_close(v);
        cr_assert(view_open(v, fd, 1));
        close(fd);
        atomic_fetch_add(&r->moved, 1);
        return;
    }
    if (rc < 0) {
        atomic_fetch_add(&r->missed, 1);
        if (rc != -EAGAIN) /* every key is there from the first round on */
            atomic_fetch_add(&r->bad, 1);
        return;
    }
    value[n] = '\0';
    round = (uint32_t)strtoul(value, NULL, 10);
    if (round < before || race_value(want, round, i) != n || strcmp(value, want) != 0)
        atomic_fetch_add(&r->bad, 1);
    atomic_fetch_add(&r->found, 1);
}

static void *reader(void *arg)
{
    struct race *r = arg;
    struct view v;
    int fd;

    while ((fd = atomic_exchange(&r->fd, -1)) < 0)
        sched_yield();
    cr_assert(view_open(&v, fd, 1));
    close(fd);
    for (unsigned i = 0; !atomic_load(&r->over); i++)
        race_get(r, &v, i % RACE_KEYS);
    view_close(&v);
    return NULL;
}

static void race_round(struct kvs *k, uint32_t round)
{
    char key[32], value[KVTAB_VALUE_MAX + 1];

    for (unsigned i = 0; i < RACE_KEYS; i++) {
        snprintf(key, sizeof(key), "key-%u", i);
        race_value(value, round, i);
        put(k, 0, key, value);
    }
    /* One that stays, so that it grows as well. */
    snprintf(key, sizeof(key), "more-%u", round);
    put(k, 0, key, value);
    snprintf(key, sizeof(key), "local::%u", round % 3);
    put(k, 0, key, value);
    barrier(k, 1, round);
}

Test(kvs_share, readers_see_whole_values_of_the_last_round_or_of_the_next)
{
    struct kvs *k = kvs_new(2, 1, false);
    struct race r = {.fd = -1};
    pthread_t t[RACE_READERS];

    race_round(k, 0);
    for (unsigned i = 0; i < RACE_READERS; i++)
        cr_assert_eq(pthread_create(&t[i], NULL, reader, &r), 0);
    for (uint32_t round = 1; round <= RACE_ROUNDS; round++) {
        int fd = dup(kvs_map(k));

        fd = atomic_exchange(&r.fd, fd);
        if (fd >= 0)
            close(fd);
        race_round(k, round);
        atomic_store(&r.installed, round);
    }
    atomic_store(&r.over, true);
    for (unsigned i = 0; i < RACE_READERS; i++)
        cr_assert_eq(pthread_join(t[i], NULL), 0);
    cr_expect_eq(r.bad, 0, "%u of %u gets were wrong", r.bad, r.found + r.missed);
    cr_expect_gt(r.found, 1000);
    cr_expect_geq(r.moved, 1, "never moved: not what this test is for");
    cr_log_info("%u found, %u missed, %u moves", r.found, r.missed, r.moved);
    if (r.fd >= 0)
        close(r.fd);
    kvs_free(k);
}

/* --- those who would rather write ------------------------------------------------------------------------------- */

static void try_to_alter(int fd, void *readable, size_t size)
{
    char byte = 'X';

    cr_expect_lt(write(fd, &byte, 1), 0);
    cr_expect_lt(pwrite(fd, &byte, 1, 0), 0);
    cr_expect_lt(ftruncate(fd, 0), 0);
    cr_expect_lt(ftruncate(fd, (off_t)size + 4096), 0);
    cr_expect_lt(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
    cr_expect_lt(fallocate(fd, 0, (off_t)size, 4096), 0);
    cr_expect_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    cr_expect_eq(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    cr_expect_lt(mprotect(readable, size, PROT_READ | PROT_WRITE), 0);
    cr_expect_lt(madvise(readable, 4096, MADV_REMOVE), 0);
}

Test(kvs_share, a_task_cannot_alter_what_others_read)
{
    struct kvs *k = kvs_new(1, 1, false);
    char path[32];
    struct view v;
    int fd, again;

    put(k, 0, "a", "1");
    barrier(k, 1, 0);
    fd = dup(kvs_map(k)); /* the same open file that a task gets */
    cr_assert(view_open(&v, fd, 0));
    try_to_alter(fd, v.base, v.size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    again = open(path, O_RDWR);
    if (again >= 0) {
        try_to_alter(again, v.base, v.size);
        close(again);
    }
    cr_expect_lt(open(path, O_RDWR | O_TRUNC), 0);
    expect_look(&v, "a", "1");
    put(k, 0, "a", "2");
    barrier(k, 1, 1);
    expect_look(&v, "a", "2");
    view_close(&v);
    close(fd);
    kvs_free(k);
}

/* --- without room ----------------------------------------------------------------------------------------------- */

/* A limit on files that would end the process by a signal. */
Test(kvs_share, no_file_no_map)
{
    struct kvs *k = kvs_new(1, 1, false);
    struct rlimit small = {65536, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
    char key[32], value[KVTAB_VALUE_MAX + 1];
    struct view v;
    struct span got;

    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    cr_expect_eq(kvs_map(k), -EFBIG);
    put(k, 0, "a", "1");
    barrier(k, 1, 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    cr_assert(view_open(&v, kvs_map(k), 0));
    expect_look(&v, "a", "1");
    /* It cannot grow any more: all goes on without. */
    small.rlim_cur = v.size;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (unsigned i = 0; i < 20000; i++) {
        big(key, value, i);
        put(k, 0, key, value);
        if (i % 100 == 0)
            barrier(k, 1, i);
    }
    barrier(k, 1, 20000);
    cr_expect_eq(kvmap_get(&v.map, span_of("a"), value, &(size_t){0}), -ESTALE);
    cr_expect_eq(kvs_map(k), -ENOMEM);
    cr_assert_eq(kvs_get(k, 0, span_of("key-19999"), &got), 0);
    cr_assert_eq(kvs_get(k, 0, span_of("a"), &got), 0);
    cr_expect(span_is(got, "1"));
    view_close(&v);
    kvs_free(k);
}

Test(kvs_share, overhead_a_key_is_what_it_is_without)
{
    struct kvs *k = kvs_new(1, 1, false);
    struct kvs_stats s;
    char key[32];

    cr_assert_geq(kvs_map(k), 0);
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(key, sizeof(key), "P%u-card", i);
        put(k, 0, key, "description#host$port#45045$ifname#10.0.0.1$");
    }
    barrier(k, 1, 0);
    s = kvs_stats(k);
    cr_expect_eq(s.keys, 100000);
    cr_expect_leq(s.arena_bytes + s.index_bytes - s.live_bytes, (size_t)100000 * 32, "%zu bytes a key",
                  (s.arena_bytes + s.index_bytes - s.live_bytes) / 100000);
    kvs_free(k);
}

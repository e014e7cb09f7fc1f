/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_store.h"

#include <errno.h>
#include <stdlib.h>
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include "common/limits.h"
#include "server/pmix_pair.h"

struct entry {
    UT_hash_handle hh;
    struct buf bytes;      /* a whole pair, */
    struct pmix_pair pair; /* which points into it */
    bool once;
};

struct waiter {
    struct waiter *next;
    struct pmix_asker who;
    struct buf keys;
    uint64_t deadline; /* 0: none */
};

struct pmix_store {
    pmix_store_answer_fn answer;
    void *arg;
    struct entry *entries; /* by key */
    size_t bytes;
    struct waiter *waiters; /* in the order in which they came */
    uint32_t waiting;
};

struct pmix_store *pmix_store_new(pmix_store_answer_fn answer, void *arg)
{
    struct pmix_store *s = calloc(1, sizeof(*s));

    if (s != NULL)
        *s = (struct pmix_store){.answer = answer, .arg = arg};
    return s;
}

static void entry_free(struct entry *e)
{
    buf_done(&e->bytes);
    free(e);
}

static void drop(struct pmix_store *s, struct entry *e)
{
    HASH_DELETE(hh, s->entries, e);
    s->bytes -= e->bytes.len;
    entry_free(e);
}

static void waiter_free(struct waiter *w)
{
    buf_done(&w->keys);
    free(w);
}

void pmix_store_free(struct pmix_store *s)
{
    struct entry *e, *next_entry;

    if (s == NULL)
        return;
    HASH_ITER(hh, s->entries, e, next_entry)
    {
        drop(s, e);
    }
    for (struct waiter *w = s->waiters, *next; w != NULL; w = next) {
        next = w->next;
        waiter_free(w);
    }
    free(s);
}

static struct entry *find(const struct pmix_store *s, struct span key)
{
    struct entry *e;

    HASH_FIND(hh, s->entries, key.p, key.n, e);
    return e;
}

static int add(struct pmix_store *s, const struct pmix_pair *p, bool once)
{
    struct entry *e = calloc(1, sizeof(*e));
    struct span view;

    if (e == NULL)
        return -ENOMEM;
    e->once = once;
    if (pmix_pair_add(&e->bytes, p) < 0) {
        free(e);
        return -ENOMEM;
    }
    view = buf_span(&e->bytes);
    (void)pmix_pair_next(&view, &e->pair);
    HASH_ADD_KEYPTR(hh, s->entries, e->pair.key.p, e->pair.key.n, e);
    if (e->hh.tbl == NULL) {
        entry_free(e);
        return -ENOMEM;
    }
    s->bytes += e->bytes.len;
    return 0;
}

/* May all of them be published? Counted as if none replaced another. */
static int check_room(const struct pmix_store *s, struct span pairs, bool once)
{
    size_t count = HASH_COUNT(s->entries);
    struct span rest = pairs;
    struct pmix_pair p;
    int rc;

    while ((rc = pmix_pair_next(&rest, &p)) == 1) {
        const struct entry *e = find(s, p.key);

        if (e != NULL && (once || e->once || e->pair.job != p.job))
            return -EEXIST;
        count++;
    }
    if (rc < 0)
        return rc;
    return count > PMIX_STORE_KEYS_MAX || pairs.n > PMIX_STORE_BYTES_MAX - s->bytes ? -ENOSPC : 0;
}

static void take_back(struct pmix_store *s, struct span pairs, size_t count)
{
    struct pmix_pair p;

    while (count-- > 0 && pmix_pair_next(&pairs, &p) == 1) {
        struct entry *e = find(s, p.key);

        if (e != NULL) /* else the key is there twice */
            drop(s, e);
    }
}

/* Only for want of memory old values are lost. */
static int add_all(struct pmix_store *s, struct span pairs, bool once)
{
    struct span rest = pairs;
    struct pmix_pair p;
    size_t done = 0;
    int rc = check_room(s, pairs, once);

    while (rc == 0 && pmix_pair_next(&rest, &p) == 1) {
        struct entry *old = find(s, p.key);

        if (old != NULL)
            drop(s, old);
        rc = add(s, &p, once);
        done += rc == 0;
    }
    if (rc < 0)
        take_back(s, pairs, done);
    return rc;
}

/* What there is of the keys, added to `out`; how many are missing. */
static int collect(const struct pmix_store *s, struct span keys, struct buf *out, size_t *missing)
{
    struct pmix_pair p;
    int rc;

    *missing = 0;
    while ((rc = pmix_pair_next(&keys, &p)) == 1) {
        const struct entry *e = find(s, p.key);

        *missing += e == NULL;
        if (e != NULL && (rc = pmix_pair_add(out, &e->pair)) < 0)
            return rc;
    }
    return rc;
}

static void take_once(struct pmix_store *s, struct span keys)
{
    struct pmix_pair p;

    while (pmix_pair_next(&keys, &p) == 1) {
        struct entry *e = find(s, p.key);

        if (e != NULL && e->once)
            drop(s, e);
    }
}

/* True: it was answered. */
static bool try_answer(struct pmix_store *s, const struct waiter *w, bool whole)
{
    struct buf found = {0};
    size_t missing;
    bool ok = collect(s, buf_span(&w->keys), &found, &missing) == 0 && (missing == 0 || !whole);

    if (ok) {
        take_once(s, buf_span(&w->keys));
        s->answer(&w->who, found.len > 0 ? 0 : -ENOENT, buf_span(&found), s->arg);
    }
    buf_done(&found);
    return ok;
}

int pmix_store_publish(struct pmix_store *s, struct span pairs, bool once)
{
    int rc = add_all(s, pairs, once);

    for (struct waiter **p = &s->waiters; rc == 0 && *p != NULL;) {
        struct waiter *w = *p;

        if (!try_answer(s, w, true)) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        s->waiting--;
        waiter_free(w);
    }
    return rc;
}

static int check_keys(struct span keys)
{
    struct pmix_pair p;
    int rc;

    while ((rc = pmix_pair_next(&keys, &p)) == 1) {
    }
    return rc;
}

int pmix_store_lookup(struct pmix_store *s, const struct pmix_asker *who, struct span pairs, bool wait,
                      uint64_t deadline)
{
    struct waiter **last = &s->waiters, *w;
    int rc = check_keys(pairs);

    if (rc < 0)
        return rc;
    w = calloc(1, sizeof(*w));
    if (w == NULL || (pairs.n > 0 && buf_add(&w->keys, pairs.p, pairs.n) < 0)) {
        free(w);
        return -ENOMEM;
    }
    w->who = *who;
    w->deadline = deadline;
    if (try_answer(s, w, wait)) {
        waiter_free(w);
        return 0;
    }
    if (!wait || s->waiting >= PMIX_WAITERS_MAX) {
        waiter_free(w);
        return wait ? -ENOSPC : -ENOMEM;
    }
    while (*last != NULL)
        last = &(*last)->next;
    *last = w;
    s->waiting++;
    return 0;
}

int pmix_store_unpublish(struct pmix_store *s, struct span pairs)
{
    struct pmix_pair p;
    int rc;

    while ((rc = pmix_pair_next(&pairs, &p)) == 1) {
        struct entry *e = find(s, p.key);

        if (e != NULL && e->pair.job == p.job)
            drop(s, e);
    }
    return rc;
}

uint64_t pmix_store_expire(struct pmix_store *s, uint64_t now)
{
    uint64_t next = 0;

    for (struct waiter **p = &s->waiters; *p != NULL;) {
        struct waiter *w = *p;

        if (w->deadline != 0 && w->deadline <= now) {
            *p = w->next;
            s->waiting--;
            s->answer(&w->who, -ETIMEDOUT, SPAN_NONE, s->arg);
            waiter_free(w);
            continue;
        }
        if (w->deadline != 0 && (next == 0 || w->deadline < next))
            next = w->deadline;
        p = &w->next;
    }
    return next;
}

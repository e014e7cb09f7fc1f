/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/kvs.h"

#include <assert.h>
#include <stdlib.h>
#include "common/kvtab.h"
#include "common/limits.h"
#include "common/util.h"
#include "server/kvs_share.h"

#define FROM_HERE UINT32_MAX /* origin of entries that this node's own tasks put */
#define LOCAL_PREFIX "local::"

/* One rank's puts since its last barrier. Those below `committed` are in the log too, and stay readable here until the
 * log is installed. */
struct waiting {
    struct kvtab tab;
    uint32_t committed;
    uint64_t round; /* of the last commit */
    uint32_t seq;   /* of the last entry of that round */
};

/* Entries of the log from `start` to the next run came over `edge`. */
struct run {
    uint32_t start, edge;
};

struct kvs {
    struct kvtab log;
    struct kvtab node; /* preputs and local:: keys */
    struct waiting *waiting;
    unsigned nlocal;
    uint32_t *mark; /* by edge: the log below it was sent, or came from there */
    unsigned edges;
    bool has_parent;
    struct run *runs; /* ascending by start; what is below every mark is dropped */
    size_t nruns, cap_runs;
    struct kvs_share *share; /* of log and node; NULL: nobody has asked for it */
    unsigned holds;          /* kvs_hold() */
    size_t held;             /* bytes of entries in all tables, against KVS_BYTES_MAX */
};

struct kvs *kvs_new(unsigned nlocal, unsigned edges, bool has_parent)
{
    struct kvs *k = calloc(1, sizeof(*k));

    assert(edges >= 1);
    if (k == NULL)
        return NULL;
    k->nlocal = nlocal;
    k->edges = edges;
    k->has_parent = has_parent;
    k->waiting = calloc(nlocal ? nlocal : 1, sizeof(*k->waiting));
    k->mark = calloc(edges, sizeof(*k->mark));
    if (k->waiting == NULL || k->mark == NULL) {
        kvs_free(k);
        return NULL;
    }
    for (unsigned i = 0; i < edges; i++)
        k->mark[i] = KVTAB_BASE;
    return k;
}

void kvs_free(struct kvs *k)
{
    if (k == NULL)
        return;
    for (unsigned i = 0; k->waiting != NULL && i < k->nlocal; i++)
        kvtab_done(&k->waiting[i].tab);
    kvtab_done(&k->log);
    kvtab_done(&k->node);
    kvs_share_free(k->share);
    free(k->waiting);
    free(k->mark);
    free(k->runs);
    free(k);
}

static bool has_room(const struct kvs *k, size_t more)
{
    return k->held + more <= KVS_BYTES_MAX;
}

/* The end of the log as an offset, also before there is any. */
static uint32_t log_end(const struct kvs *k)
{
    return k->log.used ? k->log.used : KVTAB_BASE;
}

static void squeeze_plain(struct kvs *k, struct kvtab *t, uint32_t *mark)
{
    uint32_t before = t->used;

    if (!kvtab_wants_squeeze(t))
        return;
    kvtab_squeeze(t, &mark, mark ? 1 : 0);
    k->held -= before - t->used;
}

/* Add to a table that is indexed at once. A failure to index takes the entry back. */
static int put_now(struct kvs *k, struct kvtab *t, struct span key, struct span value)
{
    uint32_t before;
    int rc;

    if (!has_room(k, KVTAB_HEADER + key.n + value.n))
        return -ENOSPC;
    before = t->used;
    rc = kvtab_add(t, (struct kvtab_stamp){0}, key, value);
    if (rc == 0)
        rc = kvtab_index(t);
    if (rc < 0) {
        if (before > 0)
            t->used = before;
        else if (t->used > 0)
            t->used = KVTAB_BASE;
        return rc;
    }
    k->held += KVTAB_HEADER + key.n + value.n;
    return 0;
}

static int put_on_node(struct kvs *k, struct span key, struct span value)
{
    int rc;

    kvs_share_begin(k->share);
    rc = put_now(k, &k->node, key, value);
    squeeze_plain(k, &k->node, NULL);
    kvs_share_end(k->share);
    return rc;
}

int kvs_put(struct kvs *k, unsigned slot, struct span key, struct span value)
{
    struct waiting *w = &k->waiting[slot];
    int rc;

    assert(slot < k->nlocal);
    if (span_starts(key, LOCAL_PREFIX))
        return put_on_node(k, key, value);
    rc = put_now(k, &w->tab, key, value);
    if (rc == 0 && k->share != NULL)
        kvs_share_waits(k->share, slot, kvtab_hash(key));
    if (w->committed < KVTAB_BASE)
        w->committed = KVTAB_BASE;
    squeeze_plain(k, &w->tab, &w->committed);
    return rc;
}

static bool is_lawful(struct span s, size_t max)
{
    return s.n <= max && (s.n == 0 || (memchr(s.p, '\0', s.n) == NULL && memchr(s.p, '\n', s.n) == NULL));
}

int kvs_preput(struct kvs *k, struct span key, struct span value)
{
    if (key.n == 0 || !is_lawful(key, KVTAB_KEY_MAX) || !is_lawful(value, KVTAB_VALUE_MAX))
        return -EINVAL;
    return put_on_node(k, key, value);
}

int kvs_get(struct kvs *k, unsigned slot, struct span key, struct span *value)
{
    uint32_t hash = kvtab_hash(key);
    struct kvtab_view v;

    assert(slot < k->nlocal);
    v = kvtab_view(&k->waiting[slot].tab);
    if (kvtab_find(&v, key, hash, value) == 0)
        return 0;
    v = kvtab_view(&k->log);
    if (kvtab_find(&v, key, hash, value) == 0)
        return 0;
    v = kvtab_view(&k->node);
    return kvtab_find(&v, key, hash, value);
}

/* What follows in the log came over `edge`. Called before the entries are added, so that a failure changes nothing. */
static int begin_run(struct kvs *k, uint32_t edge)
{
    uint32_t end = log_end(k);

    if (k->nruns > 0 && k->runs[k->nruns - 1].edge == edge)
        return 0;
    if (k->nruns > 0 && k->runs[k->nruns - 1].start == end) {
        k->runs[k->nruns - 1].edge = edge;
        return 0;
    }
    if (k->nruns == k->cap_runs) {
        size_t cap = k->cap_runs ? k->cap_runs * 2 : 8;
        struct run *runs = realloc(k->runs, cap * sizeof(*runs));

        if (runs == NULL)
            return -ENOMEM;
        k->runs = runs;
        k->cap_runs = cap;
    }
    k->runs[k->nruns++] = (struct run){end, edge};
    return 0;
}

/* Stamp and copy the entries of `w` from `committed` on that are still the ones which count. */
static int copy_to_log(struct kvs *k, struct waiting *w, uint32_t rank, uint64_t round, uint32_t *seq)
{
    struct kvtab_view v = kvtab_view(&w->tab);
    struct kvtab_entry e;

    for (uint32_t at = w->committed; at < w->tab.used; at += e.len) {
        struct span now;
        int rc;

        e = kvtab_at(&w->tab, at);
        if (w->tab.dead > 0 && kvtab_find(&v, e.key, kvtab_hash(e.key), &now) == 0 && now.p != e.value.p)
            continue;
        rc = kvtab_add(&k->log, (struct kvtab_stamp){round, rank, ++*seq}, e.key, e.value);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int kvs_commit(struct kvs *k, unsigned slot, uint32_t rank, uint64_t world_round)
{
    struct waiting *w = &k->waiting[slot];
    uint32_t seq = w->round == world_round ? w->seq : 0, before = k->log.used;
    int rc;

    assert(slot < k->nlocal);
    if (w->committed >= w->tab.used)
        return 0;
    if (!has_room(k, w->tab.used - w->committed))
        return -ENOSPC;
    rc = begin_run(k, FROM_HERE);
    if (rc == 0)
        rc = copy_to_log(k, w, rank, world_round, &seq);
    if (rc < 0) {
        k->log.used = before ? before : k->log.used ? KVTAB_BASE : 0;
        return rc;
    }
    w->round = world_round;
    w->seq = seq;
    w->committed = w->tab.used;
    k->held += log_end(k) - (before ? before : KVTAB_BASE);
    return 0;
}

int kvs_append(struct kvs *k, unsigned edge, struct span block, struct err *err)
{
    int rc;

    assert(edge < k->edges);
    if (kvtab_check(block) < 0)
        return err_set(err, -EPROTO, "a key-value block of %zu bytes is not a run of whole entries", block.n);
    if (block.n == 0)
        return 0;
    if (!has_room(k, block.n))
        return err_set(err, -ENOSPC, "the job's keys need more than %u bytes", KVS_BYTES_MAX);
    rc = begin_run(k, edge);
    if (rc == 0)
        rc = kvtab_add_block(&k->log, block);
    if (rc < 0)
        return err_set(err, rc, "no memory for a key-value block of %zu bytes", block.n);
    k->held += block.n;
    return 0;
}

/* Number of the run that holds `off`; there is one. */
static size_t find_run(const struct kvs *k, uint32_t off)
{
    size_t low = 0, high = k->nruns;

    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;

        if (k->runs[mid].start <= off)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* Runs that every edge has behind it are of no use any more, but for the last, which may go on. */
static void drop_runs(struct kvs *k)
{
    uint32_t min = UINT32_MAX;
    size_t n = 0;

    for (unsigned i = k->has_parent ? 0 : 1; i < k->edges; i++)
        if (k->mark[i] < min)
            min = k->mark[i];
    while (n + 1 < k->nruns && k->runs[n + 1].start <= min)
        n++;
    if (n == 0)
        return;
    memmove(k->runs, k->runs + n, (k->nruns - n) * sizeof(*k->runs));
    k->nruns -= n;
}

/* The end of the last whole entry at most `max` bytes from `from`, but not beyond `stop`. */
static uint32_t cut(const struct kvs *k, uint32_t from, uint32_t stop, size_t max)
{
    uint32_t at = from;

    if (stop - from <= max)
        return stop;
    for (;;) {
        uint32_t len = kvtab_at(&k->log, at).len;

        if (at + len - from > max)
            return at;
        at += len;
    }
}

uint32_t kvs_end(const struct kvs *k)
{
    return log_end(k);
}

void kvs_hold(struct kvs *k, bool on)
{
    assert(on || k->holds > 0);
    if (on)
        k->holds++;
    else
        k->holds--;
}

/* Behind what came over `edge` itself. The number of the run there, in *run, may be nruns. */
static uint32_t skip_own(const struct kvs *k, unsigned edge, uint32_t from, size_t *run)
{
    for (*run = find_run(k, from); *run < k->nruns && k->runs[*run].edge == edge; ++*run)
        from = *run + 1 < k->nruns ? k->runs[*run + 1].start : log_end(k);
    return from;
}

bool kvs_has_unsent(const struct kvs *k, unsigned edge, uint32_t end)
{
    size_t run;

    return k->mark[edge] < MIN(end, log_end(k)) && skip_own(k, edge, k->mark[edge], &run) < MIN(end, log_end(k));
}

struct span kvs_unsent_to(struct kvs *k, unsigned edge, uint32_t end, size_t max)
{
    uint32_t from = k->mark[edge], stop;
    size_t run, next;

    assert(edge < k->edges && max >= KVTAB_ENTRY_MAX);
    end = MIN(end, log_end(k));
    if (from >= end)
        return SPAN_NONE;
    from = skip_own(k, edge, from, &run);
    for (next = run; next < k->nruns && k->runs[next].edge != edge; next++)
        ;
    stop = from;
    if (from < end)
        stop = cut(k, from, next < k->nruns ? MIN(k->runs[next].start, end) : end, max);
    k->mark[edge] = stop;
    drop_runs(k);
    return stop > from ? (struct span){k->log.arena + from, stop - from} : SPAN_NONE;
}

struct span kvs_unsent(struct kvs *k, unsigned edge, size_t max)
{
    return kvs_unsent_to(k, edge, log_end(k), max);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = **(uint32_t *const *)a, y = **(uint32_t *const *)b;

    return x < y ? -1 : x > y;
}

/* Runs that became empty go, and neighbours of one edge become one. */
static void tidy_runs(struct kvs *k)
{
    size_t to = 0;

    for (size_t i = 0; i < k->nruns; i++) {
        uint32_t end = i + 1 < k->nruns ? k->runs[i + 1].start : log_end(k);

        if (k->runs[i].start == end || (to > 0 && k->runs[to - 1].edge == k->runs[i].edge))
            continue;
        k->runs[to++] = k->runs[i];
    }
    k->nruns = to;
}

/* Without memory for the list of marks it is left for another time. */
static void squeeze_log(struct kvs *k)
{
    size_t count = k->edges + k->nruns, n = 0;
    uint32_t **marks, before = k->log.used;

    if (k->holds > 0 || !kvtab_wants_squeeze(&k->log))
        return;
    marks = malloc(count * sizeof(*marks));
    if (marks == NULL)
        return;
    for (unsigned i = 0; i < k->edges; i++)
        marks[n++] = &k->mark[i];
    for (size_t i = 0; i < k->nruns; i++)
        marks[n++] = &k->runs[i].start;
    qsort(marks, count, sizeof(*marks), by_value);
    kvtab_squeeze(&k->log, marks, count);
    free(marks);
    k->held -= before - k->log.used;
    tidy_runs(k);
}

/* What a rank put is in the log now: its own store is done with, unless it went on putting. */
static void drop_committed(struct kvs *k, unsigned slot)
{
    struct waiting *w = &k->waiting[slot];

    if (w->tab.used <= KVTAB_BASE || w->committed < w->tab.used)
        return;
    k->held -= w->tab.used - KVTAB_BASE;
    kvtab_done(&w->tab);
    w->committed = 0;
    kvs_share_waits_no_more(k->share, slot);
}

int kvs_install(struct kvs *k)
{
    int rc;

    kvs_share_begin(k->share);
    rc = kvtab_index(&k->log);
    for (unsigned i = 0; rc == 0 && i < k->nlocal; i++)
        drop_committed(k, i);
    if (rc == 0)
        squeeze_log(k);
    kvs_share_end(k->share);
    return rc;
}

static void share_waiting(struct kvs *k, unsigned slot)
{
    const struct kvtab *t = &k->waiting[slot].tab;

    for (uint32_t at = KVTAB_BASE; at < t->used; at += kvtab_at(t, at).len)
        kvs_share_waits(k->share, slot, kvtab_hash(kvtab_at(t, at).key));
}

int kvs_map(struct kvs *k)
{
    int rc;

    if (k->share == NULL) {
        rc = kvs_share_new(&k->share, &k->log, &k->node, k->nlocal);
        if (rc < 0)
            return rc;
        for (unsigned i = 0; i < k->nlocal; i++)
            share_waiting(k, i);
    }
    return kvs_share_fd(k->share);
}

static void add_stats(struct kvs_stats *s, const struct kvtab *t, bool counts)
{
    s->arena_bytes += t->cap;
    s->index_bytes += t->places * sizeof(struct kvtab_place);
    if (!counts || t->used < KVTAB_BASE)
        return;
    s->keys += t->keys;
    s->live_bytes += t->indexed - KVTAB_BASE - t->dead - (size_t)t->keys * KVTAB_HEADER;
}

struct kvs_stats kvs_stats(const struct kvs *k)
{
    struct kvs_stats s = {0};

    add_stats(&s, &k->log, true);
    add_stats(&s, &k->node, true);
    for (unsigned i = 0; i < k->nlocal; i++)
        add_stats(&s, &k->waiting[i].tab, false);
    return s;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/barrier.h"

#include <assert.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include "common/limits.h"

/* A round under way. */
struct round {
    uint32_t need_local, total;
    uint32_t local_in; /* entries from here */
    uint64_t below_in; /* entries from the children */
    uint64_t need_below;
    bool releases; /* no member is outside this subtree */
    bool sent_up;
    unsigned ticks;  /* see barriers_tick() */
    uint32_t *slots; /* nlocal: who entered, in order */
    bool *slot_in;   /* nlocal */
    uint32_t *need;  /* nkids */
    bool *kid_in;    /* nkids */
};

struct barrier {
    UT_hash_handle hh;
    struct round *open; /* NULL between rounds */
    uint64_t round;     /* completed */
    uint64_t noted;     /* rounds up to the last one noted; 0: none, NOTED_ENOUGH */
    int broken;         /* what it answers for good, 0: as usual */
    size_t key_len;
    char key[]; /* set, tag, name of the group */
};

struct barriers {
    uint32_t nlocal, nkids, nopen;
    int broken;                    /* what every barrier answers, 0: as usual */
    const struct barrier_ops *ops; /* lent by the owner, as is arg */
    void *arg;
    struct barrier *known;
    bool has_notes;
};

#define NOTED_ENOUGH UINT64_MAX

#define KEY_FIXED (sizeof(uint32_t) + sizeof(int64_t))

struct barriers *barriers_new(uint32_t nlocal, uint32_t nkids, const struct barrier_ops *ops, void *arg)
{
    struct barriers *b = calloc(1, sizeof(*b));

    if (b == NULL)
        return NULL;
    b->nlocal = nlocal;
    b->nkids = nkids;
    b->ops = ops;
    b->arg = arg;
    return b;
}

static void round_free(struct round *r)
{
    if (r == NULL)
        return;
    free(r->slots);
    free(r->slot_in);
    free(r->need);
    free(r->kid_in);
    free(r);
}

void barriers_free(struct barriers *b)
{
    struct barrier *x, *next;

    if (b == NULL)
        return;
    HASH_ITER(hh, b->known, x, next)
    {
        HASH_DELETE(hh, b->known, x);
        round_free(x->open);
        free(x);
    }
    free(b);
}

/* `key` has room for KEY_FIXED bytes and the name. */
static size_t key_of(const struct barrier_id *id, char *key)
{
    memcpy(key, &id->set, sizeof(id->set));
    memcpy(key + sizeof(id->set), &id->tag, sizeof(id->tag));
    if (id->group.n > 0)
        memcpy(key + KEY_FIXED, id->group.p, id->group.n);
    return KEY_FIXED + id->group.n;
}

/* The identity as our own copy has it: it outlives the caller's. */
static struct barrier_id id_of(const struct barrier *x)
{
    struct barrier_id id;

    memcpy(&id.set, x->key, sizeof(id.set));
    memcpy(&id.tag, x->key + sizeof(id.set), sizeof(id.tag));
    id.group = (struct span){x->key + KEY_FIXED, x->key_len - KEY_FIXED};
    return id;
}

static struct barrier *find(const struct barriers *b, const struct barrier_id *id)
{
    char key[KEY_FIXED + BARRIER_NAME_MAX];
    struct barrier *x;
    size_t len;

    if (id->group.n > BARRIER_NAME_MAX)
        return NULL;
    len = key_of(id, key);
    HASH_FIND(hh, b->known, key, len, x);
    return x;
}

static int check_name(const struct barrier_id *id, struct err *err)
{
    if (id->group.n <= BARRIER_NAME_MAX)
        return 0;
    return err_set(err, -ENOENT, "a barrier group's name of %zu bytes", id->group.n);
}

static int remember(struct barriers *b, const struct barrier_id *id, struct barrier **out, struct err *err)
{
    struct barrier *x;

    if (HASH_COUNT(b->known) >= BARRIERS_KNOWN_MAX)
        return err_set(err, -ENOSPC, "more than %u different barriers", BARRIERS_KNOWN_MAX);
    x = calloc(1, sizeof(*x) + KEY_FIXED + id->group.n);
    if (x == NULL)
        return err_set(err, -ENOMEM, "no memory for a barrier");
    x->key_len = key_of(id, x->key);
    HASH_ADD_KEYPTR(hh, b->known, x->key, x->key_len, x);
    if (x->hh.tbl == NULL) {
        free(x);
        return err_set(err, -ENOMEM, "no memory for a barrier");
    }
    *out = x;
    return 0;
}

static struct round *round_new(const struct barriers *b, const struct barrier_need *need)
{
    struct round *r = calloc(1, sizeof(*r));

    if (r == NULL)
        return NULL;
    r->slots = calloc(b->nlocal + 1, sizeof(*r->slots));
    r->slot_in = calloc(b->nlocal + 1, sizeof(*r->slot_in));
    r->need = calloc(b->nkids + 1, sizeof(*r->need));
    r->kid_in = calloc(b->nkids + 1, sizeof(*r->kid_in));
    if (r->slots == NULL || r->slot_in == NULL || r->need == NULL || r->kid_in == NULL) {
        round_free(r);
        return NULL;
    }
    r->need_local = need->local;
    r->total = need->total;
    for (uint32_t i = 0; i < b->nkids; i++) {
        r->need[i] = need->kids[i];
        r->need_below += need->kids[i];
    }
    r->releases = r->need_local + r->need_below >= r->total;
    return r;
}

/* Have a round of `*at` under way, which is `id`, or NULL where that was never heard of. */
static int open_round(struct barriers *b, const struct barrier_id *id, struct barrier **at, struct err *err)
{
    struct barrier_need need = {0};
    struct round *r;
    int rc;

    if (*at != NULL && (*at)->open != NULL)
        return 0;
    rc = check_name(id, err);
    if (rc < 0)
        return rc;
    if (b->nopen >= BARRIERS_MAX)
        return err_set(err, -ENOSPC, "more than %d barriers under way", BARRIERS_MAX);
    rc = b->ops->need(id, &need, b->arg);
    if (rc < 0 && rc != -ENOMEM)
        return err_set(err, -ENOENT, "no barrier group '%.*s'", SPAN_FMT(id->group));
    r = rc < 0 ? NULL : round_new(b, &need);
    if (r == NULL)
        return err_set(err, -ENOMEM, "no memory for a barrier");
    rc = *at == NULL ? remember(b, id, at, err) : 0;
    if (rc < 0) {
        round_free(r);
        return rc;
    }
    (*at)->open = r;
    b->nopen++;
    return 0;
}

/* An entry was refused: a round that nobody is in is not under way. */
static void close_if_empty(struct barriers *b, struct barrier *x)
{
    if (x->open->local_in > 0 || x->open->below_in > 0)
        return;
    round_free(x->open);
    x->open = NULL;
    b->nopen--;
}

/* The round ends. It is taken off first, because release() may let tasks enter the next one. */
static void finish(struct barriers *b, struct barrier *x, int rc)
{
    struct round *r = x->open;
    struct barrier_id id = id_of(x);
    struct barrier_done done = {.round = x->round, .rc = rc, .slots = r->slots, .nslots = r->local_in, .kids = r->need};

    x->open = NULL;
    x->round++;
    b->nopen--;
    /* The needs have served: their place takes the list of the children to tell. */
    for (uint32_t i = 0; i < b->nkids; i++)
        if (r->kid_in[i])
            r->need[done.nkids++] = i;
    b->ops->release(&id, &done, b->arg);
    round_free(r);
}

static void check_complete(struct barriers *b, struct barrier *x)
{
    struct round *r = x->open;
    struct barrier_id id = id_of(x);

    if (r->sent_up || r->local_in < r->need_local || r->below_in < r->need_below)
        return;
    if (r->releases) {
        finish(b, x, 0);
        return;
    }
    r->sent_up = true;
    b->ops->up(&id, x->round, (uint32_t)(r->local_in + r->below_in), b->arg);
}

/* What it answers for good: it, or every one. */
static int broken(const struct barriers *b, const struct barrier *x)
{
    return b->broken < 0 || x == NULL ? b->broken : x->broken;
}

/* It has failed for good: the entry is answered at once, and not counted. */
static void answer_broken(struct barriers *b, const struct barrier_id *id, uint32_t slot, int rc)
{
    struct barrier_done done = {.round = barriers_round(b, id), .rc = rc, .slots = &slot, .nslots = 1};

    b->ops->release(id, &done, b->arg);
}

int barriers_enter(struct barriers *b, const struct barrier_id *id, uint32_t slot, struct err *err)
{
    struct barrier *x = find(b, id);
    struct round *r;
    int rc = broken(b, x);

    if (slot >= b->nlocal)
        return err_set(err, -ERANGE, "no local task %u", slot);
    if (rc < 0) {
        answer_broken(b, id, slot, rc);
        return 0;
    }
    rc = open_round(b, id, &x, err);
    if (rc < 0)
        return rc;
    r = x->open;
    if (r->slot_in[slot])
        return err_set(err, -EALREADY, "already in this barrier");
    if (r->local_in >= r->need_local) {
        close_if_empty(b, x);
        return err_set(err, -ENOENT, "not a member of barrier group '%.*s'", SPAN_FMT(id->group));
    }
    r->slot_in[slot] = true;
    r->slots[r->local_in++] = slot;
    check_complete(b, x);
    return 0;
}

int barriers_child(struct barriers *b, const struct barrier_id *id, uint32_t kid, uint64_t round, uint32_t count,
                   struct err *err)
{
    struct barrier *x = find(b, id);
    uint64_t expected = x == NULL ? 0 : x->round;
    struct round *r;
    int rc;

    if (kid >= b->nkids)
        return err_set(err, -ERANGE, "no child %u", kid);
    if (broken(b, x) < 0)
        return 0;
    if (round != expected)
        return err_set(err, -EPROTO, "a barrier's round %llu instead of %llu", (unsigned long long)round,
                       (unsigned long long)expected);
    rc = open_round(b, id, &x, err);
    if (rc == -ENOENT)
        return err_set(err, -EPROTO, "entries from below in a barrier of no group here");
    if (rc < 0)
        return rc;
    r = x->open;
    if (r->kid_in[kid] || count == 0 || count != r->need[kid]) {
        rc = err_set(err, -EPROTO, "a barrier with %u entries from below instead of %u%s", count, r->need[kid],
                     r->kid_in[kid] ? ", for the second time" : "");
        close_if_empty(b, x);
        return rc;
    }
    r->kid_in[kid] = true;
    r->below_in += count;
    check_complete(b, x);
    return 0;
}

int barriers_release(struct barriers *b, const struct barrier_id *id, uint64_t round, int rc, struct err *err)
{
    struct barrier *x = find(b, id);

    if (broken(b, x) < 0)
        return 0;
    if (x == NULL || x->open == NULL || !x->open->sent_up || x->round != round)
        return err_set(err, -EPROTO, "release of a barrier's round %llu, which was not asked for",
                       (unsigned long long)round);
    finish(b, x, rc);
    return 0;
}

void barriers_break(struct barriers *b, int rc)
{
    struct barrier *x, *next;

    assert(rc < 0);
    if (b->broken < 0)
        return;
    b->broken = rc;
    HASH_ITER(hh, b->known, x, next)
    {
        x->noted = NOTED_ENOUGH;
        if (x->open != NULL)
            finish(b, x, rc);
    }
}

int barriers_break_one(struct barriers *b, const struct barrier_id *id, int rc)
{
    struct barrier *x = find(b, id);
    int known = check_name(id, NULL);

    assert(rc < 0);
    if (known == 0 && x == NULL)
        known = remember(b, id, &x, NULL);
    if (known < 0)
        return known;
    x->broken = rc;
    x->noted = NOTED_ENOUGH; /* an entry is answered and not counted, so who goes now may well have entered */
    if (x->open != NULL)
        finish(b, x, rc);
    return 0;
}

uint64_t barriers_round(const struct barriers *b, const struct barrier_id *id)
{
    const struct barrier *x = find(b, id);

    return x ? x->round : 0;
}

uint64_t barriers_entered(const struct barriers *b, const struct barrier_id *id, uint32_t slot)
{
    const struct barrier *x = find(b, id);

    if (x == NULL)
        return 0;
    return x->round + (x->open != NULL && x->open->slot_in[slot]);
}

/* --- what cannot be complete ------------------------------------------------------------------------------------ */

bool barriers_note(struct barriers *b, const struct barrier_id *id, uint64_t round)
{
    struct barrier *x = find(b, id);

    if (b->broken < 0)
        return false;
    /* What cannot be kept in mind may be asked for again and again, but is not forgotten. */
    if (x == NULL && (check_name(id, NULL) < 0 || remember(b, id, &x, NULL) < 0))
        return true;
    if (round < x->noted)
        return false;
    x->noted = round + 1;
    b->has_notes = true;
    return true;
}

void barriers_note_no_more(struct barriers *b, const struct barrier_id *id)
{
    struct barrier *x = find(b, id);

    if (x != NULL)
        x->noted = NOTED_ENOUGH;
}

static bool is_awaiting(const struct barrier *x)
{
    return x->open != NULL && !x->open->sent_up;
}

void barriers_each_awaiting(const struct barriers *b, barriers_fn fn, void *arg)
{
    for (const struct barrier *x = b->known; x != NULL; x = x->hh.next) {
        struct barrier_id id = id_of(x);

        if (is_awaiting(x))
            fn(&id, x->round, arg);
    }
}

void barriers_each_open(const struct barriers *b, barriers_fn fn, void *arg)
{
    for (const struct barrier *x = b->known; x != NULL; x = x->hh.next) {
        struct barrier_id id = id_of(x);

        if (x->open != NULL)
            fn(&id, x->round, arg);
    }
}

void barriers_tick(struct barriers *b, unsigned ticks, barriers_fn fn, void *arg)
{
    for (struct barrier *x = b->nopen > 0 ? b->known : NULL; x != NULL; x = x->hh.next) {
        struct barrier_id id = id_of(x);

        if (is_awaiting(x) && x->open->ticks < ticks && ++x->open->ticks == ticks)
            fn(&id, x->round, arg);
    }
}

void barriers_each_noted(const struct barriers *b, barriers_fn fn, void *arg)
{
    for (const struct barrier *x = b->has_notes ? b->known : NULL; x != NULL; x = x->hh.next) {
        struct barrier_id id = id_of(x);

        if (x->noted > 0 && x->noted != NOTED_ENOUGH)
            fn(&id, x->noted - 1, arg);
    }
}

uint32_t barriers_waiting(const struct barriers *b, const struct barrier_id *id, uint32_t *slots, uint32_t max)
{
    const struct barrier *x = find(b, id);
    uint32_t n = 0;

    if (x == NULL || x->open == NULL)
        return 0;
    for (uint32_t i = 0; i < b->nlocal && n < max; i++)
        if (x->open->slot_in[i])
            slots[n++] = i;
    return x->open->local_in;
}

uint32_t barriers_awaited_kids(const struct barriers *b, const struct barrier_id *id, uint32_t *kids, uint32_t max)
{
    const struct barrier *x = find(b, id);
    uint32_t n = 0;

    if (x == NULL || x->open == NULL)
        return 0;
    for (uint32_t i = 0; i < b->nkids; i++) {
        if (x->open->need[i] == 0 || x->open->kid_in[i])
            continue;
        if (n < max)
            kids[n] = i;
        n++;
    }
    return n;
}

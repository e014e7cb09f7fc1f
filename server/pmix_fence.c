/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_fence.h"

#include <errno.h>
#include <stdlib.h>
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include "common/limits.h"

struct fence {
    UT_hash_handle hh;
    char *sig;
    size_t sig_len;
    bool here, entered; /* local members; they are in */
    bool held;          /* but for one that has gone */
    bool noted;         /* somebody waits in it, as is known from above or here */
    bool broken;        /* stays, as it is for good */
    unsigned ticks;
    void *entry;
    bool *kid, *kid_in;
    struct buf *part; /* [kids]: of who is not in yet, what has come so far, */
    size_t bytes;     /* with what all children have brought */
    uint32_t kids;
    uint32_t missing; /* this node and children that are not in */
    struct buf up, down;
};

struct pmix_fences {
    const struct pmix_fence_ops *ops;
    void *arg;
    uint32_t kids;
    struct fence *known; /* by signature */
};

struct pmix_fences *pmix_fences_new(uint32_t kids, const struct pmix_fence_ops *ops, void *arg)
{
    struct pmix_fences *f = calloc(1, sizeof(*f));

    if (f != NULL)
        *f = (struct pmix_fences){.ops = ops, .arg = arg, .kids = kids};
    return f;
}

static void drop_data(struct fence *e)
{
    for (uint32_t i = 0; e->part != NULL && i < e->kids; i++)
        buf_done(&e->part[i]);
    buf_done(&e->up);
    buf_done(&e->down);
}

static void fence_free(struct fence *e)
{
    drop_data(e);
    free(e->sig);
    free(e->part);
    free(e->kid);
    free(e->kid_in);
    free(e);
}

static void forget(struct pmix_fences *f, struct fence *e)
{
    HASH_DELETE(hh, f->known, e);
    fence_free(e);
}

void pmix_fences_free(struct pmix_fences *f)
{
    struct fence *e, *next;

    if (f == NULL)
        return;
    HASH_ITER(hh, f->known, e, next)
    {
        forget(f, e);
    }
    free(f);
}

static int fence_fill(struct pmix_fences *f, struct fence *e, struct span sig)
{
    int rc;

    e->sig = strndup(sig.p, sig.n);
    e->sig_len = sig.n;
    e->kid = calloc(f->kids + 1u, sizeof(*e->kid));
    e->kid_in = calloc(f->kids + 1u, sizeof(*e->kid_in));
    e->part = calloc(f->kids + 1u, sizeof(*e->part));
    e->kids = f->kids;
    if (e->sig == NULL || e->kid == NULL || e->kid_in == NULL || e->part == NULL)
        return -ENOMEM;
    buf_init(&e->up, PMIX_FENCE_BYTES_MAX);
    buf_init(&e->down, PMIX_FENCE_BYTES_MAX);
    rc = f->ops->need(sig, &e->here, e->kid, f->arg);
    e->missing = e->here;
    for (uint32_t i = 0; i < f->kids; i++)
        e->missing += e->kid[i];
    return rc;
}

/* The one of that signature, made where there is none. */
static int find(struct pmix_fences *f, struct span sig, struct fence **out)
{
    struct fence *e;
    int rc;

    HASH_FIND(hh, f->known, sig.p, sig.n, e);
    if (e == NULL) {
        if (HASH_COUNT(f->known) >= PMIX_FENCES_MAX)
            return -ENOSPC;
        e = calloc(1, sizeof(*e));
        rc = e == NULL ? -ENOMEM : fence_fill(f, e, sig);
        if (rc == 0) {
            HASH_ADD_KEYPTR(hh, f->known, e->sig, e->sig_len, e);
            rc = e->hh.tbl == NULL ? -ENOMEM : 0;
        }
        if (rc < 0) {
            if (e != NULL)
                fence_free(e);
            return rc;
        }
    }
    *out = e;
    return 0;
}

static void one_in(struct pmix_fences *f, struct fence *e)
{
    if (--e->missing == 0)
        f->ops->up((struct span){e->sig, e->sig_len}, buf_span(&e->up), f->arg);
}

static int may_enter(const struct fence *e)
{
    return !e->here ? -EPROTO : e->broken ? -EIO : e->entered ? -EALREADY : 0;
}

int pmix_fences_enter(struct pmix_fences *f, struct span sig, struct span data, void *entry)
{
    struct fence *e = NULL;
    int rc = find(f, sig, &e);

    if (rc < 0)
        return rc;
    if ((rc = may_enter(e)) < 0)
        return rc;
    rc = data.n > 0 ? buf_add(&e->up, data.p, data.n) : 0;
    if (rc < 0)
        return rc;
    e->entered = true;
    e->entry = entry;
    one_in(f, e);
    return 0;
}

int pmix_fences_hold(struct pmix_fences *f, struct span sig, void *entry)
{
    struct fence *e = NULL;
    int rc = find(f, sig, &e);

    if (rc < 0 || (rc = may_enter(e)) < 0)
        return rc;
    e->entered = e->held = e->noted = true;
    e->entry = entry;
    return 0;
}

/* Pieces of several children come in any order, and what a node brings has to stay in one piece. */
static int add_part(struct fence *e, uint32_t kid, struct span data, bool more)
{
    struct buf *part = &e->part[kid];
    int rc = 0;

    if (data.n > PMIX_FENCE_BYTES_MAX - e->bytes)
        return -E2BIG;
    e->bytes += data.n;
    if (data.n > 0 && (more || part->len > 0))
        rc = buf_add(part, data.p, data.n);
    else if (data.n > 0)
        rc = buf_add(&e->up, data.p, data.n);
    if (rc == 0 && !more && part->len > 0)
        rc = buf_add(&e->up, part->p, part->len);
    if (!more)
        buf_done(part);
    return rc;
}

int pmix_fences_child(struct pmix_fences *f, struct span sig, uint32_t kid, struct span data, bool more)
{
    struct fence *e = NULL;
    int rc = find(f, sig, &e);

    if (rc < 0)
        return rc;
    if (e->broken)
        return 0;
    if (kid >= f->kids || !e->kid[kid] || e->kid_in[kid])
        return -EPROTO;
    rc = add_part(e, kid, data, more);
    if (rc < 0 || more)
        return rc;
    e->kid_in[kid] = true;
    one_in(f, e);
    return 0;
}

void pmix_fences_kids(const struct pmix_fences *f, struct span sig, bool *kid)
{
    const struct fence *e;

    HASH_FIND(hh, f->known, sig.p, sig.n, e);
    for (uint32_t i = 0; i < f->kids; i++)
        kid[i] = e != NULL && e->kid[i];
}

int pmix_fences_release(struct pmix_fences *f, struct span sig, struct span data, bool more)
{
    struct fence *e;
    int rc;

    HASH_FIND(hh, f->known, sig.p, sig.n, e);
    if (e == NULL || e->broken)
        return 0;
    if (e->missing > 0)
        return -EPROTO;
    rc = e->here && data.n > 0 ? buf_add(&e->down, data.p, data.n) : 0;
    if (rc < 0 || more)
        return rc;
    HASH_DELETE(hh, f->known, e); /* ahead of what may enter the next one */
    if (e->here)
        f->ops->done(e->entry, 0, buf_span(&e->down), f->arg);
    fence_free(e);
    return 0;
}

void pmix_fences_fail(struct pmix_fences *f, int rc)
{
    struct fence *e, *next;

    HASH_ITER(hh, f->known, e, next)
    {
        HASH_DELETE(hh, f->known, e);
        if (e->entered)
            f->ops->done(e->entry, rc, SPAN_NONE, f->arg);
        fence_free(e);
    }
}

/* --- who is awaited --------------------------------------------------------------------------------------------- */

static struct span sig_of(const struct fence *e)
{
    return (struct span){e->sig, e->sig_len};
}

static bool is_here_awaited(const struct fence *e)
{
    return e->here && (!e->entered || e->held) && !e->broken;
}

static bool is_awaiting(const struct pmix_fences *f, const struct fence *e)
{
    bool some = e->entered;

    for (uint32_t i = 0; i < f->kids; i++)
        some = some || e->kid_in[i];
    return some && e->missing > 0 && !e->broken;
}

void pmix_fences_each_entered(const struct pmix_fences *f, pmix_fences_fn *fn, void *arg)
{
    for (const struct fence *e = f->known, *next; e != NULL; e = next) {
        next = e->hh.next;
        if (e->entered && !e->held && !e->broken)
            fn(sig_of(e), arg);
    }
}

void pmix_fences_each_awaiting(const struct pmix_fences *f, pmix_fences_fn *fn, void *arg)
{
    for (const struct fence *e = f->known, *next; e != NULL; e = next) {
        next = e->hh.next;
        if (is_awaiting(f, e))
            fn(sig_of(e), arg);
    }
}

bool pmix_fences_note(struct pmix_fences *f, struct span sig, bool *kid)
{
    struct fence *e = NULL;

    if (find(f, sig, &e) < 0) /* whatever it is, nobody is found by it */
        return false;
    for (uint32_t i = 0; i < f->kids && !e->noted && !e->broken; i++)
        kid[i] = e->kid[i] && !e->kid_in[i];
    e->noted = true;
    return is_here_awaited(e);
}

void pmix_fences_each_noted(const struct pmix_fences *f, pmix_fences_fn *fn, void *arg)
{
    for (const struct fence *e = f->known, *next; e != NULL; e = next) {
        next = e->hh.next;
        if (e->noted && is_here_awaited(e))
            fn(sig_of(e), arg);
    }
}

void pmix_fences_tick(struct pmix_fences *f, unsigned ticks, pmix_fences_fn *fn, void *arg)
{
    for (struct fence *e = f->known, *next; e != NULL; e = next) {
        next = e->hh.next;
        if (is_awaiting(f, e) && e->ticks < ticks && ++e->ticks == ticks)
            fn(sig_of(e), arg);
    }
}

void pmix_fences_break(struct pmix_fences *f, struct span sig, int rc)
{
    struct fence *e = NULL;

    if (find(f, sig, &e) < 0 || e->broken)
        return;
    e->broken = true;
    if (e->entered)
        f->ops->done(e->entry, rc, SPAN_NONE, f->arg);
    e->entered = false;
    drop_data(e);
}

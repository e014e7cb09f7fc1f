/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/attrs.h"

#include <errno.h>
#include <stdlib.h>
#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include "common/limits.h"

struct attr {
    UT_hash_handle hh;
    char key[PMI_KEY_MAX];
    char *value;
    size_t len;
};

struct waiter {
    struct waiter *next;
    attrs_got_fn got;
    void *arg;
    size_t len;
    char key[PMI_KEY_MAX];
};

struct attrs {
    struct attr *table;
    struct waiter *first, **tail;
};

struct attrs *attrs_new(void)
{
    struct attrs *a = calloc(1, sizeof(*a));

    if (a != NULL)
        a->tail = &a->first;
    return a;
}

void attrs_free(struct attrs *a)
{
    struct attr *at, *next;

    if (a == NULL)
        return;
    HASH_ITER(hh, a->table, at, next)
    {
        HASH_DEL(a->table, at);
        free(at->value);
        free(at);
    }
    while (a->first != NULL) {
        struct waiter *w = a->first;

        a->first = w->next;
        free(w);
    }
    free(a);
}

static struct attr *find(const struct attrs *a, struct span key)
{
    struct attr *at;

    HASH_FIND(hh, a->table, key.p, key.n, at);
    return at;
}

static struct attr *add(struct attrs *a, struct span key)
{
    struct attr *at = calloc(1, sizeof(*at));
    unsigned before = HASH_COUNT(a->table);

    if (at == NULL)
        return NULL;
    memcpy(at->key, key.p, key.n);
    HASH_ADD_KEYPTR(hh, a->table, at->key, key.n, at);
    if (HASH_COUNT(a->table) == before) {
        free(at);
        return NULL;
    }
    return at;
}

/* Take the waiter at `*at` out of the list. */
static struct waiter *unlink_waiter(struct attrs *a, struct waiter **at)
{
    struct waiter *w = *at;

    *at = w->next;
    if (a->tail == &w->next)
        a->tail = at;
    return w;
}

static void tell(struct attrs *a, struct span key, struct span value)
{
    for (struct waiter **at = &a->first; *at != NULL;) {
        struct waiter *w;

        if (!span_eq((struct span){(*at)->key, (*at)->len}, key)) {
            at = &(*at)->next;
            continue;
        }
        w = unlink_waiter(a, at);
        w->got(value, w->arg);
        free(w);
    }
}

int attrs_put(struct attrs *a, struct span key, struct span value)
{
    struct attr *at = find(a, key);
    char *copy;

    if (at == NULL && HASH_COUNT(a->table) >= ATTRS_MAX)
        return -ENOSPC;
    copy = malloc(value.n + 1);
    if (copy == NULL)
        return -ENOMEM;
    if (at == NULL && (at = add(a, key)) == NULL) {
        free(copy);
        return -ENOMEM;
    }
    if (value.n > 0)
        memcpy(copy, value.p, value.n);
    free(at->value);
    at->value = copy;
    at->len = value.n;
    tell(a, key, (struct span){at->value, at->len});
    return 0;
}

int attrs_get(const struct attrs *a, struct span key, struct span *value)
{
    const struct attr *at = find(a, key);

    if (at == NULL)
        return -ENOENT;
    *value = (struct span){at->value, at->len};
    return 0;
}

int attrs_wait(struct attrs *a, struct span key, attrs_got_fn got, void *arg)
{
    struct waiter *w = calloc(1, sizeof(*w));

    if (w == NULL)
        return -ENOMEM;
    w->got = got;
    w->arg = arg;
    w->len = key.n;
    memcpy(w->key, key.p, key.n);
    *a->tail = w;
    a->tail = &w->next;
    return 0;
}

bool attrs_is_awaited(const struct attrs *a)
{
    return a->first != NULL;
}

void attrs_give_up(struct attrs *a)
{
    while (a->first != NULL) {
        struct waiter *w = unlink_waiter(a, &a->first);

        w->got(SPAN_NONE, w->arg);
        free(w);
    }
}

void attrs_withdraw(struct attrs *a, const void *arg)
{
    for (struct waiter **at = &a->first; *at != NULL;) {
        if ((*at)->arg == arg)
            free(unlink_waiter(a, at));
        else
            at = &(*at)->next;
    }
}

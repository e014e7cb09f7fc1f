/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/exits.h"

#include <stdlib.h>
#include "common/limits.h"

/* Three lists of one length. */
static const char *const keys[] = {"rank", "pid", "status"};

void exits_done(struct exits *e)
{
    free(e->one);
    *e = (struct exits){0};
}

void exits_clear(struct exits *e)
{
    e->count = 0;
    e->has_apart = false;
}

static int reserve(struct exits *e, size_t more)
{
    size_t need = e->count + more, cap = e->cap == 0 ? 8 : e->cap;
    struct exit_one *p;

    if (need <= e->cap)
        return 0;
    if (need > UINT32_MAX)
        return -ENOMEM;
    while (cap < need)
        cap *= 2;
    p = realloc(e->one, cap * sizeof(*p));
    if (p == NULL)
        return -ENOMEM;
    e->one = p;
    e->cap = (uint32_t)cap;
    return 0;
}

int exits_add(struct exits *e, const struct exit_one *one)
{
    int rc = reserve(e, 1);

    if (rc == 0)
        e->one[e->count++] = *one;
    return rc;
}

static int read_lists(const struct msg_in *m, uint32_t *list[3], size_t *count, struct err *err)
{
    size_t n;

    for (int k = 0; k < 3; k++) {
        int rc = msg_get_u32v(m, keys[k], TASKS_MAX, &list[k], &n, err);

        if (rc < 0)
            return rc;
        if (k > 0 && n != *count)
            return err_set(err, -EPROTO, "the lists of ranks, pids and statuses differ in length");
        *count = n;
    }
    return 0;
}

/* The first counts, whichever node it is on. */
static void read_apart(struct exits *e, const struct msg_in *m)
{
    uint32_t *ranks = NULL;
    size_t n = 0;

    if (!e->has_apart && msg_get_u32v(m, "apart", TASKS_MAX, &ranks, &n, NULL) == 0 && n > 0) {
        e->has_apart = true;
        e->apart = ranks[0];
    }
    free(ranks);
}

int exits_read(struct exits *e, const struct msg_in *m, struct err *err)
{
    uint32_t *list[3] = {NULL};
    size_t count = 0;
    int rc = read_lists(m, list, &count, err);

    if (rc == 0 && reserve(e, count) < 0)
        rc = err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && i < count; i++)
        e->one[e->count++] = (struct exit_one){list[0][i], list[1][i], list[2][i]};
    if (rc == 0)
        read_apart(e, m);
    for (int k = 0; k < 3; k++)
        free(list[k]);
    return rc;
}

int exits_put(const struct exits *e, struct msg_out *m)
{
    uint32_t *v = calloc(e->count + 1u, sizeof(*v));

    if (v == NULL)
        return -ENOMEM;
    for (int k = 0; k < 3; k++) {
        for (uint32_t i = 0; i < e->count; i++)
            v[i] = k == 0 ? e->one[i].rank : k == 1 ? e->one[i].pid : e->one[i].status;
        msg_put_u32v(m, keys[k], v, e->count);
    }
    if (e->has_apart)
        msg_put_u32v(m, "apart", &e->apart, 1);
    free(v);
    return 0;
}

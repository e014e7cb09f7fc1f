/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_sig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "common/num.h"

static const char kinds[] = {PMIX_SIG_FENCE,   PMIX_SIG_CONNECT, PMIX_SIG_DISCONNECT, PMIX_SIG_GROUP,
                             PMIX_SIG_UNGROUP, PMIX_SIG_KEYS,    PMIX_SIG_LOOKUP,     0};

static int compare(const void *a, const void *b)
{
    const struct pmix_member *x = a, *y = b;

    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->last < y->last ? -1 : x->last > y->last;
}

/* Into runs; how many are left. */
static size_t join(struct pmix_member *v, size_t count)
{
    size_t k = 0;

    for (size_t i = 1; i < count; i++) {
        struct pmix_member *last = &v[k];

        if (v[i].job == last->job && (last->last == PMIX_SIG_ALL || v[i].first <= last->last + 1)) {
            if (v[i].last > last->last)
                last->last = v[i].last;
        } else {
            v[++k] = v[i];
        }
    }
    return k + 1;
}

int pmix_sig_make(enum pmix_sig_kind kind, struct pmix_member *v, size_t count, struct buf *out)
{
    char first = (char)kind;
    int rc;

    if (count == 0)
        return -EINVAL;
    qsort(v, count, sizeof(*v), compare);
    count = join(v, count);
    rc = buf_add(out, &first, 1);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        const char *comma = i > 0 ? "," : "";

        if (v[i].last == PMIX_SIG_ALL)
            rc = buf_printf(out, "%s%u.*", comma, v[i].job);
        else
            rc = buf_printf(out, "%s%u.%u-%u", comma, v[i].job, v[i].first, v[i].last);
    }
    return rc;
}

int pmix_sig_add_name(struct buf *sig, const char *name)
{
    return strlen(name) > PMIX_GROUP_NAME_MAX ? -EINVAL : buf_printf(sig, "/%s", name);
}

/* A number up to `stop`, which is taken off too. */
static int take(struct span *s, char stop, uint32_t *out)
{
    const char *end = memchr(s->p, stop, s->n);
    uint64_t v;
    size_t n;

    if (end == NULL)
        return -EPROTO;
    n = (size_t)(end - s->p);
    if (num_u64((struct span){s->p, n}, 0, UINT32_MAX - 1, &v) < 0)
        return -EPROTO;
    *out = (uint32_t)v;
    *s = (struct span){end + 1, s->n - n - 1};
    return 0;
}

int pmix_sig_next(struct span *sig, struct pmix_member *m)
{
    struct span one;
    const char *comma;
    uint64_t v;

    if (sig->n > 0 && strchr(kinds, *sig->p) != NULL && *sig->p != '\0') {
        const char *name = memchr(sig->p, '/', sig->n);

        *sig = (struct span){sig->p + 1, name == NULL ? sig->n - 1 : (size_t)(name - sig->p) - 1};
    }
    if (sig->n == 0)
        return 0;
    comma = memchr(sig->p, ',', sig->n);
    one = (struct span){sig->p, comma == NULL ? sig->n : (size_t)(comma - sig->p)};
    *sig = comma == NULL ? (struct span){sig->p + sig->n, 0} : (struct span){comma + 1, sig->n - one.n - 1};
    if (take(&one, '.', &m->job) < 0)
        return -EPROTO;
    if (span_is(one, "*")) {
        m->first = 0;
        m->last = PMIX_SIG_ALL;
        return 1;
    }
    if (take(&one, '-', &m->first) < 0 || num_u64(one, m->first, TASKS_MAX, &v) < 0)
        return -EPROTO;
    m->last = (uint32_t)v;
    return 1;
}

/* " of ranks 0-3,7"; nothing where it is all of a job. */
static int add_members(struct span sig, struct buf *out)
{
    const char *before = " of ranks ";
    struct pmix_member m;
    uint32_t job = 0;
    int rc = 0;

    while (rc == 0 && pmix_sig_next(&sig, &m) == 1) {
        bool other = *before == ',' && m.job != job;

        job = m.job;
        if (other)
            return buf_add_str(out, " and of other jobs");
        if (m.last == PMIX_SIG_ALL)
            return 0;
        rc = m.first == m.last ? buf_printf(out, "%s%u", before, m.first)
                               : buf_printf(out, "%s%u-%u", before, m.first, m.last);
        before = ",";
    }
    return rc;
}

void pmix_sig_text(struct span sig, char *out, size_t size)
{
    const char *name = sig.n == 0 ? NULL : memchr(sig.p, '/', sig.n);
    char kind = sig.n == 0 ? '\0' : *sig.p;
    struct buf text = {0};
    struct pmix_member m;
    int rc;

    if (kind == PMIX_SIG_KEYS && pmix_sig_next(&sig, &m) == 1) {
        snprintf(out, size, "PMIx get of rank %u's keys", m.first);
        return;
    }
    if (kind == PMIX_SIG_LOOKUP && name != NULL) {
        struct span key = {name + 1, (size_t)(sig.p + sig.n - name) - 1};

        if (pmix_sig_next(&sig, &m) == 1) {
            snprintf(out, size, "PMIx look-up of '%.*s' by rank %u", SPAN_FMT(key), m.first);
            return;
        }
    }
    rc = buf_printf(&text, "PMIx %s",
                    kind == PMIX_SIG_FENCE        ? "fence"
                    : kind == PMIX_SIG_CONNECT    ? "connect"
                    : kind == PMIX_SIG_DISCONNECT ? "disconnect"
                    : kind == PMIX_SIG_UNGROUP    ? "end of group"
                                                  : "group");
    if (rc == 0 && name != NULL)
        rc = buf_printf(&text, " '%.*s'", (int)(sig.p + sig.n - name) - 1, name + 1);
    if (rc == 0)
        (void)add_members(sig, &text);
    snprintf(out, size, "%s", buf_str(&text) == NULL ? "PMIx collective" : buf_str(&text));
    buf_done(&text);
}

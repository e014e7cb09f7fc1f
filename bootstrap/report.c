/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - folding the reasons why hosts could not be started */
#include <stdlib.h>
#include <string.h>
#include "bootstrap/report.h"
#include "common/hostlist.h"
#include "common/io/sockname.h"

struct line {
    char *reason; /* of the first host, as it came */
    char *masked; /* with the host's name and addresses replaced */
    const char **host;
    size_t count, cap;
};

struct report {
    struct line line[REPORT_LINES_MAX];
    size_t count;
    size_t more; /* hosts that found no line */
};

struct report *report_new(void)
{
    return calloc(1, sizeof(struct report));
}

void report_free(struct report *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->count; i++) {
        free(r->line[i].reason);
        free(r->line[i].masked);
        free(r->line[i].host);
    }
    free(r);
}

/* What a login's words call it: without the user. */
static const char *label_of(const char *host)
{
    const char *at = strrchr(host, '@');

    return at != NULL ? at + 1 : host;
}

/* ssh's "USER@HOST: " in front says nothing that the label does not. */
static const char *skip_user_at_host(const char *words, const char *label)
{
    const char *stop = strstr(words, ": ");
    const char *at = strchr(words, '@');
    size_t n = strlen(label);

    if (stop == NULL || at == NULL || at > stop || (size_t)(stop - at - 1) != n || memcmp(at + 1, label, n) != 0)
        return words;
    return stop + 2;
}

/* Copy `reason` word by word, HOST for what is the host's own. */
static int mask(const char *reason, const char *label, struct buf *out)
{
    int rc = 0;

    while (rc == 0 && *reason != '\0') {
        size_t n = strcspn(reason, " ");
        struct span word = {reason, n};

        while (word.n > 0 && strchr(":.,;)", word.p[word.n - 1]) != NULL)
            word.n--;
        if (word.n > 0 && (span_is(word, label) || sockname_is_number(word)))
            rc = buf_printf(out, "HOST%.*s", (int)(n - word.n), reason + word.n);
        else
            rc = buf_add(out, reason, n);
        reason += n;
        n = strspn(reason, " ");
        if (rc == 0)
            rc = buf_add(out, reason, n);
        reason += n;
    }
    return rc;
}

static int line_add_host(struct line *l, const char *host)
{
    if (l->count == l->cap) {
        size_t cap = l->cap == 0 ? 8 : l->cap * 2;
        const char **more = realloc(l->host, cap * sizeof(*more));

        if (more == NULL)
            return -ENOMEM;
        l->host = more;
        l->cap = cap;
    }
    l->host[l->count++] = host;
    return 0;
}

/* The line for `masked`, a new one where there is none; NULL: no room or no memory. */
static struct line *find_line(struct report *r, const char *masked, const char *reason)
{
    struct line *l;

    for (size_t i = 0; i < r->count; i++)
        if (strcmp(r->line[i].masked, masked) == 0)
            return &r->line[i];
    if (r->count == REPORT_LINES_MAX)
        return NULL;
    l = &r->line[r->count];
    l->masked = strdup(masked);
    l->reason = strdup(reason);
    if (l->masked == NULL || l->reason == NULL) {
        free(l->masked);
        free(l->reason);
        l->masked = l->reason = NULL;
        return NULL;
    }
    r->count++;
    return l;
}

void report_add(struct report *r, const char *host, const char *reason)
{
    const char *label = label_of(host), *words, *stage_end;
    struct buf plain = {0}, masked = {0};
    struct line *l = NULL;

    if (reason == NULL)
        reason = "cannot be started";
    stage_end = strstr(reason, ": ");
    words = stage_end != NULL ? stage_end + 2 : reason;
    if (buf_add(&plain, reason, (size_t)(words - reason)) == 0 &&
        buf_add_str(&plain, skip_user_at_host(words, label)) == 0 && buf_str(&plain) != NULL &&
        mask(plain.p, label, &masked) == 0 && buf_str(&masked) != NULL)
        l = find_line(r, masked.p, plain.p);
    if (l == NULL || line_add_host(l, host) < 0)
        r->more++;
    buf_done(&plain);
    buf_done(&masked);
}

int report_text(const struct report *r, struct buf *out)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->count; i++) {
        const struct line *l = &r->line[i];

        if (i > 0)
            rc = buf_add_str(out, "\n");
        if (rc == 0)
            rc = hostnames_fold(l->host, l->count, REPORT_HOSTS_MAX, out);
        if (rc == 0)
            rc = buf_printf(out, ": %s", l->count == 1 ? l->reason : l->masked);
    }
    if (rc == 0 && r->more > 0)
        rc = buf_printf(out, "%s%zu more hosts: other reasons", r->count > 0 ? "\n" : "", r->more);
    return rc == 0 && buf_str(out) == NULL ? -ENOMEM : rc;
}

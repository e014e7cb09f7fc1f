/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/hostlist.h"

#include <stdlib.h>
#include "common/hostitem.h"
#include "common/limits.h"
#include "common/num.h"

#define CHUNK_BYTES 65536

/* Names lie in chunks, so that they never move while the list grows. */
struct chunk {
    struct chunk *next;
    size_t used;
    char bytes[CHUNK_BYTES];
};

struct hostlist {
    struct host *v;
    size_t count, cap;
    struct chunk *chunks; /* the newest first */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct span span_between(const char *from, const char *to)
{
    return (struct span){from, (size_t)(to - from)};
}

static struct span trim(struct span s)
{
    while (s.n > 0 && is_blank(s.p[0]))
        s = (struct span){s.p + 1, s.n - 1};
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

struct hostlist *hostlist_new(void)
{
    return calloc(1, sizeof(struct hostlist));
}

void hostlist_free(struct hostlist *hl)
{
    if (hl == NULL)
        return;
    while (hl->chunks != NULL) {
        struct chunk *next = hl->chunks->next;

        free(hl->chunks);
        hl->chunks = next;
    }
    free(hl->v);
    free(hl);
}

size_t hostlist_count(const struct hostlist *hl)
{
    return hl->count;
}

struct host hostlist_get(const struct hostlist *hl, size_t i)
{
    return hl->v[i];
}

void hostlist_truncate(struct hostlist *hl, size_t count)
{
    if (count < hl->count)
        hl->count = count;
}

static int reserve(struct hostlist *hl, size_t more)
{
    size_t cap = hl->cap ? hl->cap : 16;
    struct host *v;

    if (hl->count + more <= hl->cap)
        return 0;
    while (cap < hl->count + more)
        cap *= 2;
    v = realloc(hl->v, cap * sizeof(*v));
    if (v == NULL)
        return -ENOMEM;
    hl->v = v;
    hl->cap = cap;
    return 0;
}

/* `len` bytes, at most CHUNK_BYTES; NULL: out of memory. */
static char *chunk_take(struct hostlist *hl, size_t len)
{
    struct chunk *c = hl->chunks;

    if (c == NULL || CHUNK_BYTES - c->used < len) {
        c = malloc(sizeof(*c));
        if (c == NULL)
            return NULL;
        c->next = hl->chunks;
        c->used = 0;
        hl->chunks = c;
    }
    c->used += len;
    return c->bytes + c->used - len;
}

/* The name at which the item stands. There is room for it in the array. */
static int append_name(struct hostlist *hl, const struct hostitem *it)
{
    char name[HOST_NAME_MAX_LEN + 1];
    size_t n = hostitem_name(it, name);
    char *kept = chunk_take(hl, n + 1);

    if (kept == NULL)
        return -ENOMEM;
    memcpy(kept, name, n + 1);
    hl->v[hl->count++] = (struct host){kept, (unsigned)it->slots};
    return 0;
}

static int append_all(struct hostlist *hl, struct hostitem *it)
{
    int rc = reserve(hl, (size_t)hostitem_count(it));

    if (rc < 0)
        return rc;
    hostitem_first(it);
    do
        rc = append_name(hl, it);
    while (rc == 0 && hostitem_next(it));
    return rc;
}

static int add_item(struct hostlist *hl, const struct hostitem_text *r, struct span s)
{
    struct hostitem it;
    int rc = hostitem_read(r, s, &it);

    if (rc < 0)
        return rc;
    if (hostitem_count(&it) > HOSTS_MAX - hl->count)
        return hostitem_refuse(r, s.p, -E2BIG, "more than %u hosts in all", HOSTS_MAX);
    rc = append_all(hl, &it);
    return rc < 0 ? err_set(r->err, rc, "out of memory") : 0;
}

/* The end of the item at `p`: a comma or blank outside brackets. */
static const char *item_end(const char *p, const char *end)
{
    bool bracket = false, file = *p == '^';

    for (; p < end; p++) {
        if (!file && (*p == '[' || *p == ']'))
            bracket = *p == '[';
        else if (!bracket && (*p == ',' || is_blank(*p)))
            break;
    }
    return p;
}

static int add_file(struct hostlist *hl, const struct hostitem_text *r, struct span item, hostlist_file_fn file,
                    void *arg)
{
    char path[4096];

    if (file == NULL)
        return hostitem_refuse(r, item.p, -EINVAL, "a file cannot be named here");
    if (item.n == 1 || item.n > sizeof(path) || memchr(item.p, '\0', item.n) != NULL)
        return hostitem_refuse(r, item.p, -EINVAL, "a file is named as in ^/path/to/hosts");
    memcpy(path, item.p + 1, item.n - 1);
    path[item.n - 1] = '\0';
    return file(hl, path, arg, r->err);
}

struct files {
    hostlist_file_fn add;
    void *arg;
};

/* All items of `s`, a part of the reader's text. May leave `hl` with some of them on failure. */
static int add_items(struct hostlist *hl, const struct hostitem_text *r, struct span s, const struct files *files)
{
    struct span left = trim(s);
    const char *p = left.p, *end = p + left.n;

    if (p == end)
        return hostitem_refuse(r, s.p, -EINVAL, "the host list is empty");
    while (p < end) {
        const char *stop = item_end(p, end);
        struct span item = span_between(p, stop);
        int rc;

        if (item.n == 0)
            return hostitem_refuse(r, p, -EINVAL, "a host name is missing before this comma");
        rc = *p == '^' ? add_file(hl, r, item, files->add, files->arg) : add_item(hl, r, item);
        if (rc < 0)
            return rc;
        for (p = stop; p < end && is_blank(*p);)
            p++;
        if (p == end)
            break;
        if (*p == ',')
            for (p++; p < end && is_blank(*p);)
                p++;
        if (p == end)
            return hostitem_refuse(r, p - 1, -EINVAL, "a host name is missing after the last comma");
    }
    return 0;
}

int hostlist_add(struct hostlist *hl, struct span text, hostlist_file_fn file, void *arg, struct err *err)
{
    struct hostitem_text r = {text.p ? text : span_of(""), 0, err};
    struct files files = {file, arg};
    size_t before = hl->count;
    int rc = add_items(hl, &r, r.all, &files);

    if (rc < 0)
        hl->count = before;
    return rc;
}

int hostlist_add_host(struct hostlist *hl, struct span name, unsigned slots)
{
    struct hostitem_text r = {name, 0, NULL};
    struct hostitem it;
    int rc;

    if (name.n == 0)
        return -EINVAL;
    rc = hostitem_read(&r, name, &it);
    if (rc < 0)
        return rc;
    if (it.groups > 0 || it.slots > 0 || slots > SLOTS_MAX)
        return -EINVAL;
    if (hl->count == HOSTS_MAX)
        return -E2BIG;
    it.slots = slots;
    rc = reserve(hl, 1);
    return rc < 0 ? rc : append_name(hl, &it);
}

/* What may follow the hosts on a line: "slots=N". `first` is the first of the line's hosts. */
static int add_column(struct hostlist *hl, size_t first, const struct hostitem_text *t, struct span column)
{
    uint64_t slots;
    size_t n = 0;

    while (n < column.n && !is_blank(column.p[n]))
        n++;
    /* Open MPI's max_slots may come on either side of it. */
    if (n < column.n || !span_starts(column, "slots=")) {
        if (span_starts(column, "slots="))
            column = trim((struct span){column.p + n, column.n - n});
        return hostitem_refuse(t, column.p, -EINVAL, "only 'slots=N' may follow a host, one host a line");
    }
    if (num_u64((struct span){column.p + 6, column.n - 6}, 1, SLOTS_MAX, &slots) < 0)
        return hostitem_refuse(t, column.p + 6, -EINVAL, "a number of slots, 1 to %d, was expected here", SLOTS_MAX);
    for (size_t i = first; i < hl->count; i++) {
        if (hl->v[i].slots != 0)
            return hostitem_refuse(t, column.p, -EINVAL, "slots are given twice");
        hl->v[i].slots = (unsigned)slots;
    }
    return 0;
}

int hostlist_add_line(struct hostlist *hl, struct span line, unsigned lineno, struct err *err)
{
    const char *hash = line.n > 0 ? memchr(line.p, '#', line.n) : NULL;
    struct span text = trim(hash ? span_between(line.p, hash) : line);
    struct hostitem_text t = {text, lineno, err};
    struct files none = {0};
    size_t before = hl->count, n = 0;
    struct span column;
    int rc;

    if (text.n == 0)
        return 0;
    while (n < text.n && !is_blank(text.p[n]))
        n++;
    column = trim((struct span){text.p + n, text.n - n});
    rc = add_items(hl, &t, (struct span){text.p, n}, &none);
    if (rc == 0 && column.n > 0)
        rc = add_column(hl, before, &t, column);
    if (rc < 0)
        hl->count = before;
    return rc;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

struct names {
    const char **sorted; /* NULL: there was no memory for it, so search the slow way */
    const struct hostlist *list;
};

static bool is_among(const char *name, const struct names *names)
{
    if (names->sorted != NULL)
        return bsearch(&name, names->sorted, names->list->count, sizeof(*names->sorted), compare_names) != NULL;
    for (size_t i = 0; i < names->list->count; i++)
        if (strcmp(name, names->list->v[i].name) == 0)
            return true;
    return false;
}

size_t hostlist_exclude(struct hostlist *hl, const struct hostlist *gone)
{
    struct names names = {malloc((gone->count + 1) * sizeof(*names.sorted)), gone};
    size_t kept = 0, removed;

    for (size_t i = 0; names.sorted != NULL && i < gone->count; i++)
        names.sorted[i] = gone->v[i].name;
    if (names.sorted != NULL)
        qsort(names.sorted, gone->count, sizeof(*names.sorted), compare_names);
    for (size_t i = 0; i < hl->count; i++) {
        const char *at = strchr(hl->v[i].name, '@');

        if (!is_among(hl->v[i].name, &names) && (at == NULL || !is_among(at + 1, &names)))
            hl->v[kept++] = hl->v[i];
    }
    free(names.sorted);
    removed = hl->count - kept;
    hl->count = kept;
    return removed;
}

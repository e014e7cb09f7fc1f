/* SPDX-License-Identifier: BSD-3-Clause */
/* Folds names and numbers back into short text. Only neighbours are joined, and names in one number only, so that the
 * text expands to the same names in the same order, and the oldest readers of such lists understand it.
 */
#include "common/hostlist.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/limits.h"
#include "common/num.h"

/* What pdsh 2.34 takes: hosts in one range, and (a little less than) ranges in one pair of brackets. */
#define FOLD_RANGE_HOSTS 16384
#define FOLD_RANGES 10000

struct fold {
    struct buf *out;
    size_t start, max; /* bytes before ours, bytes allowed (0: any) */
    bool brackets_v6;
};

/* The names of one group differ in the digits between prefix and suffix. */
struct shape {
    const char *name; /* the first one */
    size_t prefix;    /* length */
    size_t suffix;    /* length */
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool has_room(const struct fold *f, size_t more)
{
    return f->max == 0 || f->out->len - f->start + more <= f->max;
}

static bool is_v6(const char *name)
{
    return strchr(name, ':') != NULL;
}

/* Where the two names differ in one number and in nothing else, that number in `a`. */
static bool find_shape(const char *a, const char *b, struct shape *shape)
{
    const char *at = strchr(a, '@');
    size_t la = strlen(a), lb = strlen(b), same = 0, from, to;

    while (a[same] != '\0' && a[same] == b[same])
        same++;
    if (is_v6(a) || (a[same] == '\0' && b[same] == '\0'))
        return false;
    from = to = same;
    while (from > 0 && is_digit(a[from - 1]))
        from--;
    while (is_digit(a[to]))
        to++;
    /* A user's number never goes into brackets: nobody would read them there. */
    if (to == from || (at != NULL && a + from < at) || lb < from + (la - to))
        return false;
    *shape = (struct shape){a, from, la - to};
    return true;
}

/* The number of `name` if it has this shape, as digits in the name. */
static bool fits(const struct shape *shape, const char *name, struct span *digits)
{
    size_t len = strlen(name);

    if (len <= shape->prefix + shape->suffix || memcmp(name, shape->name, shape->prefix) != 0)
        return false;
    if (memcmp(name + len - shape->suffix, shape->name + strlen(shape->name) - shape->suffix, shape->suffix) != 0)
        return false;
    *digits = (struct span){name + shape->prefix, len - shape->prefix - shape->suffix};
    if (digits->n > HOST_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < digits->n; i++)
        if (!is_digit(digits->p[i]))
            return false;
    return true;
}

/* How many names from the first on are one range: each is the number before plus one, padded to the first one's width.
 * `last` becomes the last one's digits. */
static size_t range_length(const struct shape *shape, const char *const *names, size_t count, struct span *last)
{
    uint64_t value = 0;
    struct span digits;
    char want[32];
    size_t n = 1;
    int width;

    fits(shape, names[0], last);
    num_u64(*last, 0, UINT64_MAX, &value);
    width = (int)last->n;
    for (; n < count && n < FOLD_RANGE_HOSTS && fits(shape, names[n], &digits); n++) {
        snprintf(want, sizeof(want), "%0*" PRIu64, width, ++value);
        if (!span_is(digits, want))
            break;
        *last = digits;
    }
    return n;
}

/* Names of one shape from the first on, as prefix[ranges]suffix. `*done` becomes how many were written: less than there
 * are where there was no more room. */
static int add_group(const struct fold *f, const struct shape *shape, const char *const *names, size_t count,
                     size_t *done)
{
    size_t suffix_at = strlen(shape->name) - shape->suffix;
    struct span first, last;
    int rc = buf_add(f->out, shape->name, shape->prefix);

    *done = 0;
    for (size_t ranges = 0; rc == 0 && *done < count && ranges < FOLD_RANGES; ranges++) {
        size_t n;

        if (!fits(shape, names[*done], &first))
            break;
        n = range_length(shape, names + *done, count - *done, &last);
        if (ranges > 0 && !has_room(f, first.n + last.n + shape->suffix + 3))
            break;
        rc = buf_add(f->out, ranges > 0 ? "," : "[", 1);
        if (rc == 0)
            rc = buf_add(f->out, first.p, first.n);
        if (rc == 0 && n > 1)
            rc = buf_add(f->out, "-", 1);
        if (rc == 0 && n > 1)
            rc = buf_add(f->out, last.p, last.n);
        *done += n;
    }
    if (rc == 0)
        rc = buf_add(f->out, "]", 1);
    return rc < 0 ? rc : buf_add(f->out, shape->name + suffix_at, shape->suffix);
}

static int add_single(const struct fold *f, const char *name)
{
    const char *at = strchr(name, '@');
    const char *host = at ? at + 1 : name;

    if (!f->brackets_v6 || !is_v6(name))
        return buf_add_str(f->out, name);
    return buf_printf(f->out, "%.*s[%s]", (int)(host - name), name, host);
}

static int fold_names(const struct fold *f, const char *const *names, size_t count)
{
    struct shape shape;
    struct span digits;
    size_t done;
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i += done) {
        if (i > 0 && !has_room(f, strlen(names[i]) + 3))
            return buf_printf(f->out, ",... (%zu hosts)", count);
        if (i > 0)
            rc = buf_add(f->out, ",", 1);
        if (rc < 0)
            break;
        done = 1;
        if (i + 1 < count && find_shape(names[i], names[i + 1], &shape) && fits(&shape, names[i], &digits) &&
            fits(&shape, names[i + 1], &digits))
            rc = add_group(f, &shape, names + i, count - i, &done);
        else
            rc = add_single(f, names[i]);
    }
    return rc;
}

static int fold_or_restore(const struct fold *f, const char *const *names, size_t count)
{
    int rc = fold_names(f, names, count);

    if (rc < 0)
        f->out->len = f->start;
    return rc;
}

int hostnames_fold(const char *const *names, size_t count, size_t max, struct buf *out)
{
    struct fold f = {out, out->len, max, false};

    return fold_or_restore(&f, names, count);
}

int hostlist_fold(const struct hostlist *hl, bool brackets_v6, struct buf *out)
{
    struct fold f = {out, out->len, 0, brackets_v6};
    size_t count = hostlist_count(hl);
    const char **names = malloc((count + 1) * sizeof(*names));
    int rc;

    if (names == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        names[i] = hostlist_get(hl, i).name;
    rc = fold_or_restore(&f, names, count);
    free(names);
    return rc;
}

int numbers_fold(const uint32_t *v, size_t count, size_t max, struct buf *out)
{
    struct fold f = {out, out->len, max, false};
    size_t n;
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i += n) {
        char text[32];
        int len;

        for (n = 1; i + n < count && v[i + n] - v[i] == n; n++)
            ;
        len = n > 1 ? snprintf(text, sizeof(text), "%s%" PRIu32 "-%" PRIu32, i > 0 ? "," : "", v[i], v[i + n - 1])
                    : snprintf(text, sizeof(text), "%s%" PRIu32, i > 0 ? "," : "", v[i]);
        if (i > 0 && !has_room(&f, (size_t)len)) {
            rc = buf_printf(out, ",... (%zu in all)", count);
            break;
        }
        rc = buf_add(out, text, (size_t)len);
    }
    if (rc < 0)
        out->len = f.start;
    return rc;
}

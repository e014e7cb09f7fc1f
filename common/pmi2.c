/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/pmi2.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

int pmi2_header(const char header[PMI2_HEADER], size_t *len)
{
    size_t v = 0;
    int i = 0;

    while (i < PMI2_HEADER && header[i] == ' ')
        i++;
    for (; i < PMI2_HEADER && header[i] >= '0' && header[i] <= '9'; i++)
        v = v * 10 + (size_t)(header[i] - '0');
    while (i < PMI2_HEADER && header[i] == ' ')
        i++;
    if (i < PMI2_HEADER || v == 0)
        return -EPROTO;
    *len = v;
    return 0;
}

/* The length of the field at the front, up to the first semicolon that is not one of a pair; p.n: there is none. */
static size_t field_len(struct span p)
{
    size_t at = 0;

    while (at < p.n) {
        const char *semi = memchr(p.p + at, ';', p.n - at);

        if (semi == NULL)
            return p.n;
        at = (size_t)(semi - p.p);
        if (at + 1 == p.n || semi[1] != ';')
            return at;
        at += 2;
    }
    return p.n;
}

int pmi2_next(struct span *rest, struct pmi2_field *f)
{
    size_t len = field_len(*rest), key;
    const char *eq;

    if (rest->n == 0)
        return 0;
    if (len == rest->n || memchr(rest->p, '\0', len) != NULL)
        return -EPROTO;
    eq = memchr(rest->p, '=', len);
    key = eq == NULL ? len : (size_t)(eq - rest->p);
    if (key == 0)
        return -EPROTO;
    f->key = (struct span){rest->p, key};
    f->raw = eq == NULL ? SPAN_NONE : (struct span){eq + 1, len - key - 1};
    *rest = (struct span){rest->p + len + 1, rest->n - len - 1};
    return 1;
}

static bool is_name(struct span w)
{
    for (size_t i = 0; i < w.n; i++)
        if (w.p[i] <= ' ' || w.p[i] > '~' || w.p[i] == '=' || w.p[i] == ';')
            return false;
    return w.n > 0;
}

int pmi2_check(struct span payload, struct span *name)
{
    struct pmi2_field f;
    int rc = pmi2_next(&payload, &f);

    if (rc <= 0 || !span_is(f.key, "cmd") || !is_name(f.raw))
        return -EPROTO;
    *name = f.raw;
    while ((rc = pmi2_next(&payload, &f)) > 0) {
    }
    return rc;
}

struct span pmi2_get(struct span payload, const char *key)
{
    struct pmi2_field f;

    while (pmi2_next(&payload, &f) > 0)
        if (span_is(f.key, key))
            return f.raw;
    return SPAN_NONE;
}

int pmi2_plain(struct span raw, struct buf *room, struct span *plain)
{
    size_t start = room->len, from = 0;
    int rc;

    if (raw.n == 0 || memchr(raw.p, ';', raw.n) == NULL) {
        *plain = raw;
        return 0;
    }
    rc = buf_reserve(room, raw.n);
    if (rc < 0)
        return rc;
    /* Of each pair the first is copied and the second passed over. */
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] != ';')
            continue;
        (void)buf_add(room, raw.p + from, i + 1 - from);
        i += i + 1 < raw.n && raw.p[i + 1] == ';';
        from = i + 1;
    }
    (void)buf_add(room, raw.p + from, raw.n - from);
    *plain = (struct span){room->p + start, room->len - start};
    return 0;
}

int pmi2_begin(struct buf *out, struct span cmd)
{
    out->len = 0;
    if (buf_add(out, "      cmd=", 10) < 0 || buf_add(out, cmd.p, cmd.n) < 0)
        return -ENOMEM;
    return buf_add(out, ";", 1);
}

static int add_key(struct buf *out, const char *key)
{
    int rc = buf_add_str(out, key);

    return rc < 0 ? rc : buf_add(out, "=", 1);
}

int pmi2_add(struct buf *out, const char *key, struct span value)
{
    size_t from = 0;
    int rc = add_key(out, key);

    for (size_t i = 0; rc == 0 && i < value.n; i++) {
        if (value.p[i] != ';')
            continue;
        /* Up to and with this one, which is then the first of what follows as well. */
        rc = buf_add(out, value.p + from, i + 1 - from);
        from = i;
    }
    if (rc == 0 && value.n > 0)
        rc = buf_add(out, value.p + from, value.n - from);
    return rc < 0 ? rc : buf_add(out, ";", 1);
}

int pmi2_add_str(struct buf *out, const char *key, const char *value)
{
    return pmi2_add(out, key, span_of(value));
}

int pmi2_add_int(struct buf *out, const char *key, int64_t value)
{
    return buf_printf(out, "%s=%" PRId64 ";", key, value);
}

int pmi2_add_raw(struct buf *out, const char *key, struct span raw)
{
    int rc = add_key(out, key);

    if (rc == 0 && raw.n > 0)
        rc = buf_add(out, raw.p, raw.n);
    return rc < 0 ? rc : buf_add(out, ";", 1);
}

int pmi2_end(struct buf *out)
{
    char header[24];
    size_t len = out->len - PMI2_HEADER;

    if (len > PMI2_PAYLOAD_MAX)
        return -E2BIG;
    snprintf(header, sizeof(header), "%*zu", PMI2_HEADER, len);
    memcpy(out->p, header, PMI2_HEADER);
    return 0;
}

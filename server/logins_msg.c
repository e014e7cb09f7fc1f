/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/logins_msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "conf/conf.h"
#include "server/tree.h"

/* --- welcome ---------------------------------------------------------------------------------------------------- */

void logins_how_put(const struct logins_how *how, struct msg_out *m)
{
    msg_put_u64(m, "places", how->places);
    msg_put_u64(m, "self", how->self);
    msg_put_u64(m, "width", how->width);
    msg_put_u64(m, "logins", how->logins);
    msg_put_u64(m, "level", how->level);
    msg_put_u64(m, "attach", how->attach);
    msg_put_str(m, "program", how->program);
    msg_put_str(m, "script", how->script);
}

int logins_how_get(const struct msg_in *m, struct logins_how *out, struct err *err)
{
    struct logins_how how = {0};
    uint64_t places, self, width, logins, level, attach;
    int rc = msg_get_u64(m, "places", 2, NODES_MAX + 1, &places, err);

    if (rc < 0)
        return rc;
    if ((rc = msg_get_u64(m, "self", 0, UINT32_MAX, &self, err)) < 0 ||
        (rc = msg_get_u64(m, "width", 1, NODES_MAX, &width, err)) < 0 ||
        (rc = msg_get_u64(m, "logins", 1, NODES_MAX, &logins, err)) < 0 ||
        (rc = msg_get_u64(m, "level", 0, UINT32_MAX, &level, err)) < 0 ||
        (rc = msg_get_u64(m, "attach", 0, ATTACH_NO, &attach, err)) < 0 ||
        (rc = msg_get_str(m, "program", &how.program, err)) < 0)
        return rc == -ENOENT ? -EPROTO : rc;
    rc = msg_get_str(m, "script", &how.script, err);
    if (rc < 0 && rc != -ENOENT) {
        logins_how_done(&how);
        return rc;
    }
    how.places = (uint32_t)places;
    how.self = (uint32_t)self;
    how.width = (uint32_t)width;
    how.logins = (uint32_t)logins;
    how.level = (unsigned)level;
    how.attach = (unsigned)attach;
    *out = how;
    return 0;
}

void logins_how_done(struct logins_how *how)
{
    free(how->program);
    free(how->script);
    *how = (struct logins_how){0};
}

uint32_t logins_how_node(const struct logins_how *how, uint32_t place)
{
    return how->self != TREE_NONE && place > how->self ? place : place - 1;
}

/* --- ranges of places ------------------------------------------------------------------------------------------- */

static bool is_range(uint64_t first, uint64_t count, uint32_t places)
{
    return first >= 1 && first < places && count >= 1 && count <= places - first;
}

static int add_ranges(struct ranges *r, const uint32_t *first, const uint32_t *count, size_t n, uint32_t places)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (!is_range(first[i], count[i], places))
            return -EPROTO;
        rc = ranges_add(r, (struct share_range){first[i], count[i]});
    }
    return rc == -EEXIST ? -EPROTO : rc;
}

static int get_ranges(const struct msg_in *m, uint32_t places, struct ranges *out, struct err *err)
{
    uint32_t *first = NULL, *count = NULL;
    size_t n = 0, n2 = 0;
    int rc = msg_get_u32v(m, "first", places, &first, &n, err);

    if (rc == 0)
        rc = msg_get_u32v(m, "count", places, &count, &n2, err);
    if (rc == 0)
        rc = n == n2 ? add_ranges(out, first, count, n, places) : -EPROTO;
    free(first);
    free(count);
    return rc < 0 ? err_set(err, rc, rc == -ENOMEM ? "out of memory" : "its places are no ranges") : 0;
}

static int put_ranges(struct msg_out *m, const struct ranges *r)
{
    uint32_t *v = calloc(2 * (r->count + (size_t)1), sizeof(*v));

    if (v == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < r->count; i++) {
        v[i] = r->v[i].first;
        v[r->count + i] = r->v[i].count;
    }
    msg_put_u32v(m, "first", v, r->count);
    msg_put_u32v(m, "count", v + r->count, r->count);
    free(v);
    return 0;
}

/* --- share ------------------------------------------------------------------------------------------------------ */

int logins_share_get(struct span body, uint32_t places, struct logins_share *out, struct err *err)
{
    struct logins_share s = {.hosts = hostlist_new()};
    struct msg_in *m = NULL;
    struct span hosts;
    uint64_t first, count;
    int rc = s.hosts == NULL ? err_set(err, -ENOMEM, "out of memory") : msg_in_new(&m, body, err);

    if (rc == 0 && (rc = msg_get_u64(m, "first", 1, NODES_MAX, &first, err)) == 0 &&
        (rc = msg_get_u64(m, "count", 1, NODES_MAX, &count, err)) == 0 &&
        (rc = msg_get_u64(m, "login_us", 0, UINT64_MAX, &s.times.login_us, err)) == 0 &&
        (rc = msg_get_u64(m, "gap_us", 0, UINT64_MAX, &s.times.gap_us, err)) == 0 &&
        (rc = msg_get_bin(m, "hosts", &hosts, err)) == 0) {
        if (!is_range(first, count, places))
            rc = err_set(err, -EPROTO, "its places are no range");
        else
            rc = hostlist_add(s.hosts, hosts, NULL, NULL, err);
        if (rc == 0 && hostlist_count(s.hosts) != count)
            rc = err_set(err, -EPROTO, "%zu hosts for %u places", hostlist_count(s.hosts), (unsigned)count);
        s.range = (struct share_range){(uint32_t)first, (uint32_t)count};
    }
    msg_in_free(m);
    if (rc < 0)
        hostlist_free(s.hosts);
    else
        *out = s;
    return rc == -ENOENT ? -EPROTO : rc;
}

/* --- up --------------------------------------------------------------------------------------------------------- */

int logins_note_put(const struct logins_note *note, unsigned type, struct msg_out *m)
{
    int rc = 0;

    switch (type) {
    case MSG_JOINED:
        msg_put_u32v(m, "place", note->place, note->count);
        msg_put_u32v(m, "parent", note->parent, note->count);
        break;
    case MSG_UNJOINED:
        msg_put_u64(m, "place", note->one);
        rc = put_ranges(m, &note->ranges);
        msg_put_str(m, "text", note->text);
        break;
    case MSG_BACK:
        rc = put_ranges(m, &note->ranges);
        msg_put_bool(m, "closed", note->closed);
        break;
    default:
        msg_put_u64(m, "place", note->one);
        msg_put_u64(m, "from", note->from);
        msg_put_u64(m, "left", note->left);
        msg_put_str(m, "text", note->text);
        break;
    }
    return rc;
}

static int get_joined(const struct msg_in *m, uint32_t places, struct logins_note *n, struct err *err)
{
    size_t count = 0, count2 = 0;
    int rc = msg_get_u32v(m, "place", places, &n->place, &count, err);

    if (rc == 0)
        rc = msg_get_u32v(m, "parent", places, &n->parent, &count2, err);
    if (rc < 0)
        return rc;
    if (count != count2)
        return err_set(err, -EPROTO, "%zu parents for %zu places", count2, count);
    n->count = (uint32_t)count;
    for (uint32_t i = 0; i < n->count; i++)
        if (n->place[i] < 1 || n->place[i] >= places || n->parent[i] >= places || n->parent[i] == n->place[i])
            return err_set(err, -EPROTO, "no such place");
    return 0;
}

static int get_one(const struct msg_in *m, const char *key, uint32_t min, uint32_t places, uint32_t *out,
                   struct err *err)
{
    uint64_t v;
    int rc = msg_get_u64(m, key, min, places - 1, &v, err);

    if (rc == 0)
        *out = (uint32_t)v;
    return rc;
}

static int get_note(const struct msg_in *m, unsigned type, uint32_t places, struct logins_note *n, struct err *err)
{
    int rc;

    switch (type) {
    case MSG_JOINED:
        return get_joined(m, places, n, err);
    case MSG_UNJOINED:
        if ((rc = get_one(m, "place", 1, places, &n->one, err)) < 0 ||
            (rc = get_ranges(m, places, &n->ranges, err)) < 0)
            return rc;
        return msg_get_str(m, "text", &n->text, err);
    case MSG_BACK:
        rc = get_ranges(m, places, &n->ranges, err);
        return rc < 0 ? rc : msg_get_bool(m, "closed", &n->closed, err);
    case MSG_LOGIN_FAILED:
        if ((rc = get_one(m, "place", 1, places, &n->one, err)) < 0 ||
            (rc = get_one(m, "from", 1, places, &n->from, err)) < 0 ||
            (rc = get_one(m, "left", 0, places, &n->left, err)) < 0)
            return rc;
        return msg_get_str(m, "text", &n->text, err);
    default:
        return 0;
    }
}

int logins_note_get(struct span body, unsigned type, uint32_t places, struct logins_note *out, struct err *err)
{
    struct logins_note n = {0};
    struct msg_in *m;
    int rc = msg_in_new(&m, body, err);

    if (rc < 0)
        return rc;
    rc = get_note(m, type, places, &n, err);
    msg_in_free(m);
    if (rc < 0)
        logins_note_done(&n);
    else
        *out = n;
    return rc == -ENOENT ? -EPROTO : rc;
}

void logins_note_done(struct logins_note *n)
{
    free(n->place);
    free(n->parent);
    free(n->text);
    ranges_done(&n->ranges);
    *n = (struct logins_note){0};
}

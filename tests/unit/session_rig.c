/* SPDX-License-Identifier: BSD-3-Clause */
#include "session_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include "common/msg.h"
#include "common/pmi2.h"
#include "server/group.h"

static void on_reply(struct session *s, struct span bytes, void *arg)
{
    struct rig_end *e = arg;

    (void)s;
    cr_expect(bytes.n > 0);
    buf_add(&e->out, bytes.p, bytes.n);
}

/* PMI_ID is rank + n x set. */
static int on_identify(struct session *s, uint32_t id, struct err *err, void *arg)
{
    struct rig_end *e = arg;
    struct rig *r = e->rig;
    struct session_who who = {&r->job, id % r->n, id % r->n, 0, id / r->n};

    if (who.set > 9)
        return err_set(err, -EPERM, "id %u is nobody's", id);
    session_bind(s, &who);
    return 0;
}

static int on_barrier_in(struct session *s, const struct barrier_id *id, void *arg)
{
    struct rig_end *e = arg;
    struct rig *r = e->rig;
    const struct session_who *who = session_who(s);

    r->entered++;
    if (r->refuse_barrier < 0)
        return r->refuse_barrier;
    kvs_commit(r->job.kvs, who->slot, who->rank, 0);
    return barriers_enter(r->barriers, id, who->slot, NULL);
}

static int on_need(const struct barrier_id *id, struct barrier_need *need, void *arg)
{
    struct rig *r = arg;
    struct span rest = id->group;
    struct group_part p;
    uint32_t count = 0;

    if (span_is(id->group, "WORLD") || span_is(id->group, "NODE"))
        count = r->n;
    while (count < r->n && group_next(&rest, &p) > 0)
        count += (p.last - p.first) / p.step + 1;
    *need = (struct barrier_need){.local = count, .total = count};
    return 0;
}

static void on_release(const struct barrier_id *id, const struct barrier_done *done, void *arg)
{
    struct rig *r = arg;

    kvs_install(r->job.kvs);
    for (uint32_t i = 0; i < done->nslots; i++)
        for (unsigned k = 0; k < RIG_MAX; k++) {
            struct session *s = r->end[k].s;

            if (s != NULL && session_is_bound(s) && session_who(s)->slot == done->slots[i] &&
                session_who(s)->set == id->set)
                session_barrier_out(s, id, done->rc);
        }
}

static const struct barrier_ops barrier_ops = {.need = on_need, .release = on_release};

static int find_name(const struct rig *r, const char *service)
{
    for (unsigned i = 0; i < ARRAY_SIZE(r->names); i++)
        if (strcmp(r->names[i].service, service) == 0)
            return (int)i;
    return -1;
}

static int on_name(struct session *s, uint32_t req, enum session_name_op op, struct span service, struct span port,
                   void *arg)
{
    struct rig_end *e = arg;
    struct rig *r = e->rig;
    char name[NAME_SERVICE_MAX + 1];
    int at, rc = 0;

    r->name_req = req;
    if (r->refuse_name < 0 || r->hold_names)
        return r->refuse_name;
    snprintf(name, sizeof(name), "%.*s", SPAN_FMT(service));
    at = find_name(r, op == SESSION_PUBLISH && find_name(r, name) < 0 ? "" : name);
    if (op == SESSION_PUBLISH && find_name(r, name) >= 0)
        rc = -EEXIST;
    else if (at < 0)
        rc = -ENOENT;
    else if (op == SESSION_PUBLISH)
        snprintf(r->names[at].service, sizeof(name), "%s", name);
    if (rc == 0 && op == SESSION_PUBLISH)
        snprintf(r->names[at].port, sizeof(r->names[at].port), "%.*s", SPAN_FMT(port));
    if (rc == 0 && op == SESSION_UNPUBLISH)
        r->names[at].service[0] = '\0';
    session_name_done(s, req, rc, at < 0 ? SPAN_NONE : span_of(r->names[at].port));
    return 0;
}

static int on_spawn(struct session *s, uint32_t req, const struct spawn_want *want, void *arg)
{
    struct rig_end *e = arg;
    struct rig *r = e->rig;
    struct msg_out *m = msg_out_new();
    struct msg_in *in;
    struct span body;

    (void)s;
    r->spawns++;
    r->spawn_req = req;
    spawn_want_done(&r->want);
    cr_assert_eq(spawn_want_pack(want, m), 0);
    cr_assert_eq(msg_out_done(m, &body), 0);
    cr_assert_eq(msg_in_new(&in, body, NULL), 0);
    cr_assert_eq(spawn_want_unpack(in, &r->want, NULL), 0);
    cr_expect_eq(spawn_want_tasks(&r->want), spawn_want_tasks(want));
    msg_in_free(in);
    msg_out_free(m);
    return r->refuse_spawn;
}

static void on_abort(struct session *s, int code, struct span text, void *arg)
{
    struct rig_end *e = arg;
    struct rig *r = e->rig;

    (void)s;
    r->aborts++;
    r->abort_code = code;
    snprintf(r->abort_text, sizeof(r->abort_text), "%.*s", SPAN_FMT(text));
}

static void on_warn(struct session *s, const char *text, void *arg)
{
    struct rig_end *e = arg;

    (void)s;
    e->rig->warnings++;
    snprintf(e->rig->warning, sizeof(e->rig->warning), "%s", text);
}

static void on_trace(struct session *s, bool request, struct span line, void *arg)
{
    struct rig_end *e = arg;

    (void)s;
    buf_printf(&e->rig->traced, "%c %.*s\n", request ? 'C' : 'S', SPAN_FMT(line));
}

static int on_map(struct session *s, enum session_map what, void *arg)
{
    struct rig_end *e = arg;

    (void)s, (void)what;
    e->rig->maps++;
    return e->rig->refuse_map;
}

static const struct session_ops ops = {on_reply, on_identify, on_barrier_in, on_name, on_spawn,
                                       on_abort, on_warn,     on_trace,      on_map};

unsigned rig_open(struct rig *r)
{
    unsigned i = 0;

    while (r->end[i].s != NULL)
        i++;
    r->end[i] = (struct rig_end){.rig = r, .index = i};
    r->end[i].s = session_new(&ops, &r->end[i]);
    return i;
}

void rig_init(struct rig *r, unsigned n)
{
    *r = (struct rig){.n = n, .job = {.size = n, .universe = n, .kvsname = "kvs-1"}};
    r->job.kvs = kvs_new(n, 1, false);
    r->job.attrs = attrs_new();
    r->barriers = barriers_new(n, 0, &barrier_ops, r);
    for (unsigned i = 0; i < n; i++) {
        struct session_who who = {.job = &r->job, .rank = i, .slot = i};

        session_bind(r->end[rig_open(r)].s, &who);
    }
    kvs_preput(r->job.kvs, span_of("PMI_process_mapping"), span_of("(vector,(0,1,4))"));
}

void rig_done(struct rig *r)
{
    for (unsigned i = 0; i < RIG_MAX; i++) {
        session_free(r->end[i].s);
        buf_done(&r->end[i].out);
    }
    buf_done(&r->traced);
    spawn_want_done(&r->want);
    barriers_free(r->barriers);
    attrs_free(r->job.attrs);
    kvs_free(r->job.kvs);
}

int feed(struct rig *r, unsigned index, const char *text)
{
    return session_feed(r->end[index].s, span_of(text), NULL);
}

int feed_frame(struct rig *r, unsigned index, const char *payload)
{
    struct buf b = {0};
    int rc;

    /* Aligned left, as most clients do it. */
    buf_printf(&b, "%-6zu%s", strlen(payload), payload);
    rc = session_feed(r->end[index].s, buf_span(&b), NULL);
    buf_done(&b);
    return rc;
}

const char *take(struct rig *r, unsigned index)
{
    static char text[70000];

    snprintf(text, sizeof(text), "%s", buf_str(&r->end[index].out));
    r->end[index].out.len = 0;
    return text;
}

const char *take_frames(struct rig *r, unsigned index)
{
    static char text[70000];
    struct buf *out = &r->end[index].out;
    size_t len, used = 0;

    text[0] = '\0';
    for (size_t at = 0; at < out->len; at += PMI2_HEADER + len) {
        struct span payload, name;

        cr_assert(out->len - at >= PMI2_HEADER);
        cr_assert_eq(pmi2_header(out->p + at, &len), 0, "no frame: %.*s", SPAN_FMT(buf_span(out)));
        cr_assert_geq(out->p[at + 5], '0', "not aligned right");
        cr_assert(len <= out->len - at - PMI2_HEADER);
        payload = (struct span){out->p + at + PMI2_HEADER, len};
        cr_assert_eq(pmi2_check(payload, &name), 0);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s\n", SPAN_FMT(payload));
    }
    out->len = 0;
    return text;
}

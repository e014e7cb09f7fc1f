/* SPDX-License-Identifier: BSD-3-Clause */
/* session_peer.h - the owner of a session under a fuzzer: answers what it is asked at once, later or not, as the input
 * has it, and remembers what came out. Included by one target each. */
#ifndef TESTS_FUZZ_SESSION_PEER_H
#define TESTS_FUZZ_SESSION_PEER_H

#include <assert.h>
#include <stdlib.h>
#include "common/limits.h"
#include "common/num.h"
#include "server/session.h"

struct peer {
    struct session *s;
    struct session_job job;
    struct buf out;
    unsigned requests, replies, aborts, code, starts;
    void (*check)(struct peer *p, struct span reply);
};

static void on_reply(struct session *s, struct span bytes, void *arg)
{
    struct peer *p = arg;

    (void)s;
    assert(bytes.n > 0);
    p->check(p, bytes);
    p->replies++;
    assert(p->replies + p->aborts <= p->requests);
    buf_add(&p->out, bytes.p, bytes.n);
}

/* Even ids are known. */
static int on_identify(struct session *s, uint32_t id, struct err *err, void *arg)
{
    struct peer *p = arg;
    struct session_who who = {.job = &p->job, .set = id / 2};

    if (id % 2 != 0)
        return err_set(err, -EPERM, "not that one");
    session_bind(s, &who);
    return 0;
}

/* Tags 5 are never complete, and 6 refused. */
static int on_barrier_in(struct session *s, const struct barrier_id *id, void *arg)
{
    struct peer *p = arg;

    assert(id->group.n > 0 && id->group.n <= BARRIER_NAME_MAX);
    if (id->tag == 6)
        return -EPIPE;
    if (kvs_commit(p->job.kvs, 0, 0, 0) < 0 || kvs_install(p->job.kvs) < 0)
        return -ENOMEM;
    if (id->tag != 5)
        session_barrier_out(s, id, 0);
    return 0;
}

static int on_name(struct session *s, uint32_t req, enum session_name_op op, struct span service, struct span port,
                   void *arg)
{
    (void)arg;
    assert(service.n > 0 && service.n <= NAME_SERVICE_MAX && port.n <= NAME_PORT_MAX);
    assert(op != SESSION_PUBLISH || port.n > 0);
    if (service.p[0] == 'n')
        return -ENOENT;
    if (service.p[0] == 'd')
        session_name_done(s, req, -EEXIST, SPAN_NONE);
    else if (service.p[0] != 'l')
        session_name_done(s, req, 0, service);
    return 0;
}

static int on_spawn(struct session *s, uint32_t req, const struct spawn_want *want, void *arg)
{
    struct peer *p = arg;
    struct msg_out *m = msg_out_new();
    struct spawn_want again = {0};
    struct msg_in *in;
    struct span body;
    int codes[2] = {0, 7};

    p->starts++;
    assert(want->count > 0 && spawn_want_tasks(want) > 0);
    assert(m != NULL && spawn_want_pack(want, m) == 0 && msg_out_done(m, &body) == 0);
    assert(msg_in_new(&in, body, NULL) == 0 && spawn_want_unpack(in, &again, NULL) == 0);
    assert(again.count == want->count && spawn_want_tasks(&again) == spawn_want_tasks(want));
    spawn_want_done(&again);
    msg_in_free(in);
    msg_out_free(m);
    session_spawn_done(s, req, 0, "kvs-2", codes, spawn_want_tasks(want) == 2 ? 2 : 0);
    return 0;
}

static void on_abort(struct session *s, int code, struct span text, void *arg)
{
    struct peer *p = arg;

    (void)s;
    (void)text;
    assert(code >= 1 && code <= 255);
    p->aborts++;
    p->code = (unsigned)code;
}

static void on_warn(struct session *s, const char *text, void *arg)
{
    (void)s;
    (void)arg;
    assert(text[0] != '\0');
}

static void on_trace(struct session *s, bool request, struct span line, void *arg)
{
    struct peer *p = arg;

    (void)s;
    assert(line.p != NULL);
    p->requests += request;
}

static int on_map(struct session *s, enum session_map what, void *arg)
{
    (void)s;
    return what == SESSION_MAP_KVS && kvs_map(((struct peer *)arg)->job.kvs) < 0 ? -ENOMEM : 0;
}

static const struct session_ops ops = {on_reply, on_identify, on_barrier_in, on_name, on_spawn,
                                       on_abort, on_warn,     on_trace,      on_map};

static void peer_init(struct peer *p, bool is_bound, void (*check)(struct peer *p, struct span reply))
{
    struct session_who who = {.job = &p->job};

    *p = (struct peer){.job = {.size = 3, .universe = 3, .kvsname = "kvs-1"}, .check = check};
    p->job.kvs = kvs_new(1, 1, false);
    p->job.attrs = attrs_new();
    p->s = session_new(&ops, p);
    if (p->job.kvs == NULL || p->job.attrs == NULL || p->s == NULL)
        abort();
    if (is_bound)
        session_bind(p->s, &who);
}

static void peer_done(struct peer *p)
{
    session_free(p->s);
    attrs_free(p->job.attrs);
    kvs_free(p->job.kvs);
    buf_done(&p->out);
}

/* The same bytes whole to one session and in pieces to another come to the same. */
static inline void feed_both(struct peer *whole, struct peer *cut, struct span all)
{
    struct err err = {0};
    int rc = session_feed(whole->s, all, &err), rc_cut = 0;

    assert(rc <= 0 && (rc == 0 || (err.code == rc && err.text[0] != '\0')));
    for (size_t at = 0, n; at < all.n && rc_cut == 0; at += n) {
        n = 1 + (unsigned char)all.p[at] % 23;
        n = n < all.n - at ? n : all.n - at;
        rc_cut = session_feed(cut->s, (struct span){all.p + at, n}, NULL);
    }
    assert(rc == rc_cut);
    assert(span_eq(buf_span(&whole->out), buf_span(&cut->out)));
    assert(session_phase(whole->s) == session_phase(cut->s) && session_phase(whole->s) <= SESSION_FINALIZED);
    assert(session_is_bound(whole->s) == session_is_bound(cut->s));
    assert(whole->aborts == cut->aborts && whole->code == cut->code && whole->starts == cut->starts);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* session2.c - the commands of PMI-2
 *
 * The shapes of the answers are those that MPICH 4.0.2's client, the newest MPICH's and Slurm's libpmi2 all take: thrid
 * right behind the command, rc in every one.
 */
#include <assert.h>
#include <stdio.h>
#include "common/num.h"
#include "common/pmi2.h"
#include "common/util.h"
#include "server/session_priv.h"

#define JUNK 6 /* bytes behind the last semicolon of MPICH 4.0.2's and MVAPICH's frames, which their length counts */

/* --- answers ---------------------------------------------------------------------------------------------------- */

static int begin(struct session *s, const char *cmd)
{
    int rc = pmi2_begin(&s->out, span_of(cmd));

    return rc == 0 && s->thrid.p != NULL ? pmi2_add_raw(&s->out, "thrid", s->thrid) : rc;
}

/* `rc` so far: of building the answer. */
static int send_frame(struct session *s, int rc)
{
    if (rc == 0)
        rc = pmi2_end(&s->out);
    if (rc < 0)
        return rc;
    if (s->ops->trace != NULL)
        s->ops->trace(s, false, (struct span){s->out.p + PMI2_HEADER, s->out.len - PMI2_HEADER}, s->arg);
    s->ops->reply(s, buf_span(&s->out), s->arg);
    return 0;
}

/* "cmd=NAME;rc=RC;[errmsg=WORD;]". `msg` NULL: none. */
static int reply(struct session *s, const char *cmd, int code, const char *msg)
{
    int rc = begin(s, cmd);

    if (rc == 0)
        rc = pmi2_add_int(&s->out, "rc", code);
    if (rc == 0 && msg != NULL)
        rc = pmi2_add_str(&s->out, "errmsg", msg);
    return send_frame(s, rc);
}

/* A value that was asked for; p NULL: there is none, `code` and `msg` say why if that is an error. */
static int reply_value(struct session *s, const char *cmd, struct span value, int code, const char *msg)
{
    int rc = begin(s, cmd);

    if (rc == 0)
        rc = pmi2_add_str(&s->out, "found", value.p == NULL ? "FALSE" : "TRUE");
    if (rc == 0 && value.p != NULL)
        rc = pmi2_add(&s->out, "value", value);
    if (rc == 0)
        rc = pmi2_add_int(&s->out, "rc", code);
    if (rc == 0 && code != 0)
        rc = pmi2_add_str(&s->out, "errmsg", msg);
    return send_frame(s, rc);
}

/* A field's value; p NULL: none. Good until the next frame: s->plain has room for all of this one. */
static struct span field(struct session *s, struct span payload, const char *key)
{
    struct span raw = pmi2_get(payload, key), plain = SPAN_NONE;

    if (raw.p != NULL && pmi2_plain(raw, &s->plain, &plain) < 0)
        return SPAN_NONE;
    return plain;
}

static bool is_true(struct span value)
{
    return span_is(value, "TRUE") || span_is(value, "true");
}

/* --- beginning and end ------------------------------------------------------------------------------------------ */

/* On PMI_PORT this is the first that is said of who it is: by PMI_ID, which Slurm's client calls srcid. */
static int identify(struct session *s, struct span payload, struct err *err)
{
    struct span text = pmi2_get(payload, "pmirank");
    uint64_t id;
    int rc;

    if (text.p == NULL || span_is(text, "-1"))
        text = pmi2_get(payload, "srcid");
    if (text.p == NULL)
        return err_set(err, -EPROTO, "fullinit without pmirank: PMI_ID is not set");
    if (num_u64(text, 0, UINT32_MAX, &id) < 0)
        return session_quote(text, "fullinit with a pmirank that is no id", err);
    rc = s->ops->identify(s, (uint32_t)id, err, s->arg);
    assert(rc < 0 || s->is_bound);
    return rc;
}

static int cmd_fullinit(struct session *s, struct span payload, struct err *err)
{
    const struct session_job *job;
    int rc = s->is_bound ? 0 : identify(s, payload, err);

    if (rc < 0)
        return rc;
    job = s->who.job;
    s->phase = SESSION_READY;
    s->is_threaded = is_true(pmi2_get(payload, "threaded"));
    rc = begin(s, "fullinit-response");
    if (rc == 0)
        rc = buf_printf(&s->out, "pmi-version=2;pmi-subversion=0;rank=%u;size=%u;appnum=%u;", s->who.rank, job->size,
                        s->who.appnum);
    if (rc == 0 && job->spawner != NULL)
        rc = pmi2_add_str(&s->out, "spawner-jobid", job->spawner);
    if (rc == 0)
        rc = buf_add_str(&s->out, "debugged=FALSE;pmiverbose=FALSE;rc=0;");
    return send_frame(s, rc);
}

static int cmd_finalize(struct session *s, struct span payload, struct err *err)
{
    (void)payload;
    (void)err;
    if (s->phase == SESSION_READY)
        s->phase = SESSION_FINALIZED;
    return reply(s, "finalize-response", 0, NULL);
}

/* Old clients say no code. */
static int cmd_abort(struct session *s, struct span payload, struct err *err)
{
    struct span text = field(s, payload, "msg");

    (void)err;
    if (text.p == NULL)
        text = field(s, payload, "message");
    session_abort(s, pmi2_get(payload, "exitcode"), text);
    return 0;
}

/* --- job -------------------------------------------------------------------------------------------------------- */

static int cmd_job_getid(struct session *s, struct span payload, struct err *err)
{
    int rc = begin(s, "job-getid-response");

    (void)payload;
    (void)err;
    if (rc == 0)
        rc = pmi2_add_str(&s->out, "jobid", s->who.job->kvsname);
    if (rc == 0)
        rc = pmi2_add_int(&s->out, "rc", 0);
    return send_frame(s, rc);
}

/* No server does this, and no client needs it. */
static int cmd_job_connect(struct session *s, struct span payload, struct err *err)
{
    int rc = begin(s, "job-connect-response");

    (void)payload;
    (void)err;
    return send_frame(s, rc < 0 ? rc : buf_add_str(&s->out, "kvscopy=FALSE;rc=1;errmsg=not_served;"));
}

static int cmd_job_disconnect(struct session *s, struct span payload, struct err *err)
{
    (void)payload;
    (void)err;
    return reply(s, "job-disconnect-response", RC_OTHER, "not_served");
}

static int cmd_ring(struct session *s, struct span payload, struct err *err)
{
    (void)payload;
    (void)err;
    return reply(s, "ring-response", RC_FAIL, "not_served");
}

int session2_get_done(struct session *s, struct span cmd, struct span key)
{
    char name[PMI_KEY_MAX];
    struct span value = SPAN_NONE;

    snprintf(name, sizeof(name), "%.*s", SPAN_FMT(cmd));
    (void)kvs_get(s->who.job->kvs, s->who.slot, key, &value);
    return reply_value(s, name, value, 0, NULL);
}

/* Of a key that may be looked up; the mapping may have to wait. */
static int get_key(struct session *s, const char *cmd, struct span key)
{
    if (!session_is_later(s, key))
        return session2_get_done(s, span_of(cmd), key);
    return session_await_mapping(s, cmd) ? 0 : reply_value(s, cmd, SPAN_NONE, RC_FAIL, "too_many");
}

/* What the job was given before it started is readable here too, by PMI-2's definition of it. */
static int cmd_getjobattr(struct session *s, struct span payload, struct err *err)
{
    struct span key = field(s, payload, "key"), value = SPAN_NONE;
    char number[16];
    const char *msg;
    int code = session_check_key(key, &msg);

    (void)err;
    if (code == 0 && span_is(key, "universeSize")) {
        snprintf(number, sizeof(number), "%u", s->who.job->universe);
        value = span_of(number);
    } else if (code == 0 && span_is(key, "hasNameServ")) {
        value = span_of("TRUE");
    } else if (code == 0) {
        return get_key(s, "info-getjobattr-response", key);
    }
    return reply_value(s, "info-getjobattr-response", value, code, msg);
}

/* --- node attributes -------------------------------------------------------------------------------------------- */

static int cmd_putnodeattr(struct session *s, struct span payload, struct err *err)
{
    struct span key = field(s, payload, "key"), value = field(s, payload, "value");
    const char *msg;
    int code = session_check_key(key, &msg), rc;

    (void)err;
    if (code == 0)
        code = session_check_value(value, &msg);
    /* Others that waited for it are answered within the call. */
    if (code == 0 && (rc = attrs_put(s->who.job->attrs, key, value)) < 0) {
        code = RC_NOMEM;
        msg = session_why(rc);
    }
    return reply(s, "info-putnodeattr-response", code, code == 0 ? NULL : msg);
}

static void on_attr(struct span value, void *arg)
{
    struct waiting *w = arg;
    struct session *s = w->s;
    struct span thrid = s->thrid;

    s->thrid = w->thrid;
    (void)reply_value(s, "info-getnodeattr-response", value, value.p == NULL ? RC_FAIL : 0, "nobody_left");
    s->thrid = thrid;
    session_wait_over(w);
}

static int cmd_getnodeattr(struct session *s, struct span payload, struct err *err)
{
    struct span key = field(s, payload, "key"), value = SPAN_NONE;
    struct waiting ask = {.kind = WAIT_ATTR, .wire = 2, .thrid = s->thrid, .text = key}, *w;
    const char *msg;
    int code = session_check_key(key, &msg);

    (void)err;
    if (code != 0 || attrs_get(s->who.job->attrs, key, &value) == 0 || !is_true(pmi2_get(payload, "wait")))
        return reply_value(s, "info-getnodeattr-response", value, code, msg);
    w = session_wait(s, &ask);
    if (w == NULL)
        return reply_value(s, "info-getnodeattr-response", SPAN_NONE, RC_FAIL, "too_many");
    if (attrs_wait(s->who.job->attrs, key, on_attr, w) < 0) {
        session_wait_over(w);
        return reply_value(s, "info-getnodeattr-response", SPAN_NONE, RC_NOMEM, "no_memory");
    }
    return 0;
}

/* --- keys and fence --------------------------------------------------------------------------------------------- */

static int cmd_kvs_put(struct session *s, struct span payload, struct err *err)
{
    const char *msg;
    int code = session_put(s, field(s, payload, "key"), field(s, payload, "value"), &msg);

    (void)err;
    return reply(s, "kvs-put-response", code, code == 0 ? NULL : msg);
}

/* As with PMI-1's kvsname any jobid will do, also none, but for that of the one other job that a task knows of: what it
 * asks for there must not be mistaken for what is here. srcid is a hint. */
static int cmd_kvs_get(struct session *s, struct span payload, struct err *err)
{
    struct span key = field(s, payload, "key"), jobid = field(s, payload, "jobid");
    const char *msg;
    int code = session_check_key(key, &msg);

    (void)err;
    if (code == 0 && !(s->who.job->spawner != NULL && span_is(jobid, s->who.job->spawner)))
        return get_key(s, "kvs-get-response", key);
    return reply_value(s, "kvs-get-response", SPAN_NONE, code, msg);
}

/* Of our own client alone. */
static int cmd_map_kvs(struct session *s, struct span payload, struct err *err)
{
    int rc = session_map(s, field(s, payload, "what"));

    (void)err;
    if (rc < 0)
        return reply(s, "map-kvs-response", RC_FAIL, session_why(rc));
    rc = begin(s, "map-kvs-response");
    if (rc == 0)
        rc = buf_printf(&s->out, "slot=%u;rc=0;", s->who.slot);
    return send_frame(s, rc);
}

/* Answered when all are in, which is more than a fence promises; newest MPICH makes its barriers of it. */
static int cmd_kvs_fence(struct session *s, struct span payload, struct err *err)
{
    struct waiting ask = {
        .kind = WAIT_BARRIER, .wire = 2, .thrid = s->thrid, .id = {.set = s->who.set, .group = {"WORLD", 5}}};

    (void)err;
    ask.by_bell = s->has_bell && span_is(field(s, payload, "answer"), "bell");
    return session_enter(s, &ask);
}

int session2_barrier_out(struct session *s, int rc, const char *msg)
{
    return reply(s, "kvs-fence-response", rc, msg);
}

/* --- names ------------------------------------------------------------------------------------------------------ */

/* A refusal whose text names the service. */
static int reply_named(struct session *s, const char *cmd, const char *before, struct span service, const char *behind)
{
    struct buf text = {0};
    int rc = buf_printf(&text, "%s%.*s%s", before, SPAN_FMT(service), behind);

    if (rc == 0)
        rc = reply(s, cmd, RC_OTHER, buf_str(&text));
    buf_done(&text);
    return rc;
}

static int reply_port(struct session *s, int code, struct span port, const char *msg)
{
    int rc = begin(s, "name-lookup-response");

    /* Slurm's client reads value, MPICH's read port. */
    if (rc == 0 && port.p != NULL)
        rc = pmi2_add(&s->out, "port", port);
    if (rc == 0 && port.p != NULL)
        rc = pmi2_add(&s->out, "value", port);
    if (rc == 0)
        rc = pmi2_add_str(&s->out, "found", port.p == NULL ? "FALSE" : "TRUE");
    if (rc == 0)
        rc = pmi2_add_int(&s->out, "rc", code);
    if (rc == 0 && msg != NULL)
        rc = pmi2_add_str(&s->out, "errmsg", msg);
    return send_frame(s, rc);
}

int session2_name_done(struct session *s, const struct waiting *w, int rc, struct span port)
{
    if (w->op == SESSION_LOOKUP && rc >= 0)
        return reply_port(s, 0, port.p == NULL ? (struct span){"", 0} : port, NULL);
    if (w->op == SESSION_LOOKUP)
        return reply_port(s, rc == -ENOENT ? RC_OTHER : RC_FAIL, SPAN_NONE, rc == -ENOENT ? NULL : session_why(rc));
    if (w->op == SESSION_PUBLISH && rc == -EEXIST)
        return reply_named(s, "name-publish-response", "duplicate_service_", w->text, "");
    if (w->op == SESSION_UNPUBLISH && rc == -ENOENT)
        return reply_named(s, "name-unpublish-response", "service_", w->text, "_not_found");
    return reply(s, w->op == SESSION_PUBLISH ? "name-publish-response" : "name-unpublish-response",
                 rc < 0 ? RC_FAIL : 0, rc < 0 ? session_why(rc) : NULL);
}

static int ask_name(struct session *s, enum session_name_op op, struct span payload, struct span port)
{
    struct waiting ask = {.kind = WAIT_NAME, .wire = 2, .op = op, .thrid = s->thrid, .text = field(s, payload, "name")};

    return session_ask_name(s, &ask, port);
}

static int cmd_name_publish(struct session *s, struct span payload, struct err *err)
{
    (void)err;
    return ask_name(s, SESSION_PUBLISH, payload, field(s, payload, "port"));
}

static int cmd_name_lookup(struct session *s, struct span payload, struct err *err)
{
    (void)err;
    return ask_name(s, SESSION_LOOKUP, payload, SPAN_NONE);
}

static int cmd_name_unpublish(struct session *s, struct span payload, struct err *err)
{
    (void)err;
    return ask_name(s, SESSION_UNPUBLISH, payload, SPAN_NONE);
}

/* --- spawn ------------------------------------------------------------------------------------------------------ */

static int cmd_spawn(struct session *s, struct span payload, struct err *err)
{
    (void)err;
    spawn_parse_frame(&s->spawn, payload, &s->plain);
    return session_ask_spawn(s);
}

int session2_spawn_done(struct session *s, const struct spawn_done *done)
{
    uint32_t failed = 0;
    int rc;

    if (done->rc < 0)
        return reply(s, "spawn-response", RC_FAIL, done->why);
    for (uint32_t i = 0; i < done->count; i++)
        failed += done->errcodes[i] != 0;
    rc = begin(s, "spawn-response");
    if (rc == 0)
        rc = buf_add_str(&s->out, "rc=0;");
    if (rc == 0)
        rc = pmi2_add_str(&s->out, "jobid", done->kvsname);
    if (rc == 0)
        rc = pmi2_add_int(&s->out, "nerrs", failed);
    for (uint32_t i = 0; rc == 0 && failed > 0 && i < done->count; i++)
        rc = buf_printf(&s->out, "%s%d", i == 0 ? "errcodes=" : ",", done->errcodes[i]);
    if (rc == 0 && failed > 0)
        rc = buf_add(&s->out, ";", 1);
    if (s->out.len > PMI2_PAYLOAD_MAX)
        return reply(s, "spawn-response", RC_FAIL, "not_all_started");
    return send_frame(s, rc);
}

/* --- dispatch --------------------------------------------------------------------------------------------------- */

static const struct cmd {
    const char *name;
    int (*run)(struct session *s, struct span payload, struct err *err);
} cmds[] = {
    {"kvs-get", cmd_kvs_get},
    {"kvs-put", cmd_kvs_put},
    {"kvs-fence", cmd_kvs_fence},
    {"map-kvs", cmd_map_kvs},
    {"info-getjobattr", cmd_getjobattr},
    {"info-getnodeattr", cmd_getnodeattr},
    {"info-putnodeattr", cmd_putnodeattr},
    {"fullinit", cmd_fullinit},
    {"job-getid", cmd_job_getid},
    {"job-connect", cmd_job_connect},
    {"job-disconnect", cmd_job_disconnect},
    {"name-publish", cmd_name_publish},
    {"name-lookup", cmd_name_lookup},
    {"name-unpublish", cmd_name_unpublish},
    {"spawn", cmd_spawn},
    {"ring", cmd_ring},
    {"abort", cmd_abort},
    {"finalize", cmd_finalize},
};

static int refuse_unknown(struct session *s, struct span name)
{
    char text[PMI_KEY_MAX + 10];

    if (name.n >= PMI_KEY_MAX)
        return reply(s, "unknown-response", RC_FAIL, "unknown_command");
    snprintf(text, sizeof(text), "%.*s-response", SPAN_FMT(name));
    return reply(s, text, RC_FAIL, "unknown_command");
}

/* What MPICH 4.0.2 sends behind the last semicolon may hold anything, so that only a frame whose end is known shows
 * whether a client does it: its fullinit ends with "threaded=". */
static struct span without_junk(struct session *s, struct span payload)
{
    struct span less = {payload.p, payload.n > JUNK ? payload.n - JUNK : 0};

    if (span_starts(payload, "cmd=fullinit;"))
        s->has_junk = span_ends(less, ";threaded=FALSE;") || span_ends(less, ";threaded=TRUE;");
    return s->has_junk ? less : payload;
}

int session2_frame(struct session *s, struct span payload, struct err *err)
{
    struct span name;

    payload = without_junk(s, payload);
    if (s->ops->trace != NULL)
        s->ops->trace(s, true, payload, s->arg);
    if (pmi2_check(payload, &name) < 0)
        return session_quote(payload, "not a PMI-2 request", err);
    if (!s->is_bound && !span_is(name, "fullinit"))
        return session_quote(name, "a PMI-2 request ahead of fullinit", err);
    s->thrid = pmi2_get(payload, "thrid");
    if (s->thrid.n > PMI2_THRID_MAX)
        return session_quote(s->thrid, "a thrid that is too long", err);
    s->plain.len = 0;
    if (buf_reserve(&s->plain, payload.n) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(cmds); i++)
        if (span_is(name, cmds[i].name))
            return cmds[i].run(s, payload, err);
    return refuse_unknown(s, name);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_pmi2.c - PMI-2 over the wire */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "client/bench_talk.h"
#include "common/num.h"
#include "common/pmi2.h"

static const struct {
    const char *cmd, *value; /* `value`: the field of the reply that has it */
} commands[TALK_OPS] = {
    [TALK_PUT] = {"kvs-put", NULL},
    [TALK_GET] = {"kvs-get", "value"},
    [TALK_BARRIER] = {"kvs-fence", NULL},
    [TALK_ATTR] = {"info-getjobattr", "value"},
    [TALK_PUBLISH] = {"name-publish", NULL},
    [TALK_LOOKUP] = {"name-lookup", "port"},
    [TALK_UNPUBLISH] = {"name-unpublish", NULL},
    [TALK_SPAWN] = {"spawn", "errcodes"},
    [TALK_FINALIZE] = {"finalize", NULL},
};

static int put_spawn(struct buf *out, const struct talk_spawn *s)
{
    unsigned n = 0;
    char key[24];
    int rc = 0;

    while (s->args[n] != NULL)
        n++;
    rc |= pmi2_add_int(out, "ncmds", 1);
    rc |= pmi2_add_int(out, "preputcount", 1);
    rc |= pmi2_add_str(out, "ppkey0", s->key);
    rc |= pmi2_add_str(out, "ppval0", s->value);
    rc |= pmi2_add_str(out, "subcmd", s->program);
    rc |= pmi2_add_int(out, "maxprocs", s->copies);
    rc |= pmi2_add_int(out, "argc", n);
    for (unsigned i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "argv%u", i);
        rc |= pmi2_add_str(out, key, s->args[i]);
    }
    rc |= pmi2_add_int(out, "infokeycount", 0);
    return rc;
}

static int put_fields(struct buf *out, const char *job, const struct talk_request *r)
{
    int rc = 0;

    switch (r->op) {
    case TALK_PUT:
        rc |= pmi2_add_str(out, "key", r->key);
        rc |= pmi2_add(out, "value", r->value);
        break;
    case TALK_GET:
        rc |= pmi2_add_str(out, "jobid", job);
        rc |= pmi2_add_str(out, "key", r->key);
        break;
    case TALK_ATTR:
        rc |= pmi2_add_str(out, "key", r->key);
        break;
    case TALK_PUBLISH:
        rc |= pmi2_add_str(out, "name", r->key);
        rc |= pmi2_add(out, "port", r->value);
        rc |= pmi2_add_int(out, "infokeycount", 0);
        break;
    case TALK_LOOKUP:
    case TALK_UNPUBLISH:
        rc |= pmi2_add_str(out, "name", r->key);
        break;
    case TALK_SPAWN:
        rc |= put_spawn(out, r->spawn);
        break;
    case TALK_BARRIER:
    case TALK_FINALIZE:
    case TALK_OPS:
        break;
    }
    return rc;
}

static int ask(struct talk *t, const struct talk_request *r, struct err *err)
{
    struct buf *out = &t->job->out;
    int rc;

    out->len = 0;
    rc = pmi2_begin(out, span_of(commands[r->op].cmd));
    if (rc == 0)
        rc = put_fields(out, t->job->name, r);
    if (rc == 0)
        rc = pmi2_end(out);
    if (rc < 0)
        return err_set(err, rc, "cannot put a request together: %s", strerror(-rc));
    return wire_send(&t->wire, buf_span(out), err);
}

static int unexpected(struct talk *t, struct span body, const char *wanted, struct err *err)
{
    struct buf *room = &t->job->room;

    t->wire.is_broken = true;
    room->len = 0;
    (void)buf_add_escaped(room, (struct span){body.p, body.n < 80 ? body.n : 80});
    return err_set(err, -EPROTO, "the PMI server sent '%.*s' where %s was due", SPAN_FMT(buf_span(room)), wanted);
}

/* One message, which has to be the answer to `cmd`, with its rc. */
static int read_answer(struct talk *t, const char *cmd, struct span *body, int *code, struct err *err)
{
    char wanted[48];
    struct span name;
    int64_t v = 0;
    int rc = wire_frame(&t->wire, body, err);

    if (rc < 0)
        return rc;
    snprintf(wanted, sizeof(wanted), "%s-response", cmd);
    if (pmi2_check(*body, &name) < 0 || !span_is(name, wanted) ||
        num_i64(pmi2_get(*body, "rc"), INT32_MIN, INT32_MAX, &v) < 0)
        return unexpected(t, *body, wanted, err);
    *code = (int)v;
    return 0;
}

/* A value as it was meant. */
static int take_value(struct talk *t, struct span raw, struct span *plain, struct err *err)
{
    t->job->room.len = 0;
    if (raw.p == NULL || pmi2_plain(raw, &t->job->room, plain) == 0)
        return 0;
    return err_set(err, -ENOMEM, "out of memory");
}

/* Slurm has a port in "value". */
static struct span raw_value(struct span body, enum talk_op op)
{
    struct span raw = pmi2_get(body, commands[op].value);

    return raw.p == NULL && op == TALK_LOOKUP ? pmi2_get(body, "value") : raw;
}

static int answer(struct talk *t, enum talk_op op, struct talk_answer *a, struct err *err)
{
    struct span body;
    int code, rc = read_answer(t, commands[op].cmd, &body, &code, err);

    if (rc < 0)
        return rc;
    *a = (struct talk_answer){.rc = code, .msg = pmi2_get(body, "errmsg")};
    if (commands[op].value != NULL)
        rc = take_value(t, raw_value(body, op), &a->value, err);
    if (a->rc == 0 && span_is(pmi2_get(body, "found"), "FALSE"))
        a->rc = -1;
    /* A server that does not say which tasks were not started. */
    if (op == TALK_SPAWN && a->rc == 0 && a->value.p == NULL && pmi2_get(body, "nerrs").p != NULL &&
        !span_is(pmi2_get(body, "nerrs"), "0"))
        a->rc = -1;
    return rc;
}

static int number(struct talk *t, struct span body, const char *key, int64_t min, int *out, struct err *err)
{
    int64_t v;

    if (num_i64(pmi2_get(body, key), min, INT32_MAX, &v) < 0)
        return unexpected(t, body, key, err);
    *out = (int)v;
    return 0;
}

/* The first line is PMI-1's, whatever follows. */
static int ask_version(struct talk *t, struct err *err)
{
    struct pmi_line line;
    struct span version;
    int code, rc;

    rc =
        wire_ask(&t->wire, span_of("cmd=init pmi_version=2 pmi_subversion=0\n"), "response_to_init", &line, &code, err);
    if (rc < 0)
        return rc;
    version = pmi_line_get(&line, "pmi_version");
    if (code != 0 || !span_is(version, "2"))
        return err_set(err, -EPROTONOSUPPORT, "the PMI server does not speak PMI-2 (rc=%d)", code);
    return 0;
}

static int full_init(struct talk *t, int64_t rank, struct err *err)
{
    const char *jobid = getenv("PMI_JOBID"); /* Slurm sets it, and insists */
    struct talk_job *job = t->job;
    struct span body;
    int code, rc = 0;

    job->out.len = 0;
    rc |= pmi2_begin(&job->out, span_of("fullinit"));
    if (jobid != NULL)
        rc |= pmi2_add_str(&job->out, "pmijobid", jobid);
    rc |= pmi2_add_int(&job->out, "pmirank", rank);
    rc |= pmi2_add_str(&job->out, "threaded", "FALSE");
    rc |= pmi2_end(&job->out);
    if (rc < 0)
        return err_set(err, -ENOMEM, "out of memory");
    rc = wire_send(&t->wire, buf_span(&job->out), err);
    if (rc == 0)
        rc = read_answer(t, "fullinit", &body, &code, err);
    if (rc < 0)
        return rc;
    if (code != 0)
        return err_set(err, -EACCES, "the PMI server refuses pmirank=%lld (rc=%d)", (long long)rank, code);
    rc = number(t, body, "rank", 0, &job->rank, err);
    if (rc == 0)
        rc = number(t, body, "size", 1, &job->size, err);
    return rc == 0 ? number(t, body, "appnum", -1, &job->appnum, err) : rc;
}

static int ask_name(struct talk *t, struct err *err)
{
    struct span body, name;
    int code, rc;

    t->job->out.len = 0;
    if (pmi2_begin(&t->job->out, span_of("job-getid")) < 0 || pmi2_end(&t->job->out) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    rc = wire_send(&t->wire, buf_span(&t->job->out), err);
    if (rc == 0)
        rc = read_answer(t, "job-getid", &body, &code, err);
    if (rc < 0)
        return rc;
    name = pmi2_get(body, "jobid");
    if (code != 0 || name.p == NULL || name.n == 0 || name.n >= sizeof(t->job->name))
        return unexpected(t, body, "a jobid", err);
    memcpy(t->job->name, name.p, name.n);
    t->job->name[name.n] = '\0';
    return 0;
}

static int start(struct talk *t, const struct where *w, int64_t id, struct err *err)
{
    static const struct talk_request universe = {.op = TALK_ATTR, .key = "universeSize"};
    struct talk_job *job = t->job;
    struct talk_answer a;
    int64_t v;
    int rc = ask_version(t, err);

    if (rc == 0)
        rc = full_init(t, id >= 0 ? id : w->rank, err);
    if (rc < 0 || t->session > 0)
        return rc;
    /* There is no question for these; all clients have them as constants. */
    job->key_most = PMI_KEY_MAX - 1;
    job->value_most = PMI_VALUE_MAX - 1;
    job->is_spawned = w->spawned;
    job->universe = -1;
    rc = ask_name(t, err);
    if (rc == 0)
        rc = talk_do(t, &universe, &a, err);
    if (rc == 0 && a.rc == 0 && num_i64(a.value, 0, INT32_MAX, &v) == 0)
        job->universe = (int)v;
    return rc;
}

const struct talk_kind talk_pmi2 = {.name = "PMI-2", .has_wire = true, .start = start, .ask = ask, .answer = answer};

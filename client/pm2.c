/* SPDX-License-Identifier: BSD-3-Clause */
/* pm2.c - the process manager over PMI-2's wire, as MPICH's Hydra, Slurm's mpi/pmi2 and pmi-start serve it */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "client/pm.h"
#include "common/limits.h"
#include "common/num.h"
#include "common/pmi2.h"

/* A request under construction; `rc` is the first thing that went wrong. */
struct request {
    struct pm *pm;
    const char *cmd;
    int rc;
};

static struct request begin(struct pm *pm, const char *cmd)
{
    pm->out.len = 0;
    return (struct request){pm, cmd, pmi2_begin(&pm->out, span_of(cmd))};
}

static void add(struct request *r, const char *key, const char *value)
{
    if (r->rc == 0)
        r->rc = pmi2_add_str(&r->pm->out, key, value);
}

static void add_int(struct request *r, const char *key, int64_t value)
{
    if (r->rc == 0)
        r->rc = pmi2_add_int(&r->pm->out, key, value);
}

static int lost(struct pm *pm, const char *cmd, const char *what, struct err *err)
{
    pm->wire.is_broken = true;
    return pm_fail(err, PM_FAIL, "the PMI server's answer to %s %s", cmd, what);
}

/* "NAME-response". */
static bool answers(struct span name, const char *cmd)
{
    size_t n = strlen(cmd);

    return span_starts(name, cmd) && span_is((struct span){name.p + n, name.n - n}, "-response");
}

/* PM_OK, or what went wrong on our side. */
static int send_request(struct request *r, struct err *err)
{
    if (r->rc == 0)
        r->rc = pmi2_end(&r->pm->out);
    if (r->rc < 0)
        return r->rc == -E2BIG ? pm_fail(err, PM_INVALID_ARG, "more than %d bytes in a %s", PMI2_PAYLOAD_MAX, r->cmd)
                               : pm_fail(err, PM_NOMEM, "no memory");
    return wire_send(&r->pm->wire, buf_span(&r->pm->out), err) < 0 ? PM_FAIL : PM_OK;
}

/* PM_OK, or what the server answered. `*reply` is lent until the next request. */
static int take_reply(struct request *r, struct span *reply, struct err *err)
{
    struct span name, code, why;
    int64_t rc = 0;

    if (wire_frame(&r->pm->wire, reply, err) < 0)
        return PM_FAIL;
    if (pmi2_check(*reply, &name) < 0 || !answers(name, r->cmd))
        return lost(r->pm, r->cmd, "is something else", err);
    code = pmi2_get(*reply, "rc");
    if (code.p != NULL && num_i64(code, INT_MIN, INT_MAX, &rc) < 0)
        return lost(r->pm, r->cmd, "has an rc that is no number", err);
    if (rc == 0)
        return PM_OK;
    why = pmi2_get(*reply, "errmsg");
    return pm_fail(err, pm_code((int)rc), "the PMI server answers %s with rc=%d%s%.*s", r->cmd, (int)rc,
                   why.n > 0 ? ": " : "", (int)(why.n < 80 ? why.n : 80), why.p != NULL ? why.p : "");
}

static int ask(struct request *r, struct span *reply, struct err *err)
{
    int rc = send_request(r, err);

    return rc == PM_OK ? take_reply(r, reply, err) : rc;
}

/* A field as it was meant; pm->out is free for it by then. */
static int plain(struct pm *pm, struct span raw, struct span *value, struct err *err)
{
    pm->out.len = 0;
    return pmi2_plain(raw, &pm->out, value) < 0 ? pm_fail(err, PM_NOMEM, "no memory") : PM_OK;
}

/* The replies of gets: found=TRUE and a value, or found=FALSE. */
static int ask_value(struct request *r, const char *key, struct span *value, struct err *err)
{
    struct span reply, raw;
    int rc = ask(r, &reply, err);

    if (rc != PM_OK)
        return rc;
    raw = pmi2_get(reply, "value");
    if (!span_is(pmi2_get(reply, "found"), "TRUE"))
        return pm_fail(err, PM_INVALID_KEY, "there is no '%.80s'", key);
    return raw.p == NULL ? lost(r->pm, r->cmd, "has no value", err) : plain(r->pm, raw, value, err);
}

static int get_name(struct pm *pm, struct err *err)
{
    struct request r = begin(pm, "job-getid");
    struct span reply, id;
    int rc = ask(&r, &reply, err);

    if (rc == PM_OK)
        rc = plain(pm, pmi2_get(reply, "jobid"), &id, err);
    if (rc != PM_OK)
        return rc;
    if (id.n == 0)
        return lost(pm, r.cmd, "has no jobid", err);
    pm->name = strndup(id.p, id.n);
    return pm->name != NULL ? PM_OK : pm_fail(err, PM_NOMEM, "no memory");
}

static int put(struct pm *pm, const char *name, const char *key, const char *value, struct err *err)
{
    struct request r = begin(pm, "kvs-put");
    struct span reply;

    (void)name;
    add(&r, "key", key);
    add(&r, "value", value);
    return ask(&r, &reply, err);
}

static int get(struct pm *pm, const char *name, const char *key, struct span *value, struct err *err)
{
    struct request r;

    if (pm_mapped(pm, name, key, value))
        return PM_OK;
    r = begin(pm, "kvs-get");
    if (name != NULL)
        add(&r, "jobid", name);
    add(&r, "key", key);
    return ask_value(&r, key, value, err);
}

static int fence(struct pm *pm, struct err *err)
{
    bool by_bell = pm_bell_is_heard(pm);
    struct request r = begin(pm, "kvs-fence");
    struct span reply;
    int rc;

    if (by_bell)
        add(&r, "answer", "bell");
    rc = send_request(&r, err);
    if (rc == PM_OK && !(by_bell && pm_bell_wait(pm)))
        rc = take_reply(&r, &reply, err);
    return rc;
}

/* fullinit's reply told it. */
static int appnum(struct pm *pm, int *n, struct err *err)
{
    (void)pm, (void)err;
    *n = 0;
    return PM_OK;
}

static int node_put(struct pm *pm, const char *key, const char *value, struct err *err)
{
    struct request r = begin(pm, "info-putnodeattr");
    struct span reply;

    add(&r, "key", key);
    add(&r, "value", value);
    return ask(&r, &reply, err);
}

static int node_get(struct pm *pm, const char *key, bool wait, struct span *value, struct err *err)
{
    struct request r = begin(pm, "info-getnodeattr");

    add(&r, "key", key);
    add(&r, "wait", wait ? "TRUE" : "FALSE");
    return ask_value(&r, key, value, err);
}

static int job_get(struct pm *pm, const char *key, struct span *value, struct err *err)
{
    struct request r = begin(pm, "info-getjobattr");

    add(&r, "key", key);
    return ask_value(&r, key, value, err);
}

static int universe(struct pm *pm, int *n, struct err *err)
{
    struct span text;
    int64_t v;
    int rc = job_get(pm, "universeSize", &text, err);

    if (rc != PM_OK)
        return rc;
    if (num_i64(text, -1, INT_MAX, &v) < 0)
        return pm_fail(err, PM_FAIL, "universeSize is '%.*s'", (int)(text.n < 80 ? text.n : 80), text.p);
    *n = (int)v;
    return PM_OK;
}

static int publish(struct pm *pm, const char *service, const char *port, struct err *err)
{
    struct request r = begin(pm, "name-publish");
    struct span reply;

    add(&r, "name", service);
    add(&r, "port", port);
    add_int(&r, "infokeycount", 0);
    return ask(&r, &reply, err);
}

static int unpublish(struct pm *pm, const char *service, struct err *err)
{
    struct request r = begin(pm, "name-unpublish");
    struct span reply;

    add(&r, "name", service);
    add_int(&r, "infokeycount", 0);
    return ask(&r, &reply, err);
}

/* Hydra gives a port, Slurm a value. */
static int lookup(struct pm *pm, const char *service, struct span *port, struct err *err)
{
    struct request r = begin(pm, "name-lookup");
    struct span reply, raw;
    int rc;

    add(&r, "name", service);
    add_int(&r, "infokeycount", 0);
    rc = ask(&r, &reply, err);
    if (rc != PM_OK)
        return rc;
    raw = pmi2_get(reply, "port");
    if (raw.n == 0)
        raw = pmi2_get(reply, "value");
    if (raw.n == 0 || span_is(pmi2_get(reply, "found"), "FALSE"))
        return pm_fail(err, PM_FAIL, "there is no service '%.80s'", service);
    return plain(pm, raw, port, err);
}

static void add_numbered(struct request *r, const char *key, size_t i, const char *value)
{
    char numbered[32];

    snprintf(numbered, sizeof(numbered), "%s%zu", key, i);
    add(r, numbered, value);
}

static void add_cmd(struct request *r, const struct pm_cmd *cmd)
{
    add(r, "subcmd", cmd->path);
    add_int(r, "maxprocs", cmd->nprocs);
    add_int(r, "argc", (int64_t)cmd->nargs);
    for (size_t i = 0; i < cmd->nargs; i++)
        add_numbered(r, "argv", i, cmd->args[i]);
    add_int(r, "infokeycount", (int64_t)cmd->ninfo);
    for (size_t i = 0; i < cmd->ninfo; i++) {
        add_numbered(r, "infokey", i, cmd->info[i].key);
        add_numbered(r, "infoval", i, cmd->info[i].value);
    }
}

static int spawn(struct pm *pm, const struct pm_spawn *s, struct span *name, int *errors, struct err *err)
{
    struct request r = begin(pm, "spawn");
    struct span reply;
    int rc;

    add_int(&r, "ncmds", (int64_t)s->count);
    add_int(&r, "preputcount", (int64_t)s->npreput);
    for (size_t i = 0; i < s->npreput; i++) {
        add_numbered(&r, "ppkey", i, s->preput[i].key);
        add_numbered(&r, "ppval", i, s->preput[i].value);
    }
    for (size_t i = 0; i < s->count; i++)
        add_cmd(&r, &s->cmd[i]);
    rc = ask(&r, &reply, err);
    if (rc == PM_OK)
        rc = pm_errors(pmi2_get(reply, "errcodes"), errors, s->nprocs, err);
    if (rc == PM_OK && pmi2_get(reply, "jobid").p != NULL)
        rc = plain(pm, pmi2_get(reply, "jobid"), name, err);
    return rc;
}

/* May be called while another thread waits for a reply: everything it uses is its own. */
static void give_up(struct pm *pm, int code, const char *text)
{
    struct buf b = {0};

    (void)code; /* the wire has no place for it that servers agree on */
    if (pmi2_begin(&b, span_of("abort")) == 0 && pmi2_add_str(&b, "isworld", "TRUE") == 0 &&
        pmi2_add_str(&b, "msg", text) == 0 && pmi2_end(&b) == 0)
        (void)wire_send(&pm->wire, buf_span(&b), NULL);
    buf_done(&b);
}

static int finalize(struct pm *pm, struct err *err)
{
    struct request r = begin(pm, "finalize");
    struct span reply;

    return ask(&r, &reply, err);
}

static bool take_int(struct span reply, const char *key, int64_t min, int64_t max, int *out)
{
    int64_t v;

    if (num_i64(pmi2_get(reply, key), min, max, &v) < 0)
        return false;
    *out = (int)v;
    return true;
}

static int map(struct pm *pm, const char *what, uint32_t *slot, struct err *err)
{
    struct request r = begin(pm, "map-kvs");
    struct span reply;
    int n = 0, rc;

    if (what != NULL)
        add(&r, "what", what);
    rc = ask(&r, &reply, err);
    if (rc == PM_OK && !take_int(reply, "slot", 0, INT_MAX, &n))
        rc = lost(pm, r.cmd, "has no slot", err);
    if (rc == PM_OK)
        *slot = (uint32_t)n;
    return rc;
}

static const struct pm_ops ops = {
    .get_name = get_name,
    .put = put,
    .get = get,
    .fence = fence,
    .appnum = appnum,
    .universe = universe,
    .node_put = node_put,
    .node_get = node_get,
    .job_get = job_get,
    .publish = publish,
    .unpublish = unpublish,
    .lookup = lookup,
    .spawn = spawn,
    .map = map,
    .abort = give_up,
    .finalize = finalize,
};

static int fullinit(struct pm *pm, const struct where *where, struct err *err)
{
    struct request r = begin(pm, "fullinit");
    struct span reply;

    if (where->job != NULL)
        add(&r, "pmijobid", where->job);
    add_int(&r, "pmirank", where->id >= 0 ? where->id : where->rank);
    add(&r, "threaded", "FALSE");
    if (ask(&r, &reply, err) != PM_OK)
        return -EACCES;
    if (!take_int(reply, "size", 1, INT_MAX, &pm->size) || !take_int(reply, "rank", 0, pm->size - 1, &pm->rank)) {
        (void)lost(pm, r.cmd, "has no good rank and size", err);
        return -EPROTO;
    }
    if (!take_int(reply, "appnum", -1, INT_MAX, &pm->appnum))
        pm->appnum = 0;
    if (pmi2_get(reply, "spawner-jobid").n > 0)
        pm->spawned = true;
    return 0;
}

int pm2_begin(struct pm *pm, const struct where *where, struct err *err)
{
    struct pmi_line line;
    int answer, rc;

    rc = wire_ask(&pm->wire, span_of("cmd=init pmi_version=2 pmi_subversion=0\n"), "response_to_init", &line, &answer,
                  err);
    if (rc < 0)
        return rc;
    if (answer != 0 || !span_is(pmi_line_get(&line, "pmi_version"), "2"))
        return err_set(err, -EPROTONOSUPPORT, "the PMI server does not speak PMI-2");
    pm->ops = &ops;
    pm->name_max = PMI2_NAME_MAX;
    return fullinit(pm, where, err);
}

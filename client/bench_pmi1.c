/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_pmi1.c - PMI-1 over the wire */
#include <inttypes.h>
#include <stdio.h>
#include "client/bench_talk.h"
#include "common/num.h"

static int out_of_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "out of memory");
}

static const char *reply_name(enum talk_op op)
{
    static const char *const names[TALK_OPS] = {
        [TALK_PUT] = "put_result",
        [TALK_GET] = "get_result",
        [TALK_BARRIER] = "barrier_out",
        [TALK_ATTR] = "get_result",
        [TALK_PUBLISH] = "publish_result",
        [TALK_LOOKUP] = "lookup_result",
        [TALK_UNPUBLISH] = "unpublish_result",
        [TALK_SPAWN] = "spawn_result",
        [TALK_FINALIZE] = "finalize_ack",
    };

    return names[op];
}

/* One block of lines; MPICH puts the arguments in front of their number, or behind it, and both are read. */
static int put_spawn(struct buf *out, const struct talk_spawn *s)
{
    int rc = buf_printf(out, "mcmd=spawn\nnprocs=%" PRIu32 "\nexecname=%s\ntotspawns=1\nspawnssofar=1\n", s->copies,
                        s->program);
    unsigned n = 0;

    for (; rc == 0 && s->args[n] != NULL; n++)
        rc = buf_printf(out, "arg%u=%s\n", n + 1, s->args[n]);
    if (rc == 0)
        rc = buf_printf(out, "argcnt=%u\npreput_num=1\npreput_key_0=%s\npreput_val_0=%s\ninfo_num=0\nendcmd\n", n,
                        s->key, s->value);
    return rc;
}

static int put_request(struct buf *out, const char *kvs, const struct talk_request *r)
{
    int len = (int)r->value.n;

    switch (r->op) {
    case TALK_PUT:
        return buf_printf(out, "cmd=put kvsname=%s key=%s value=%.*s\n", kvs, r->key, len, r->value.p);
    case TALK_GET:
    case TALK_ATTR:
        return buf_printf(out, "cmd=get kvsname=%s key=%s\n", kvs, r->key);
    case TALK_BARRIER:
        return buf_add_str(out, "cmd=barrier_in\n");
    case TALK_PUBLISH:
        return buf_printf(out, "cmd=publish_name service=%s port=%.*s\n", r->key, len, r->value.p);
    case TALK_LOOKUP:
        return buf_printf(out, "cmd=lookup_name service=%s\n", r->key);
    case TALK_UNPUBLISH:
        return buf_printf(out, "cmd=unpublish_name service=%s\n", r->key);
    case TALK_SPAWN:
        return put_spawn(out, r->spawn);
    case TALK_FINALIZE:
        return buf_add_str(out, "cmd=finalize\n");
    case TALK_OPS:
        break;
    }
    return -EINVAL;
}

static int ask(struct talk *t, const struct talk_request *r, struct err *err)
{
    struct buf *out = &t->job->out;

    out->len = 0;
    if (put_request(out, t->job->name, r) < 0)
        return out_of_memory(err);
    return wire_send(&t->wire, buf_span(out), err);
}

static int answer(struct talk *t, enum talk_op op, struct talk_answer *a, struct err *err)
{
    struct pmi_line line;
    int rc, code;

    rc = wire_reply(&t->wire, reply_name(op), &line, &code, err);
    if (rc < 0)
        return rc;
    *a = (struct talk_answer){.rc = code, .msg = pmi_line_get(&line, "msg")};
    if (op == TALK_SPAWN)
        a->value = pmi_line_get(&line, "errcodes");
    else
        a->value = pmi_line_get(&line, "value");
    if (op == TALK_LOOKUP && a->value.p == NULL) /* Slurm has a port in "value" */
        a->value = pmi_line_get(&line, "port");
    return 0;
}

/* The first session asks these about the job; `field` of the reply goes to `*out`, which stays as it is where a server
 * does not say. */
static int ask_number(struct talk *t, const char *cmd, const char *reply, const char *field, int *out, struct err *err)
{
    struct pmi_line line;
    char request[48];
    int64_t v;
    int code, rc, n = snprintf(request, sizeof(request), "cmd=%s\n", cmd);

    rc = wire_ask(&t->wire, (struct span){request, (size_t)n}, reply, &line, &code, err);
    if (rc == 0 && code == 0 && num_i64(pmi_line_get(&line, field), -1, INT32_MAX, &v) == 0)
        *out = (int)v;
    return rc;
}

static int ask_maxes(struct talk *t, struct err *err)
{
    struct pmi_line line;
    int64_t key, value;
    int code, rc = wire_ask(&t->wire, span_of("cmd=get_maxes\n"), "maxes", &line, &code, err);

    if (rc < 0)
        return rc;
    if (num_i64(pmi_line_get(&line, "keylen_max"), 2, INT32_MAX, &key) < 0 ||
        num_i64(pmi_line_get(&line, "vallen_max"), 2, INT32_MAX, &value) < 0)
        return err_set(err, -EPROTO, "the PMI server does not say how long keys and values may be");
    t->job->key_most = (unsigned)key - 1;
    t->job->value_most = (unsigned)value - 1;
    return 0;
}

static int ask_name(struct talk *t, struct err *err)
{
    struct talk_job *job = t->job;
    struct pmi_line line;
    struct span name;
    int code, rc = wire_ask(&t->wire, span_of("cmd=get_my_kvsname\n"), "my_kvsname", &line, &code, err);

    if (rc < 0)
        return rc;
    name = pmi_line_get(&line, "kvsname");
    if (code != 0 || name.p == NULL || name.n == 0 || name.n >= sizeof(job->name))
        return err_set(err, -EPROTO, "the PMI server does not say the name of its KVS (rc=%d)", code);
    memcpy(job->name, name.p, name.n);
    job->name[name.n] = '\0';
    return 0;
}

static int start(struct talk *t, const struct where *w, int64_t id, struct err *err)
{
    struct talk_job *job = t->job;
    int rc = 0;

    if (id >= 0)
        rc = wire_initack(&t->wire, (uint32_t)id, &job->rank, &job->size, err);
    else
        job->rank = w->rank, job->size = w->size;
    if (rc == 0)
        rc = wire_init1(&t->wire, err);
    if (rc < 0 || t->session > 0)
        return rc;
    job->is_spawned = w->spawned;
    job->universe = -1;
    rc = ask_maxes(t, err);
    if (rc == 0)
        rc = ask_number(t, "get_appnum", "appnum", "appnum", &job->appnum, err);
    if (rc == 0)
        rc = ask_number(t, "get_universe_size", "universe_size", "size", &job->universe, err);
    return rc == 0 ? ask_name(t, err) : rc;
}

const struct talk_kind talk_pmi1 = {.name = "PMI-1", .has_wire = true, .start = start, .ask = ask, .answer = answer};

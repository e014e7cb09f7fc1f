/* SPDX-License-Identifier: BSD-3-Clause */
/* session1.c - the commands of PMI-1, and initack, which comes ahead of either wire */
#include <assert.h>
#include <stdio.h>
#include "common/num.h"
#include "common/pmi1.h"
#include "common/util.h"
#include "server/group.h"
#include "server/session_priv.h"

/* The lines in s->out. */
static int send_line(struct session *s)
{
    struct span rest = buf_span(&s->out);

    while (s->ops->trace != NULL && rest.n > 0) {
        size_t n = (size_t)((const char *)memchr(rest.p, '\n', rest.n) - rest.p);

        s->ops->trace(s, false, (struct span){rest.p, n}, s->arg);
        rest = (struct span){rest.p + n + 1, rest.n - n - 1};
    }
    s->ops->reply(s, buf_span(&s->out), s->arg);
    return 0;
}

/* "cmd=NAME rc=RC[ msg=WORD]". `msg` NULL: none. */
static int reply(struct session *s, struct span cmd, int rc, const char *msg)
{
    s->out.len = 0;
    if (pmi_reply_begin(&s->out, cmd, rc) < 0 || (msg != NULL && pmi_reply_word(&s->out, "msg", msg) < 0) ||
        pmi_reply_end(&s->out) < 0)
        return -ENOMEM;
    return send_line(s);
}

static int reply_int(struct session *s, const char *cmd, const char *key, int64_t v)
{
    s->out.len = 0;
    if (pmi_reply_begin(&s->out, span_of(cmd), 0) < 0 || pmi_reply_int(&s->out, key, v) < 0 ||
        pmi_reply_end(&s->out) < 0)
        return -ENOMEM;
    return send_line(s);
}

/* --- the beginning ---------------------------------------------------------------------------------------------- */

static void warn_version(struct session *s, uint64_t version)
{
    char text[100];

    if (s->is_warned)
        return;
    s->is_warned = true;
    snprintf(text, sizeof(text), "rank %u speaks PMI-%llu, which is not served here", s->who.rank,
             (unsigned long long)version);
    s->ops->warn(s, text, s->arg);
}

/* From here on it speaks in frames. The order of the words is the one that MPICH's and Slurm's servers have. */
static int begin_frames(struct session *s)
{
    s->wire = 2;
    s->has_junk = false;
    s->out.len = 0;
    if (buf_add_str(&s->out, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n") < 0)
        return -ENOMEM;
    return send_line(s);
}

static int cmd_init(struct session *s, const struct pmi_line *line, struct err *err)
{
    uint64_t version = 0;
    int rc = num_u64(pmi_line_get(line, "pmi_version"), 0, UINT32_MAX, &version) == 0 && version == 1 ? 0 : RC_FAIL;

    if (version == 2)
        return begin_frames(s);
    if (!s->is_bound)
        return err_set(err, -EPROTO, "init ahead of initack: PMI_ID is not set");
    s->wire = 1;
    if (rc == 0)
        s->phase = SESSION_READY;
    else if (version > 1)
        warn_version(s, version);
    s->out.len = 0;
    /* 1.1 unless 1.2 was wished for: Flux up to 0.88 takes nothing else, and MPICH reads an rc that is not 0 before it
     * reads a version. */
    if (pmi_reply_begin(&s->out, span_of("response_to_init"), rc) < 0 || pmi_reply_int(&s->out, "pmi_version", 1) < 0 ||
        pmi_reply_int(&s->out, "pmi_subversion", s->who.job->subversion2 ? 2 : 1) < 0 || pmi_reply_end(&s->out) < 0)
        return -ENOMEM;
    return send_line(s);
}

/* Four lines in this order, and the first three without rc: MPICH 4.0.2 reads them so. On a connection whose owner is
 * known already this only tells who that is. */
static int cmd_initack(struct session *s, const struct pmi_line *line, struct err *err)
{
    struct span text = pmi_line_get(line, "pmiid");
    uint64_t id;
    int rc;

    if (!s->is_bound) {
        if (text.p == NULL)
            return err_set(err, -EPROTO, "initack without pmiid");
        if (num_u64(text, 0, UINT32_MAX, &id) < 0)
            return session_quote(text, "initack with a pmiid that is no id", err);
        rc = s->ops->identify(s, (uint32_t)id, err, s->arg);
        if (rc < 0)
            return rc;
        assert(s->is_bound);
    }
    s->out.len = 0;
    if (buf_printf(&s->out, "cmd=initack\ncmd=set size=%u\ncmd=set rank=%u\ncmd=set debug=0\n", s->who.job->size,
                   s->who.rank) < 0)
        return -ENOMEM;
    return send_line(s);
}

/* --- questions -------------------------------------------------------------------------------------------------- */

static int cmd_get_maxes(struct session *s, const struct pmi_line *line, struct err *err)
{
    (void)line;
    (void)err;
    s->out.len = 0;
    if (pmi_reply_begin(&s->out, span_of("maxes"), 0) < 0 ||
        pmi_reply_int(&s->out, "kvsname_max", PMI_KVSNAME_MAX) < 0 ||
        pmi_reply_int(&s->out, "keylen_max", PMI_KEY_MAX) < 0 ||
        pmi_reply_int(&s->out, "vallen_max", PMI_VALUE_MAX) < 0 || pmi_reply_end(&s->out) < 0)
        return -ENOMEM;
    return send_line(s);
}

static int cmd_get_appnum(struct session *s, const struct pmi_line *line, struct err *err)
{
    (void)line;
    (void)err;
    return reply_int(s, "appnum", "appnum", s->who.appnum);
}

static int cmd_get_universe_size(struct session *s, const struct pmi_line *line, struct err *err)
{
    (void)line;
    (void)err;
    return reply_int(s, "universe_size", "size", s->who.job->universe);
}

static int cmd_get_my_kvsname(struct session *s, const struct pmi_line *line, struct err *err)
{
    (void)line;
    (void)err;
    s->out.len = 0;
    if (pmi_reply_begin(&s->out, span_of("my_kvsname"), 0) < 0 ||
        pmi_reply_word(&s->out, "kvsname", s->who.job->kvsname) < 0 || pmi_reply_end(&s->out) < 0)
        return -ENOMEM;
    return send_line(s);
}

/* --- keys ------------------------------------------------------------------------------------------------------- */

/* Any kvsname that is not too long is accepted, also none: a task has but the one of its job. */
static int check_kvsname(const struct pmi_line *line, const char **msg)
{
    *msg = "too_long";
    return pmi_line_get(line, "kvsname").n >= PMI_KVSNAME_MAX ? RC_NAME_LENGTH : 0;
}

static int cmd_put(struct session *s, const struct pmi_line *line, struct err *err)
{
    const char *msg;
    int rc = check_kvsname(line, &msg);

    (void)err;
    if (rc == 0)
        rc = session_put(s, pmi_line_get(line, "key"), pmi_line_get(line, "value"), &msg);
    return reply(s, span_of("put_result"), rc, rc == 0 ? NULL : msg);
}

static int cmd_get(struct session *s, const struct pmi_line *line, struct err *err)
{
    struct span key = pmi_line_get(line, "key");
    const char *msg;
    int rc = check_kvsname(line, &msg);

    (void)err;
    if (rc == 0)
        rc = session_check_key(key, &msg);
    if (rc != 0)
        return reply(s, span_of("get_result"), rc, msg);
    if (!session_is_later(s, key))
        return session1_get_done(s, key);
    return session_await_mapping(s, "get_result") ? 0 : reply(s, span_of("get_result"), RC_FAIL, "too_many");
}

int session1_get_done(struct session *s, struct span key)
{
    struct span value;

    /* 4 exactly: Flux's libpmi2 goes on asking for a key as long as it gets this one. */
    if (kvs_get(s->who.job->kvs, s->who.slot, key, &value) < 0)
        return reply(s, span_of("get_result"), RC_INVALID_KEY, "no_such_key");
    /* Put over PMI-2. */
    if (value.n > 0 && memchr(value.p, '\n', value.n) != NULL)
        return reply(s, span_of("get_result"), RC_FAIL, "not_one_line");
    s->out.len = 0;
    if (pmi_reply_begin(&s->out, span_of("get_result"), 0) < 0 || pmi_reply_value(&s->out, value) < 0 ||
        pmi_reply_end(&s->out) < 0)
        return -ENOMEM;
    return send_line(s);
}

/* Of our own client alone. */
static int cmd_map_kvs(struct session *s, const struct pmi_line *line, struct err *err)
{
    int rc = session_map(s, pmi_line_get(line, "what"));

    (void)err;
    return rc < 0 ? reply(s, span_of("kvs_map"), RC_FAIL, session_why(rc))
                  : reply_int(s, "kvs_map", "slot", s->who.slot);
}

/* --- barriers --------------------------------------------------------------------------------------------------- */

int session1_barrier_out(struct session *s, const struct waiting *w, int rc, const char *msg)
{
    s->out.len = 0;
    if (pmi_reply_begin(&s->out, span_of("barrier_out"), rc) < 0 ||
        (w->is_tagged && pmi_reply_int(&s->out, "tag", w->id.tag) < 0) ||
        (msg != NULL && pmi_reply_word(&s->out, "msg", msg) < 0) || pmi_reply_end(&s->out) < 0)
        return -ENOMEM;
    return send_line(s);
}

/* The group as barriers are named by it. NULL, or what is wrong with it. */
static const char *name_group(struct session *s, struct span *group, struct buf *name)
{
    int rc;

    if (group->p == NULL)
        *group = span_of("WORLD");
    if (span_is(*group, "WORLD") || span_is(*group, "NODE"))
        return NULL;
    rc = group_name(*group, s->who.job->size, name);
    if (rc == -E2BIG || rc == -ENOMEM)
        return session_why(rc);
    if (rc < 0)
        return "no_such_group";
    *group = buf_span(name);
    return group_has(*group, s->who.rank) ? NULL : "not_a_member";
}

/* A session that names a group is served whatever version it was told. */
static int cmd_barrier_in(struct session *s, const struct pmi_line *line, struct err *err)
{
    struct span group = pmi_line_get(line, "group"), tag = pmi_line_get(line, "tag");
    struct waiting ask = {.kind = WAIT_BARRIER, .wire = 1, .id = {.set = s->who.set}};
    struct buf name = {0};
    const char *wrong;
    int rc;

    (void)err;
    ask.by_bell = s->has_bell && group.p == NULL && tag.p == NULL && span_is(pmi_line_get(line, "answer"), "bell");
    ask.is_tagged = group.p != NULL || tag.p != NULL || s->who.job->subversion2;
    wrong = group_cut_tag(&group, tag, &ask.id.tag) ? name_group(s, &group, &name) : "no_such_tag";
    ask.id.group = group;
    rc = wrong == NULL ? session_enter(s, &ask) : session1_barrier_out(s, &ask, RC_FAIL, wrong);
    buf_done(&name);
    return rc;
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

static int cmd_finalize(struct session *s, const struct pmi_line *line, struct err *err)
{
    (void)line;
    (void)err;
    if (s->phase == SESSION_READY)
        s->phase = SESSION_FINALIZED;
    return reply(s, span_of("finalize_ack"), 0, NULL);
}

static int cmd_abort(struct session *s, const struct pmi_line *line, struct err *err)
{
    struct span code = pmi_line_get(line, "exitcode"), text = pmi_line_get(line, "message");

    (void)err;
    if (code.p == NULL)
        code = pmi_line_get(line, "exit_code");
    if (text.p == NULL)
        text = pmi_line_get(line, "error_msg");
    session_abort(s, code, text);
    return 0;
}

/* --- names ------------------------------------------------------------------------------------------------------ */

int session1_name_done(struct session *s, const struct waiting *w, int rc, struct span port)
{
    static const char *const names[] = {"publish_result", "lookup_result", "unpublish_result"};
    struct span cmd = span_of(names[w->op]);

    if (rc < 0 && rc == (w->op == SESSION_PUBLISH ? -EEXIST : -ENOENT))
        return reply(s, cmd, RC_OTHER, w->op == SESSION_PUBLISH ? "key_already_present" : "service_not_found");
    if (rc < 0)
        return reply(s, cmd, RC_FAIL, session_why(rc));
    if (w->op != SESSION_LOOKUP)
        return reply(s, cmd, 0, NULL);
    s->out.len = 0;
    if (pmi_reply_begin(&s->out, cmd, 0) < 0 || buf_add(&s->out, " port=", 6) < 0 ||
        buf_add(&s->out, port.p, port.n) < 0 || pmi_reply_end(&s->out) < 0)
        return -ENOMEM;
    return send_line(s);
}

static int ask_name(struct session *s, enum session_name_op op, const struct pmi_line *line, struct span port)
{
    struct waiting ask = {.kind = WAIT_NAME, .wire = 1, .op = op, .text = pmi_line_get(line, "service")};

    return session_ask_name(s, &ask, port);
}

static int cmd_publish_name(struct session *s, const struct pmi_line *line, struct err *err)
{
    const struct pmi_attr *last = &line->attr[line->count - 1];
    struct span port = pmi_line_get(line, "port"), service = pmi_line_get(line, "service");

    (void)err;
    /* Behind the service it runs to the end, as a value does. */
    if (port.p != NULL && service.p != NULL && service.p < port.p)
        port.n = (size_t)((last->val.p == NULL ? last->key.p + last->key.n : last->val.p + last->val.n) - port.p);
    return ask_name(s, SESSION_PUBLISH, line, port);
}

static int cmd_lookup_name(struct session *s, const struct pmi_line *line, struct err *err)
{
    (void)err;
    return ask_name(s, SESSION_LOOKUP, line, SPAN_NONE);
}

static int cmd_unpublish_name(struct session *s, const struct pmi_line *line, struct err *err)
{
    (void)err;
    return ask_name(s, SESSION_UNPUBLISH, line, SPAN_NONE);
}

/* --- spawn ------------------------------------------------------------------------------------------------------ */

static bool any_failed(const struct spawn_done *done)
{
    for (uint32_t i = 0; i < done->count; i++)
        if (done->errcodes[i] != 0)
            return true;
    return false;
}

int session1_spawn_done(struct session *s, const struct spawn_done *done)
{
    struct span cmd = span_of("spawn_result");

    if (done->rc < 0)
        return reply(s, cmd, RC_FAIL, done->why);
    if (!any_failed(done))
        return reply(s, cmd, 0, NULL);
    s->out.len = 0;
    if (pmi_reply_begin(&s->out, cmd, 0) < 0 || buf_add_str(&s->out, " errcodes") < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < done->count && s->out.len < PMI_REPLY_MAX; i++)
        if (buf_printf(&s->out, "%c%d", i == 0 ? '=' : ',', done->errcodes[i]) < 0)
            return -ENOMEM;
    /* MPICH 4.0.2 would cut a longer line and take the rest for the next reply. */
    if (s->out.len >= PMI_REPLY_MAX)
        return reply(s, cmd, RC_FAIL, "not_all_started");
    return pmi_reply_end(&s->out) < 0 ? -ENOMEM : send_line(s);
}

static int cmd_spawn(struct session *s, const struct pmi_line *line, struct err *err)
{
    (void)err;
    if (pmi_line_get(line, "mcmd").p == NULL)
        return reply(s, span_of("spawn_result"), RC_FAIL, "malformed");
    spawn_parse_begin(&s->spawn);
    return 0;
}

static int spawn_line(struct session *s, struct span text, struct err *err)
{
    if (text.n > 0 && memchr(text.p, '\0', text.n) != NULL)
        return session_quote(text, "binary bytes in a PMI spawn request", err);
    return spawn_parse_line(&s->spawn, text) ? session_ask_spawn(s) : 0;
}

/* --- dispatch --------------------------------------------------------------------------------------------------- */

typedef int (*cmd_fn)(struct session *s, const struct pmi_line *line, struct err *err);

/* One row a command; `run` NULL: known, but answered rc=-1 under the name `refused`. Names match whole, so their order
 * means nothing but speed. */
static const struct cmd {
    const char *name;
    cmd_fn run;
    const char *refused;
    bool is_first; /* may come before it is known whose the connection is */
} cmds[] = {
    {"get", cmd_get, NULL, false},
    {"put", cmd_put, NULL, false},
    {"barrier_in", cmd_barrier_in, NULL, false},
    {"init", cmd_init, NULL, true},
    {"initack", cmd_initack, NULL, true},
    {"get_maxes", cmd_get_maxes, NULL, false},
    {"get_appnum", cmd_get_appnum, NULL, false},
    {"get_my_kvsname", cmd_get_my_kvsname, NULL, false},
    {"get_universe_size", cmd_get_universe_size, NULL, false},
    {"finalize", cmd_finalize, NULL, false},
    {"abort", cmd_abort, NULL, false},
    {"spawn", cmd_spawn, NULL, false},
    {"publish_name", cmd_publish_name, NULL, false},
    {"unpublish_name", cmd_unpublish_name, NULL, false},
    {"lookup_name", cmd_lookup_name, NULL, false},
    {"map_kvs", cmd_map_kvs, NULL, false},
    {"create_kvs", NULL, "newkvs", false},
    {"destroy_kvs", NULL, "kvs_destroyed", false},
    {"getbyidx", NULL, "getbyidx_results", false},
};

static bool is_word(struct span w)
{
    for (size_t i = 0; i < w.n; i++)
        if (w.p[i] <= ' ' || w.p[i] > '~' || w.p[i] == '=')
            return false;
    return w.n > 0;
}

/* A command that nobody knows: its client waits for an answer all the same. */
static int refuse_unknown(struct session *s, struct span name)
{
    char text[PMI_KEY_MAX + 8];
    int n = snprintf(text, sizeof(text), "%.*s_result", SPAN_FMT(name));

    if (name.n >= PMI_KEY_MAX || n < 0)
        return reply(s, span_of("unknown_result"), RC_FAIL, "unknown_command");
    return reply(s, (struct span){text, (size_t)n}, RC_FAIL, "unknown_command");
}

static int run_command(struct session *s, struct span name, const struct pmi_line *line, struct err *err)
{
    const struct cmd *c = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(cmds) && c == NULL; i++)
        if (span_is(name, cmds[i].name))
            c = &cmds[i];
    if (!s->is_bound && (c == NULL || !c->is_first))
        return session_quote(name, "a PMI request ahead of initack", err);
    if (s->wire == 2 && (c == NULL || c->run != cmd_init))
        return session_quote(name, "a PMI-1 request on a PMI-2 connection", err);
    if (s->spawn.is_more && (c == NULL || c->run != cmd_spawn))
        return session_quote(name, "a PMI request amid one for a spawn", err);
    if (c == NULL)
        return refuse_unknown(s, name);
    if (c->run == NULL)
        return reply(s, span_of(c->refused), RC_FAIL, "not_served");
    return c->run(s, line, err);
}

static bool is_blank_line(struct span text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] != ' ' && text.p[i] != '\t' && text.p[i] != '\r')
            return false;
    return true;
}

int session1_line(struct session *s, struct span text, struct err *err)
{
    struct pmi_line line;
    struct span name;

    if (s->ops->trace != NULL)
        s->ops->trace(s, true, text, s->arg);
    if (s->spawn.is_open)
        return spawn_line(s, text, err);
    if (is_blank_line(text))
        return 0;
    if (pmi_line_split(&line, text) < 0)
        return session_quote(text, "not a PMI request", err);
    name = pmi_line_get(&line, "cmd");
    if (name.p == NULL)
        name = pmi_line_get(&line, "mcmd");
    if (!is_word(name))
        return session_quote(text, "not a PMI request", err);
    return run_command(s, name, &line, err);
}

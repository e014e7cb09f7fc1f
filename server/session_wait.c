/* SPDX-License-Identifier: BSD-3-Clause */
/* session_wait.c - requests whose answers come later: barriers, names, spawns, node attributes */
#include <stdlib.h>
#include "server/session_priv.h"

static void append(char **end, struct span *part)
{
    char *to = *end;

    if (part->n > 0)
        memcpy(to, part->p, part->n);
    *end += part->n;
    part->p = part->p == NULL ? NULL : to;
}

struct waiting *session_wait(struct session *s, const struct waiting *ask)
{
    struct waiting *w;
    char *end;

    if (s->nwaits == PMI_WAITING_MAX)
        return NULL;
    w = malloc(sizeof(*w) + ask->thrid.n + ask->text.n + ask->id.group.n);
    if (w == NULL)
        return NULL;
    *w = *ask;
    w->s = s;
    w->next = NULL;
    end = (char *)(w + 1);
    append(&end, &w->thrid);
    append(&end, &w->text);
    append(&end, &w->id.group);
    s->nwaits++;
    *s->waits_tail = w;
    s->waits_tail = &w->next;
    return w;
}

void session_wait_over(struct waiting *w)
{
    struct session *s = w->s;
    struct waiting **at = &s->waits;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (s->waits_tail == &w->next)
        s->waits_tail = at;
    s->nwaits--;
    free(w);
}

void session_waits_free(struct session *s)
{
    while (s->waits != NULL) {
        if (s->waits->kind == WAIT_ATTR)
            attrs_withdraw(s->who.job->attrs, s->waits);
        session_wait_over(s->waits);
    }
}

/* --- barriers --------------------------------------------------------------------------------------------------- */

static bool same_id(const struct barrier_id *a, const struct barrier_id *b)
{
    return a->set == b->set && a->tag == b->tag && span_eq(a->group, b->group);
}

/* The first that waits for `id`, of those that the owner knows of or of those that it does not. */
static struct waiting *find_barrier(const struct session *s, const struct barrier_id *id, bool is_entered)
{
    for (struct waiting *w = s->waits; w != NULL; w = w->next)
        if (w->kind == WAIT_BARRIER && w->is_entered == is_entered && same_id(&w->id, id))
            return w;
    return NULL;
}

static int answer_barrier(struct session *s, const struct waiting *w, int rc, const char *msg)
{
    struct span thrid = s->thrid;

    s->thrid = w->thrid;
    rc = w->wire == 2 ? session2_barrier_out(s, rc, msg) : session1_barrier_out(s, w, rc, msg);
    s->thrid = thrid;
    return rc;
}

/* The owner may answer before this returns, and then `w` is gone. */
static void enter(struct session *s, struct waiting *w)
{
    char group[BARRIER_NAME_MAX];
    struct barrier_id id = w->id;
    int rc;

    if (id.group.n > 0)
        memcpy(group, id.group.p, id.group.n);
    id.group.p = group;
    w->is_entered = true;
    rc = s->ops->barrier_in(s, &id, s->arg);
    if (rc < 0)
        session_barrier_out(s, &id, rc);
}

int session_enter(struct session *s, const struct waiting *ask)
{
    bool is_first = find_barrier(s, &ask->id, true) == NULL;
    struct waiting *w = session_wait(s, ask);

    if (w == NULL)
        return answer_barrier(s, ask, RC_FAIL, "too_many");
    if (is_first)
        enter(s, w);
    return 0;
}

void session_barrier_out(struct session *s, const struct barrier_id *id, int rc)
{
    struct waiting *w = find_barrier(s, id, true), *next;

    if (w == NULL)
        return;
    next = find_barrier(s, &w->id, false);
    /* Out of memory for a few bytes: there is no way to say so but to say nothing, as for a lost reply. */
    if (rc < 0 || !w->by_bell)
        (void)answer_barrier(s, w, rc < 0 ? RC_FAIL : 0, NULL);
    session_wait_over(w);
    if (next != NULL)
        enter(s, next);
}

/* --- names ------------------------------------------------------------------------------------------------------ */

static struct waiting *find_req(const struct session *s, enum wait_kind kind, uint32_t req)
{
    for (struct waiting *w = s->waits; w != NULL; w = w->next)
        if (w->kind == kind && w->req == req)
            return w;
    return NULL;
}

static int answer_name(struct session *s, const struct waiting *w, int rc, struct span port)
{
    struct span thrid = s->thrid;

    s->thrid = w->thrid;
    rc = w->wire == 2 ? session2_name_done(s, w, rc, port) : session1_name_done(s, w, rc, port);
    s->thrid = thrid;
    return rc;
}

void session_name_done(struct session *s, uint32_t req, int rc, struct span port)
{
    struct waiting *w = find_req(s, WAIT_NAME, req);

    if (w == NULL)
        return;
    (void)answer_name(s, w, rc, port);
    session_wait_over(w);
}

static bool has_newline(struct span text)
{
    return text.n > 0 && memchr(text.p, '\n', text.n) != NULL;
}

int session_ask_name(struct session *s, const struct waiting *ask, struct span port)
{
    struct waiting *w;
    uint32_t req;
    int rc;

    if (ask->text.n > NAME_SERVICE_MAX || port.n > NAME_PORT_MAX)
        return answer_name(s, ask, -E2BIG, SPAN_NONE);
    /* Newlines, which PMI-2 could carry, could not be looked up over PMI-1. */
    if (ask->text.n == 0 || has_newline(ask->text) || has_newline(port) || (ask->op == SESSION_PUBLISH && port.n == 0))
        return answer_name(s, ask, -EINVAL, SPAN_NONE);
    w = session_wait(s, ask);
    if (w == NULL)
        return answer_name(s, ask, -ENOSPC, SPAN_NONE);
    req = w->req = ++s->last_req;
    rc = s->ops->name == NULL ? -ENOSYS : s->ops->name(s, req, w->op, ask->text, port, s->arg);
    if (rc < 0)
        session_name_done(s, req, rc, SPAN_NONE);
    return 0;
}

/* --- the mapping ------------------------------------------------------------------------------------------------ */

static const struct span mapping = {"PMI_process_mapping", 19};

bool session_is_later(const struct session *s, struct span key)
{
    return s->who.job->mapping_later && span_eq(key, mapping);
}

bool session_await_mapping(struct session *s, const char *cmd)
{
    struct waiting ask = {.kind = WAIT_MAPPING, .wire = s->wire, .thrid = s->thrid, .text = span_of(cmd)};

    return session_wait(s, &ask) != NULL;
}

void session_mapping_known(struct session *s)
{
    struct span thrid = s->thrid;
    struct waiting *next;

    for (struct waiting *w = s->waits; w != NULL; w = next) {
        next = w->next;
        if (w->kind != WAIT_MAPPING)
            continue;
        s->thrid = w->thrid;
        (void)(w->wire == 2 ? session2_get_done(s, w->text, mapping) : session1_get_done(s, mapping));
        session_wait_over(w);
    }
    s->thrid = thrid;
}

bool session_is_waiting(const struct session *s)
{
    return s->waits != NULL;
}

/* --- node attributes --------------------------------------------------------------------------------------------- */

struct span session_awaits_attr(const struct session *s, bool *threaded)
{
    struct span key = SPAN_NONE;

    *threaded = s->is_threaded;
    for (const struct waiting *w = s->waits; w != NULL; w = w->next) {
        if (w->kind != WAIT_ATTR)
            return SPAN_NONE;
        *threaded = *threaded || w->thrid.p != NULL;
        key = w->text;
    }
    return key;
}

/* --- spawn ------------------------------------------------------------------------------------------------------ */

static int answer_spawn(struct session *s, const struct waiting *w, const struct spawn_done *done)
{
    struct span thrid = s->thrid;
    int rc;

    s->thrid = w->thrid;
    rc = w->wire == 2 ? session2_spawn_done(s, done) : session1_spawn_done(s, done);
    s->thrid = thrid;
    return rc;
}

void session_spawn_done(struct session *s, uint32_t req, int rc, const char *kvsname, const int *errcodes,
                        uint32_t count)
{
    struct waiting *w = find_req(s, WAIT_SPAWN, req);
    struct spawn_done done = {
        .rc = rc, .why = session_why(rc), .kvsname = kvsname, .errcodes = errcodes, .count = count};

    if (w == NULL)
        return;
    (void)answer_spawn(s, w, &done);
    session_wait_over(w);
}

int session_ask_spawn(struct session *s)
{
    struct waiting ask = {.kind = WAIT_SPAWN, .wire = s->wire, .thrid = s->thrid}, *w;
    struct spawn_done done = {.rc = -EINVAL, .why = s->spawn.refused};
    uint32_t req;
    int rc;

    if (s->spawn.refused != NULL) {
        spawn_parse_done(&s->spawn);
        return answer_spawn(s, &ask, &done);
    }
    w = session_wait(s, &ask);
    if (w == NULL) {
        spawn_parse_done(&s->spawn);
        done.why = "too_many";
        return answer_spawn(s, &ask, &done);
    }
    req = w->req = ++s->last_req;
    rc = s->ops->spawn == NULL ? -ENOSYS : s->ops->spawn(s, req, &s->spawn.want, s->arg);
    spawn_parse_done(&s->spawn);
    if (rc < 0)
        session_spawn_done(s, req, rc, NULL, NULL, 0);
    return 0;
}

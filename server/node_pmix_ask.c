/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pmix_ask.c - what the PMIx clients of this node ask of the run: others' keys, what is published, further jobs
 *
 * Each request goes up to the root with a number, and its answer comes back down to this node with it. Somebody's keys
 * the root has from the node where that rank is.
 */
#include <stdlib.h>
#include <string.h>
#include "server/blame.h"
#include "server/node_pmix.h"
#include "server/pmix_pair.h"

/* --- requests that wait ----------------------------------------------------------------------------------------- */

static int keep(struct node_pmix *p, struct pmix_up *u)
{
    if (p->asked_count >= PMIX_ASKED_MAX)
        return -ENOSPC;
    u->ticket = p->next_req++;
    u->next = p->asked;
    p->asked = u;
    p->asked_count++;
    return 0;
}

/* Takes it off the list. NULL: it is not there. */
static struct pmix_up *take(struct node_pmix *p, uint64_t ticket)
{
    for (struct pmix_up **at = &p->asked; *at != NULL; at = &(*at)->next) {
        struct pmix_up *u = *at;

        if (u->ticket != ticket)
            continue;
        *at = u->next;
        p->asked_count--;
        return u;
    }
    return NULL;
}

void node_pmix_done(const struct node_pmix *p, struct pmix_up *u, int rc, struct span data)
{
    if (p->ending && p->unclean) /* a library that will be left is not spoken to */
        u->answer = NULL;
    pmix_up_done(u, rc, data);
}

void node_pmix_give_up(struct node_pmix *p)
{
    while (p->asked != NULL)
        node_pmix_done(p, take(p, p->asked->ticket), -ECANCELED, SPAN_NONE);
}

/* --- questions -------------------------------------------------------------------------------------------------- */

static struct msg_out *ask_map(const struct node_pmix *p, const struct pmix_up *u, uint32_t job, uint32_t rank)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_u64(m, "place", p->node->conf.place);
        msg_put_u64(m, "req", u->ticket);
        msg_put_u64(m, "job", job);
        msg_put_u64(m, "rank", rank);
    }
    return m;
}

/* The keys of `u`, or keys and values, with who it is that publishes them. */
static int with_owner(const struct pmix_up *u, uint32_t job, struct buf *out)
{
    struct span rest = buf_span(&u->data);
    struct pmix_pair pair;
    int rc;

    buf_init(out, PMIX_BLOB_MAX);
    while ((rc = pmix_pair_next(&rest, &pair)) == 1) {
        pair.job = job;
        pair.rank = u->who.rank;
        if ((rc = pmix_pair_add(out, &pair)) < 0)
            return rc;
    }
    return rc;
}

static int ask_store(struct node_pmix *p, struct pmix_up *u)
{
    const struct node_job *j = node_pmix_job(p->node, u->who.nspace);
    struct buf data = {0};
    struct msg_out *m;
    int rc = j == NULL ? -ENOENT : with_owner(u, j->job->id, &data);

    if (rc == 0)
        rc = keep(p, u);
    if (rc == 0) {
        m = ask_map(p, u, j->job->id, u->who.rank);
        if (m != NULL) {
            msg_put_u64(m, "op", u->kind);
            msg_put_bin(m, "data", buf_span(&data));
            msg_put_bool(m, "once", u->once);
            msg_put_bool(m, "wait", u->wait);
            msg_put_u64(m, "timeout", u->timeout);
        }
        node_send_map(p->node, MSG_PMIX_ASK, m, false);
    }
    buf_done(&data);
    return rc;
}

static int ask_keys(struct node_pmix *p, struct pmix_up *u)
{
    const struct node_job *j = node_pmix_job(p->node, u->member[0].nspace);
    struct msg_out *m;
    int rc = j == NULL || u->member[0].rank >= j->job->size ? -ENOENT : keep(p, u);

    if (rc < 0)
        return rc;
    m = ask_map(p, u, j->job->id, u->member[0].rank);
    if (m != NULL)
        msg_put_u64(m, "op", u->kind);
    node_send_map(p->node, MSG_PMIX_ASK, m, false);
    return 0;
}

static int ask_spawn(struct node_pmix *p, struct pmix_up *u)
{
    const struct node_job *j = node_pmix_job(p->node, u->who.nspace);
    struct msg_out *m;
    int rc = j == NULL ? -ENOENT : keep(p, u);

    if (rc < 0)
        return rc;
    m = ask_map(p, u, j->job->id, u->who.rank);
    if (m == NULL || spawn_want_pack(&u->want, m) < 0) {
        msg_out_free(m);
        (void)take(p, u->ticket);
        return -ENOMEM;
    }
    msg_put_u64(m, "set", PMIX_ASKER_SET);
    node_send_map(p->node, MSG_SPAWN, m, false);
    return 0;
}

void node_pmix_ask(struct node_pmix *p, struct pmix_up *u)
{
    int rc = p->ending                  ? -ECANCELED
             : u->kind == PMIX_UP_GET   ? ask_keys(p, u)
             : u->kind == PMIX_UP_SPAWN ? ask_spawn(p, u)
                                        : ask_store(p, u);

    if (rc < 0)
        pmix_up_done(u, rc, SPAN_NONE);
}

/* --- answers ---------------------------------------------------------------------------------------------------- */

/* A lookup's answer names who has published each key; their jobs are numbers, which the library knows as namespaces. */
static int name_owners(const struct node_pmix *p, struct pmix_up *u, struct span pairs)
{
    struct span rest = pairs;
    struct pmix_pair pair;
    size_t n = 0;
    int rc;

    while ((rc = pmix_pair_next(&rest, &pair)) == 1)
        n++;
    if (rc < 0)
        return rc;
    u->member = calloc(n + 1, sizeof(*u->member));
    if (u->member == NULL)
        return -ENOMEM;
    while (pmix_pair_next(&pairs, &pair) == 1) {
        const struct node_job *j = node_job_numbered(p->node, pair.job);

        u->member[u->count].nspace = strdup(j == NULL ? "" : j->job->nspace);
        u->member[u->count++].rank = pair.rank;
    }
    return 0;
}

int node_pmix_answer(struct node *n, const struct msg_in *m, struct err *err)
{
    struct span data = SPAN_NONE;
    struct pmix_up *u;
    uint64_t req;
    int64_t code;
    int rc;

    if ((rc = msg_get_u64(m, "req", 0, UINT32_MAX, &req, err)) < 0 || (rc = msg_get_i64(m, "rc", &code, err)) < 0)
        return rc;
    (void)msg_get_bin(m, "data", &data, NULL);
    u = n->pmix == NULL ? NULL : take(n->pmix, req);
    if (u == NULL)
        return 0;
    rc = code < 0 && code > -4096 ? (int)code : 0;
    if (rc == 0 && u->kind == PMIX_UP_LOOKUP)
        rc = name_owners(n->pmix, u, data);
    pmix_up_done(u, rc, data);
    return 0;
}

/* A job that a rank of ours has asked for has come to be, or has not. Open MPI 4 tells only the rank that asked that it
 * has not, while the others of its communicator wait for it for ever: so that is a failure of the rank. */
int node_pmix_spawned(struct node *n, const struct msg_in *m, struct err *err)
{
    char *nspace = NULL;
    uint32_t *codes = NULL;
    size_t count = 0;
    struct pmix_up *u;
    uint64_t req;
    int64_t code;
    int rc;

    if ((rc = msg_get_u64(m, "req", 0, UINT32_MAX, &req, err)) < 0 || (rc = msg_get_i64(m, "rc", &code, err)) < 0)
        return rc;
    u = n->pmix == NULL ? NULL : take(n->pmix, req);
    if (u == NULL)
        return 0;
    if (code == 0)
        code = msg_get_str(m, "nspace", &nspace, err);
    if (code == 0)
        code = msg_get_u32v(m, "errcodes", TASKS_MAX, &codes, &count, err);
    for (size_t i = 0; code == 0 && i < count; i++)
        code = codes[i] == 0 ? 0 : -EIO;
    if (code < 0) {
        struct node_job *j = node_pmix_job(n, u->who.nspace);
        struct task *t = j == NULL ? NULL : node_task_of_rank(j, u->who.rank);

        if (t != NULL)
            node_task_failure(t, BLAME_STATUS, 1, "asked for a job to be spawned, which could not be");
    }
    pmix_up_done(u, code < 0 ? -EIO : 0, span_of(nspace));
    free(nspace);
    free(codes);
    return 0;
}

/* --- keys of a rank of ours, for another node --------------------------------------------------------------------- */

static void send_got(struct node *n, uint64_t ticket, int rc, struct span data)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_u64(m, "place", ticket >> 32);
        msg_put_u64(m, "req", ticket & UINT32_MAX);
        msg_put_i64(m, "rc", rc);
        if (rc == 0)
            msg_put_bin(m, "data", data);
    }
    node_send_map(n, MSG_PMIX_GOT, m, false);
}

/* The library is asked for them, and is never heard of again where the rank ends without having committed any. */
struct pmix_given {
    struct pmix_given *next;
    uint64_t ticket;
    const struct task *task;
};

static int keep_given(struct node_pmix *p, const struct task *t, uint64_t ticket)
{
    struct pmix_given *g = calloc(1, sizeof(*g));

    if (g == NULL)
        return -ENOMEM;
    *g = (struct pmix_given){p->given, ticket, t};
    p->given = g;
    return 0;
}

/* `t` has ended, or NULL: all of this is over. */
void node_pmix_given_up(struct node_pmix *p, const struct task *t)
{
    for (struct pmix_given **at = &p->given, *g; (g = *at) != NULL;) {
        if (t != NULL && g->task != t) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        if (t != NULL)
            send_got(p->node, g->ticket, -ENOENT, SPAN_NONE);
        free(g);
    }
}

int node_pmix_get(struct node *n, const struct msg_in *m, struct err *err)
{
    uint64_t asker, req, job, rank, ticket;
    struct node_job *j;
    const struct task *t;
    int rc;

    if ((rc = msg_get_u64(m, "asker", 0, NODES_MAX, &asker, err)) < 0 ||
        (rc = msg_get_u64(m, "req", 0, UINT32_MAX, &req, err)) < 0 ||
        (rc = msg_get_u64(m, "job", 0, UINT32_MAX, &job, err)) < 0 ||
        (rc = msg_get_u64(m, "rank", 0, TASKS_MAX, &rank, err)) < 0)
        return rc;
    ticket = asker << 32 | req;
    j = node_job_numbered(n, job);
    t = j == NULL ? NULL : node_task_of_rank(j, (uint32_t)rank);
    /* Of one that has ended some versions of the library would wait for ever. */
    if (t == NULL || t->state == TASK_ENDED || j->job->nspace == NULL || n->pmix == NULL || n->pmix->host == NULL)
        send_got(n, ticket, -ENOENT, SPAN_NONE);
    else if (keep_given(n->pmix, t, ticket) < 0)
        send_got(n, ticket, -ENOMEM, SPAN_NONE);
    else
        pmix_host_get(n->pmix->host, j->job->nspace, (uint32_t)rank, ticket);
    return 0;
}

void node_pmix_got(struct node_pmix *p, struct pmix_up *u)
{
    for (struct pmix_given **at = &p->given, *g; (g = *at) != NULL; at = &g->next) {
        if (g->ticket != u->ticket)
            continue;
        *at = g->next;
        free(g);
        send_got(p->node, u->ticket, u->rc, buf_span(&u->data));
        break;
    }
    pmix_up_done(u, 0, SPAN_NONE);
}

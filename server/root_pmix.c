/* SPDX-License-Identifier: BSD-3-Clause */
/* root_pmix.c - what PMIx clients ask of the whole run, and what is seen of how they use it */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/io/log.h"
#include "common/strv.h"
#include "server/pmix_host.h"
#include "server/pmix_store.h"
#include "server/root_priv.h"

/* --- answers ---------------------------------------------------------------------------------------------------- */

static void answer(const struct pmix_asker *who, int rc, struct span data, void *arg)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_u64(m, "place", who->place);
        msg_put_u64(m, "req", who->req);
        msg_put_i64(m, "rc", rc);
        if (data.n > 0)
            msg_put_bin(m, "data", data);
    }
    root_send_map(arg, MSG_PMIX_ANSWER, m, false);
}

struct pmix_store *root_pmix_store(struct root *r)
{
    return pmix_store_new(answer, r);
}

static int read_asker(const struct root *r, const struct msg_in *m, struct pmix_asker *out, struct err *err)
{
    uint64_t place, req;
    int rc = msg_get_u64(m, "place", 0, r->first->job->places - 1, &place, err);

    if (rc == 0)
        rc = msg_get_u64(m, "req", 0, UINT32_MAX, &req, err);
    if (rc == 0)
        *out = (struct pmix_asker){(uint32_t)place, (uint32_t)req};
    return rc;
}

/* --- keys of a rank --------------------------------------------------------------------------------------------- */

/* From the node where it is. */
static int ask_rank(struct root *r, const struct pmix_asker *who, const struct msg_in *m, struct err *err)
{
    const struct root_job *j = root_job_of(r, m);
    struct msg_out *out;
    uint64_t rank;
    int rc = msg_get_u64(m, "rank", 0, TASKS_MAX, &rank, err);

    if (rc < 0)
        return rc;
    if (j == NULL || rank >= j->size || j->ended[rank]) {
        answer(who, -ENOENT, SPAN_NONE, r);
        return 0;
    }
    out = root_job_map(j);
    if (out != NULL) {
        msg_put_u64(out, "place", r->place_of[j->node_of[rank]]);
        msg_put_u64(out, "asker", who->place);
        msg_put_u64(out, "req", who->req);
        msg_put_u64(out, "rank", rank);
    }
    root_send_map(r, MSG_PMIX_GET, out, false);
    return 0;
}

int root_pmix_got(struct root *r, const struct msg_in *m, struct err *err)
{
    struct span data = SPAN_NONE;
    struct pmix_asker who;
    int64_t code;
    int rc = read_asker(r, m, &who, err);

    if (rc < 0 || (rc = msg_get_i64(m, "rc", &code, err)) < 0)
        return rc;
    (void)msg_get_bin(m, "data", &data, NULL);
    answer(&who, code < 0 ? (int)code : 0, data, r);
    return 0;
}

/* --- events ----------------------------------------------------------------------------------------------------- */

/* What one node says of it all are told; that node knows. */
int root_pmix_event(struct root *r, const struct msg_in *m, struct err *err)
{
    uint64_t job, from, rank, range;
    struct msg_out *out;
    struct span data;
    bool own_job;
    int64_t code;
    int rc;

    if ((rc = msg_get_u64(m, "job", 0, UINT32_MAX, &job, err)) < 0 ||
        (rc = msg_get_u64(m, "from", 0, r->first->job->places - 1, &from, err)) < 0 ||
        (rc = msg_get_u64(m, "rank", 0, UINT32_MAX, &rank, err)) < 0 || (rc = msg_get_i64(m, "code", &code, err)) < 0 ||
        (rc = msg_get_u64(m, "range", 0, UINT8_MAX, &range, err)) < 0 ||
        (rc = msg_get_bool(m, "own_job", &own_job, err)) < 0 || (rc = msg_get_bin(m, "data", &data, err)) < 0)
        return rc;
    out = msg_out_new();
    if (out != NULL) {
        msg_put_u64(out, "job", job);
        msg_put_u64(out, "from", from);
        msg_put_u64(out, "rank", rank);
        msg_put_i64(out, "code", code);
        msg_put_u64(out, "range", range);
        msg_put_bool(out, "own_job", own_job);
        msg_put_bin(out, "data", data);
    }
    root_send_map(r, MSG_PMIX_NOTIFY, out, false);
    return 0;
}

/* --- what is published ------------------------------------------------------------------------------------------ */

static void expire(struct root *r);

static void on_deadline(uv_timer_t *t)
{
    expire(t->data);
}

static void expire(struct root *r)
{
    uint64_t now = uv_now(r->loop), next = pmix_store_expire(r->published, now);

    if (next != 0)
        uv_timer_start(&r->lookup, on_deadline, next - now, 0);
}

static int look_up(struct root *r, const struct pmix_asker *who, const struct msg_in *m, struct span keys)
{
    uint64_t timeout = 0;
    bool wait = false;
    int rc;

    (void)msg_get_bool(m, "wait", &wait, NULL);
    (void)msg_get_u64(m, "timeout", 0, UINT32_MAX, &timeout, NULL);
    rc = pmix_store_lookup(r->published, who, keys, wait, timeout == 0 ? 0 : uv_now(r->loop) + timeout * 1000);
    if (rc == 0)
        expire(r);
    return rc;
}

int root_pmix_ask(struct root *r, const struct msg_in *m, struct err *err)
{
    struct pmix_asker who;
    struct span data;
    bool once = false;
    uint64_t op;
    int rc = read_asker(r, m, &who, err);

    if (rc < 0 || (rc = msg_get_u64(m, "op", PMIX_UP_GET, PMIX_UP_UNPUBLISH, &op, err)) < 0)
        return rc;
    if (op == PMIX_UP_GET)
        return ask_rank(r, &who, m, err);
    if (op == PMIX_UP_GOT)
        return err_set(err, -EPROTO, "that is no question");
    if ((rc = msg_get_bin(m, "data", &data, err)) < 0)
        return rc;
    (void)msg_get_bool(m, "once", &once, NULL);
    if (op == PMIX_UP_LOOKUP) {
        rc = look_up(r, &who, m, data);
        if (rc < 0)
            answer(&who, rc, SPAN_NONE, r);
    } else {
        rc = op == PMIX_UP_PUBLISH ? pmix_store_publish(r->published, data, once)
                                   : pmix_store_unpublish(r->published, data);
        answer(&who, rc, SPAN_NONE, r);
    }
    return 0;
}

/* --- how it is used --------------------------------------------------------------------------------------------- */

/* A rank that has ended without a word over PMIx is waited for in init by all that have begun: their libraries let no
 * server end that, and Open MPI goes on after a fence that failed as if it had not. So it ends the run with
 * --keep-going, too, although another failure of that rank may have been told. */
static void check_apart(struct root_job *j)
{
    char line[ERR_TEXT_MAX], name[300];
    bool keep = j->root->conf->keep_going;

    if (!j->came || !j->has_apart || j->root->phase != ROOT_RUNNING)
        return;
    root_who(j, j->apart, 0, name, sizeof(name));
    snprintf(line, sizeof(line), "%s exited without PMIx init, which others have begun%s", name,
             keep ? ": all end, although --keep-going is given, as those would wait for it for ever" : "");
    if (!keep) {
        root_blame_rank(j, j->apart, BLAME_UNFINALIZED, 1, line);
        return;
    }
    root_blame(j->root, BLAME_UNFINALIZED, 1, line);
    root_end(j->root, SIGTERM);
}

/* Others may wait for it in a barrier of PMI: every node that has such is to ask. */
static void tell_came(struct root_job *j)
{
    struct msg_out *m = root_job_map(j);

    if (m != NULL)
        msg_put_bool(m, "pmix", true);
    root_send_map(j->root, MSG_RANK_GONE, m, false);
}

void root_pmix_came(struct root_job *j)
{
    if (j->came)
        return;
    j->came = true;
    check_apart(j);
    tell_came(j);
}

void root_pmix_exited(struct root_job *j, const struct msg_in *m)
{
    uint32_t *ranks = NULL;
    size_t n = 0;

    if (msg_get_u32v(m, "apart", j->size, &ranks, &n, NULL) < 0 || n == 0 || ranks[0] >= j->size) {
        free(ranks);
        return;
    }
    j->has_apart = true;
    j->apart = ranks[0];
    free(ranks);
    check_apart(j);
}

void root_pmix_singletons(const struct root *r)
{
    const struct root_job *j = r->first;

    if (j->job->nspace == NULL || j->came || j->size < 2 || r->blame.kind != BLAME_NONE || r->final)
        return;
    log_warn("no rank has used PMIx: if this is an MPI program, each of its %u ranks was a job of its own", j->size);
}

bool root_pmix_versions(const struct root *r, const struct msg_in *m, char *line, size_t size)
{
    char **v = NULL;
    uint32_t *node = NULL;
    size_t n = 0, k = 0;
    bool differ;

    if (msg_get_strv(m, "pmix", 2, &v, &n, NULL) == 0)
        (void)msg_get_u32v(m, "pmix_node", 2, &node, &k, NULL);
    differ = n == 2 && k == 2 && node[0] < r->plan->node_count && node[1] < r->plan->node_count;
    if (differ)
        snprintf(line, size, "%s has %s and %s has %s: a job needs one version of PMIx on all of its hosts",
                 r->plan->node[node[0]].host, log_escape(span_of(v[0])), r->plan->node[node[1]].host,
                 log_escape(span_of(v[1])));
    strv_free(v);
    free(node);
    return differ;
}

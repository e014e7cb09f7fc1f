/* SPDX-License-Identifier: BSD-3-Clause */
/* node_ask.c - what a session wants of the whole run (names, further jobs) goes up to the root; the answers come back
 * down to this node and say for which rank, session and request they are
 */
#include <stdlib.h>
#include "server/node_priv.h"

static struct msg_out *ask_map(const struct pmi_conn *c, uint32_t req)
{
    struct msg_out *m = node_job_map(c->job);

    if (m != NULL) {
        msg_put_u64(m, "place", c->job->node->conf.place);
        msg_put_u64(m, "rank", c->task->rank);
        msg_put_u64(m, "set", c->set);
        msg_put_u64(m, "req", req);
    }
    return m;
}

int node_ask_name(struct pmi_conn *c, uint32_t req, enum session_name_op op, struct span service, struct span port)
{
    struct msg_out *m = ask_map(c, req);

    if (m == NULL)
        return -ENOMEM;
    msg_put_u64(m, "op", (uint64_t)op);
    msg_put_bin(m, "service", service);
    msg_put_bin(m, "port", port);
    node_send_map(c->job->node, MSG_NAME, m, false);
    return 0;
}

int node_ask_spawn(struct pmi_conn *c, uint32_t req, const struct spawn_want *want)
{
    struct msg_out *m = ask_map(c, req);
    int rc = m == NULL ? -ENOMEM : spawn_want_pack(want, m);

    if (rc < 0) {
        msg_out_free(m);
        return rc;
    }
    node_send_map(c->job->node, MSG_SPAWN, m, false);
    return 0;
}

/* For whom an answer is, and what it is. */
struct answer {
    struct pmi_conn *c; /* NULL: it has closed meanwhile */
    uint32_t req;
    int rc;
};

static int read_answer(const struct node_job *j, const struct msg_in *m, struct answer *a, struct err *err)
{
    uint64_t rank, set, req;
    const struct task *t;
    int64_t code;
    int rc;

    if ((rc = msg_get_u64(m, "rank", 0, TASKS_MAX, &rank, err)) < 0 ||
        (rc = msg_get_u64(m, "set", 0, UINT32_MAX, &set, err)) < 0 ||
        (rc = msg_get_u64(m, "req", 0, UINT32_MAX, &req, err)) < 0 || (rc = msg_get_i64(m, "rc", &code, err)) < 0)
        return rc;
    t = node_task_of_rank(j, (uint32_t)rank);
    if (t == NULL)
        return err_set(err, -EPROTO, "rank %u is not on this node", (unsigned)rank);
    *a = (struct answer){node_pmi_find(j, t->slot, (uint32_t)set), (uint32_t)req, (int)code};
    return 0;
}

int node_named(struct node_job *j, const struct msg_in *m, struct err *err)
{
    struct span port = SPAN_NONE;
    struct answer a;
    int rc = read_answer(j, m, &a, err);

    if (rc < 0 || a.c == NULL)
        return rc;
    (void)msg_get_bin(m, "port", &port, NULL);
    session_name_done(a.c->session, a.req, a.rc, port);
    return 0;
}

int node_spawned(struct node_job *j, const struct msg_in *m, struct err *err)
{
    char *kvsname = NULL;
    uint32_t *codes = NULL;
    size_t count = 0;
    struct answer a;
    int rc = read_answer(j, m, &a, err);

    if (rc < 0 || a.c == NULL)
        return rc;
    if (a.rc == 0 && (rc = msg_get_str(m, "kvsname", &kvsname, err)) == 0)
        rc = msg_get_u32v(m, "errcodes", TASKS_MAX, &codes, &count, err);
    if (rc == 0)
        session_spawn_done(a.c->session, a.req, a.rc, kvsname, (const int *)codes, (uint32_t)count);
    free(kvsname);
    free(codes);
    return rc;
}

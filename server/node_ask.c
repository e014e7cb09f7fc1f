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

/* NULL: it has closed meanwhile. */
static struct pmi_conn *asker(const struct node_job *j, const struct msg_in *m, uint32_t *req, int *rc)
{
    uint64_t rank, set, number;
    const struct task *t;
    int64_t code;

    if (msg_get_u64(m, "rank", 0, TASKS_MAX, &rank, NULL) < 0 || msg_get_u64(m, "set", 0, UINT32_MAX, &set, NULL) < 0 ||
        msg_get_u64(m, "req", 0, UINT32_MAX, &number, NULL) < 0 || msg_get_i64(m, "rc", &code, NULL) < 0)
        return NULL;
    t = node_task_of_rank(j, (uint32_t)rank);
    *req = (uint32_t)number;
    *rc = (int)code;
    return t == NULL ? NULL : node_pmi_find(j, t->slot, (uint32_t)set);
}

void node_named(struct node_job *j, const struct msg_in *m)
{
    struct span port = SPAN_NONE;
    struct pmi_conn *c;
    uint32_t req;
    int rc;

    c = asker(j, m, &req, &rc);
    if (c == NULL)
        return;
    (void)msg_get_bin(m, "port", &port, NULL);
    session_name_done(c->session, req, rc, port);
}

void node_spawned(struct node_job *j, const struct msg_in *m)
{
    char *kvsname = NULL;
    uint32_t *codes = NULL, req;
    size_t count = 0;
    struct pmi_conn *c;
    int rc;

    c = asker(j, m, &req, &rc);
    if (c == NULL)
        return;
    if (rc == 0 && (msg_get_str(m, "kvsname", &kvsname, NULL) < 0 ||
                    msg_get_u32v(m, "errcodes", TASKS_MAX, &codes, &count, NULL) < 0))
        rc = -EPROTO;
    session_spawn_done(c->session, req, rc, kvsname, (const int *)codes, (uint32_t)count);
    free(kvsname);
    free(codes);
}

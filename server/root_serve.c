/* SPDX-License-Identifier: BSD-3-Clause */
/* root_serve.c - --serve, as the launcher sees it: COMMAND is the first job, and the ranks that come are the second */
#include <stdio.h>
#include <stdlib.h>
#include "common/hostlist.h"
#include "server/job_make.h"
#include "server/root_priv.h"

int root_serve_begin(struct root *r, struct err *err)
{
    struct job *job;
    struct buf body;
    int rc = job_make_served(r->conf, r->first->job, &job, err);

    if (rc < 0)
        return rc;
    r->served = root_job_new(r, job);
    if (r->served == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    r->served->answered = true; /* nobody has asked for it */
    r->served->addr = calloc(job->size, sizeof(*r->served->addr));
    buf_init(&body, MESSAGE_MAX);
    rc = r->served->addr == NULL ? -ENOMEM : job_pack(job, &body);
    if (rc < 0)
        err_set(err, rc, "out of memory");
    else
        r->ops->send(MSG_JOB, buf_span(&body), false, r->arg);
    buf_done(&body);
    return rc;
}

void root_came(struct root_job *j, const struct msg_in *m)
{
    uint64_t rank, addr;

    if (j != j->root->served || msg_get_u64(m, "rank", 0, j->size - 1, &rank, NULL) < 0 ||
        msg_get_u64(m, "addr", 0, UINT32_MAX, &addr, NULL) < 0)
        return;
    j->addr[rank] = (uint32_t)addr;
}

void root_serve_who(const struct root_job *j, uint32_t rank, uint32_t pid, char *out, size_t size)
{
    char addr[IPV4_TEXT_MAX];

    if (j == j->root->first && pid != 0)
        snprintf(out, size, "COMMAND (pid %u)", pid);
    else if (j == j->root->first)
        snprintf(out, size, "COMMAND");
    else if (rank < j->size && j->addr[rank] != 0)
        snprintf(out, size, "rank %u at %s", rank, ipv4_text(j->addr[rank], addr));
    else
        snprintf(out, size, "rank %u", rank);
}

uint32_t root_serve_missing(const struct root_job *j, struct buf *out)
{
    uint32_t *ranks = calloc(j->size, sizeof(*ranks)), n = 0;

    for (uint32_t i = 0; ranks != NULL && i < j->size; i++)
        if (j->addr[i] == 0)
            ranks[n++] = i;
    if (n > 0) {
        (void)buf_add_str(out, n == 1 ? "rank " : "ranks ");
        (void)numbers_fold(ranks, n, 120, out);
        (void)buf_add_str(out, n == 1 ? " has not come" : " have not come");
    }
    free(ranks);
    return n;
}

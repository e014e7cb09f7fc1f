/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/fault.h"

#include <stdio.h>
#include "server/barrier_msg.h"

bool fault_is_awaited(unsigned type)
{
    switch (type) {
    case MSG_TRACE:
    case MSG_LOG:
    case MSG_REPORT: /* at most for a second */
    case MSG_ASK:
    case MSG_SLOW:
    case MSG_CAME:
    case MSG_PMIX_CAME:
    case MSG_WINDOW:
    case MSG_STATUS:
        return false;
    default:
        return (type >= MSG_READY && type <= MSG_UP_LAST) || (type >= MSG_JOB && type <= MSG_DOWN_LAST);
    }
}

void fault_put(struct msg_out *m, const struct fault *f)
{
    msg_put_u64(m, "type", f->type);
    msg_put_bool(m, "own", f->from == FAULT_OWN);
    if (f->from != FAULT_OWN && f->from != FAULT_PARENT)
        msg_put_u64(m, "from", f->from);
    if (f->has_barrier) {
        msg_put_u64(m, "job", f->job);
        barrier_put(m, &f->id, f->round);
    }
    msg_put_bin(m, "text", f->text);
}

int fault_read(const struct msg_in *m, struct fault *f, struct err *err)
{
    struct fault got = {0};
    uint64_t type, from = FAULT_PARENT, job;
    bool own;
    int rc;

    if ((rc = msg_get_u64(m, "type", 0, UINT16_MAX, &type, err)) < 0 || (rc = msg_get_bool(m, "own", &own, err)) < 0 ||
        (rc = msg_get_bin(m, "text", &got.text, err)) < 0)
        return rc;
    (void)msg_get_u64(m, "from", 0, FAULT_OWN - 1, &from, NULL);
    got.type = (unsigned)type;
    got.from = own ? FAULT_OWN : (uint32_t)from;
    if (msg_get_u64(m, "job", 0, UINT32_MAX, &job, NULL) == 0) {
        if ((rc = barrier_read(m, &got.id, &got.round, err)) < 0)
            return rc;
        got.has_barrier = true;
        got.job = (uint32_t)job;
    }
    *f = got;
    return 0;
}

/* "barrier 2 of job 3", "the end of barrier 2", "'ready'" */
static void what_text(const struct fault *f, char *out, size_t size)
{
    char which[200], job[24] = "", before[40] = "";

    if (!f->has_barrier) {
        snprintf(out, size, "'%s'", msg_name(f->type));
        return;
    }
    barrier_text(&f->id, f->round, which, sizeof(which));
    if (f->job > 0)
        snprintf(job, sizeof(job), " of job %u", f->job);
    if (f->type == MSG_RELEASE)
        snprintf(before, sizeof(before), "the end of ");
    else if (f->type != MSG_BARRIER && f->type != 0)
        snprintf(before, sizeof(before), "'%s' of ", msg_name(f->type));
    snprintf(out, size, "%s%s%s", before, which, job);
}

void fault_text(const struct fault *f, const char *host, const char *peer, char *out, size_t size)
{
    char what[300];

    what_text(f, what, sizeof(what));
    if (f->type == 0 && !f->has_barrier)
        snprintf(out, size, "%s: %.*s", host, SPAN_FMT(f->text));
    else if (f->type == 0)
        snprintf(out, size, "%s: could not end %s: %.*s", host, what, SPAN_FMT(f->text));
    else if (f->from == FAULT_OWN)
        snprintf(out, size, "%s: could not send %s: %.*s", host, what, SPAN_FMT(f->text));
    else
        snprintf(out, size, "%s: refused %s%s%s: %.*s", host, what, peer == NULL ? "" : " from ",
                 peer == NULL ? "" : peer, SPAN_FMT(f->text));
}

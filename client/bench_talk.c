/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/bench_talk.h"

#include <dlfcn.h>
#include "client/bench_watch.h"

const char *talk_awaits(enum talk_op op)
{
    static const char *const names[TALK_OPS] = {
        [TALK_PUT] = "the reply to put",
        [TALK_GET] = "the reply to get",
        [TALK_BARRIER] = "the end of a barrier",
        [TALK_ATTR] = "the reply to a get of an attribute",
        [TALK_PUBLISH] = "the reply to publish",
        [TALK_LOOKUP] = "the reply to lookup",
        [TALK_UNPUBLISH] = "the reply to unpublish",
        [TALK_SPAWN] = "the result of spawn",
        [TALK_FINALIZE] = "the reply to finalize",
    };

    return names[op];
}

/* What a further session was told must be what the first one was told. */
static int check_same(const struct talk_job *before, const struct talk *t, struct err *err)
{
    int rank = t->job->rank, size = t->job->size;

    if (t->session == 0 || (rank == before->rank && size == before->size))
        return 0;
    t->job->rank = before->rank;
    t->job->size = before->size;
    return err_set(err, -EPROTO, "the PMI server says that it is rank %d of %d, but session 0 is rank %d of %d", rank,
                   size, before->rank, before->size);
}

int talk_open(struct talk *t, struct talk_job *job, const struct where *w, uint32_t session, struct err *err)
{
    int64_t id = w->id < 0 ? -1 : w->id + (int64_t)session * job->size;
    struct talk_job before = *job;
    int rc = 0;

    *t = (struct talk){.job = job, .wire = WIRE_CLOSED, .session = session};
    if (id > UINT32_MAX)
        return err_set(err, -ERANGE, "session %u: there is no PMI_ID %lld", (unsigned)session, (long long)id);
    watch_begin(job->kind->has_wire ? "a connection to the PMI server" : "the library's init", NULL, session, now_ns());
    if (job->kind->has_wire)
        rc = wire_open(&t->wire, w, err);
    if (rc == 0)
        rc = job->kind->start(t, w, id, err);
    if (rc == 0)
        rc = check_same(&before, t, err);
    watch_end();
    if (rc < 0 && session > 0)
        return err_prefix(err, "session %u", (unsigned)session);
    return rc;
}

void talk_close(struct talk *t)
{
    wire_close(&t->wire);
}

void talk_job_done(struct talk_job *job)
{
    buf_done(&job->out);
    buf_done(&job->room);
    if (job->library != NULL)
        dlclose(job->library);
    job->library = NULL;
}

int talk_ask(struct talk *t, const struct talk_request *r, struct err *err)
{
    return t->job->kind->ask(t, r, err);
}

int talk_answer(struct talk *t, enum talk_op op, struct talk_answer *a, struct err *err)
{
    return t->job->kind->answer(t, op, a, err);
}

int talk_do(struct talk *t, const struct talk_request *r, struct talk_answer *a, struct err *err)
{
    int rc;

    watch_begin(talk_awaits(r->op), r->key, t->session, now_ns());
    rc = talk_ask(t, r, err);
    if (rc == 0)
        rc = talk_answer(t, r->op, a, err);
    watch_end();
    return rc;
}

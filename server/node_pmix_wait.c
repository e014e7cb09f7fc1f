/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pmix_wait.c - who waits for whom over PMIx, for people, and collectives that can never be complete
 *
 * The library tells of a collective when all members of its node are in, not before: so of a node that is awaited it is
 * known that it is, and not for which of its members. A member that has ended is in no collective that its node is
 * not in. So once any rank is gone, a node where somebody waits for some at or below itself asks those children that
 * are awaited, and these ask theirs. On every edge the question comes behind the end of the last collective of the
 * same name and ahead of this one's: it needs no number to be about this one. Each node keeps it in mind, looks at
 * its tasks that have ended, and at each that ends later.
 */
#include <stdlib.h>
#include "common/io/log.h"
#include "common/util.h"
#include "server/node_pmix.h"
#include "server/pmix_pair.h"
#include "server/pmix_sig.h"

#define KEY_TOLD_MAX 80 /* bytes of a key */
#define CHECK_MS 100    /* nothing is asked about a collective that is complete sooner */

/* A message about what ranks of `job` wait for. */
static struct msg_out *wait_map(uint32_t job, struct span sig)
{
    const struct barrier_id id = {.set = BARRIER_SET_PMIX, .group = sig};
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_u64(m, "job", job);
        barrier_put(m, &id, 0);
    }
    return m;
}

static bool is_member(struct span sig, const struct task *t)
{
    struct pmix_member m;

    while (pmix_sig_next(&sig, &m) == 1)
        if (m.job == t->job->job->id && t->rank >= m.first && t->rank <= m.last)
            return true;
    return false;
}

/* --- in vain ---------------------------------------------------------------------------------------------------- */

static void say_stuck(const struct task *t, struct span sig)
{
    struct msg_out *m = wait_map((uint32_t)t->job->job->id, sig);

    if (m != NULL) {
        msg_put_u64(m, "rank", t->rank);
        msg_put_bool(m, "left", t->state != TASK_ENDED);
    }
    node_send_map(t->job->node, MSG_STUCK, m, false);
}

/* One that has finalized may begin anew, as long as it runs, unless the library has given it up. */
static bool is_gone(const struct task *t, bool or_out)
{
    return t->state == TASK_ENDED || (or_out && t->pmix == TASK_PMIX_OUT);
}

bool node_pmix_say_gone(const struct node_pmix *p, struct span sig, bool or_out)
{
    for (const struct node_job *j = p->node->jobs; j != NULL; j = j->next)
        for (uint32_t i = 0; i < j->task_count; i++)
            if (is_gone(&j->task[i], or_out) && is_member(sig, &j->task[i])) {
                say_stuck(&j->task[i], sig);
                return true;
            }
    return false;
}

void node_pmix_check(struct node_pmix *p, struct span sig)
{
    const struct node *n = p->node;
    bool *kid = calloc(n->kid_count + 1u, sizeof(*kid));
    struct msg_out *m = msg_out_new();
    bool here = kid != NULL && pmix_fences_note(p->fences, sig, kid);
    struct span body;

    if (m != NULL) {
        msg_put_bin(m, "sig", sig);
        msg_put_bool(m, "more", false);
    }
    if (kid != NULL && m != NULL && msg_out_done(m, &body) == 0)
        for (uint32_t i = 0; i < n->kid_count; i++)
            if (kid[i])
                (void)links_send(n->conf.links, n->kid_place[i], MSG_PMIX_CHECK, body, false);
    msg_out_free(m);
    free(kid);
    if (here)
        (void)node_pmix_say_gone(p, sig, false);
}

static bool has_gone(const struct node *n, struct span sig)
{
    struct pmix_member m;

    while (pmix_sig_next(&sig, &m) == 1) {
        const struct node_job *j = node_job_numbered(n, m.job);

        if (j == NULL || j->gone_known)
            return true;
    }
    return false;
}

static void on_awaiting(struct span sig, void *arg)
{
    struct node_pmix *p = arg;

    if (has_gone(p->node, sig))
        node_pmix_check(p, sig);
}

static void on_check(uv_timer_t *h)
{
    struct node_pmix *p = h->data;

    if (!p->ending && !p->broken)
        pmix_fences_each_awaiting(p->fences, on_awaiting, p);
}

void node_pmix_watch(const struct node *n)
{
    struct node_pmix *p = n->pmix;
    bool gone = false;

    if (p == NULL || p->ending || uv_is_active((uv_handle_t *)&p->check))
        return;
    for (const struct node_job *j = n->jobs; j != NULL; j = j->next)
        gone = gone || j->gone_known;
    if (gone)
        uv_timer_start(&p->check, on_check, CHECK_MS, 0);
}

static void on_noted(struct span sig, void *arg)
{
    const struct task *t = arg;

    if (is_member(sig, t))
        say_stuck(t, sig);
}

void node_pmix_task_gone(struct task *t)
{
    struct node_pmix *p = t->job->node->pmix;

    if (p == NULL || p->ending || t->state != TASK_ENDED)
        return;
    node_pmix_given_up(p, t);
    pmix_fences_each_noted(p->fences, on_noted, t);
}

void node_pmix_break(struct node *n, struct span sig)
{
    if (n->pmix != NULL && !n->pmix->ending)
        pmix_fences_break(n->pmix->fences, sig, -EIO);
}

/* --- for people ------------------------------------------------------------------------------------------------- */

static void tell_in(struct span sig, void *arg)
{
    struct node_job *j = arg;
    uint32_t *in = calloc(j->task_count + 1u, sizeof(*in)), n = 0;
    struct msg_out *m;

    for (uint32_t i = 0; in != NULL && i < j->task_count; i++)
        if (is_member(sig, &j->task[i]))
            in[n++] = j->task[i].rank;
    m = in == NULL || n == 0 ? NULL : wait_map((uint32_t)j->job->id, sig);
    if (m != NULL) {
        msg_put_u64(m, "place", j->node->conf.place);
        msg_put_u32v(m, "in", in, n);
        node_send_map(j->node, MSG_REPORT, m, false);
    }
    free(in);
}

/* What it looks up, if that waits, likewise. */
static const struct node_job *lookup_sig(const struct node *n, const struct pmix_up *u, struct buf *sig)
{
    bool waits = u->kind == PMIX_UP_LOOKUP && u->wait && u->who.nspace != NULL;
    const struct node_job *j = waits ? node_pmix_job(n, u->who.nspace) : NULL;
    struct span rest = buf_span(&u->data);
    struct pmix_pair pair;

    if (j == NULL || pmix_pair_next(&rest, &pair) != 1 ||
        buf_printf(sig, "%c%u.%u-%u/", PMIX_SIG_LOOKUP, (unsigned)j->job->id, u->who.rank, u->who.rank) < 0 ||
        buf_add_escaped(sig, (struct span){pair.key.p, MIN(pair.key.n, (size_t)KEY_TOLD_MAX)}) < 0)
        return NULL;
    return j;
}

/* Whose keys are awaited, as a name like that of a collective; NULL: nobody's. */
static const struct node_job *keys_sig(const struct node *n, const struct pmix_up *u, struct buf *sig)
{
    const struct node_job *j = u->kind == PMIX_UP_GET ? node_pmix_job(n, u->member[0].nspace) : NULL;

    if (j == NULL ||
        buf_printf(sig, "%c%u.%u-%u", PMIX_SIG_KEYS, (unsigned)j->job->id, u->member[0].rank, u->member[0].rank) < 0)
        return NULL;
    return j;
}

static void tell_asked(struct node_job *j, struct span sig, uint32_t *in, size_t n)
{
    struct msg_out *m = wait_map((uint32_t)j->job->id, sig);

    if (m != NULL) {
        msg_put_u64(m, "place", j->node->conf.place);
        msg_put_u32v(m, "in", in, n);
    }
    node_send_map(j->node, MSG_REPORT, m, false);
}

void node_pmix_report(struct node_job *j)
{
    const struct node_pmix *p = j->node->pmix;

    if (p == NULL || p->ending || j->pmix == NULL)
        return;
    pmix_fences_each_entered(p->fences, tell_in, j);
    for (const struct pmix_up *u = p->asked; u != NULL; u = u->next) {
        struct buf sig = {0};

        uint32_t rank = u->who.rank;

        if (keys_sig(j->node, u, &sig) == j)
            tell_asked(j, buf_span(&sig), &rank, 0);
        else if (lookup_sig(j->node, u, &sig) == j)
            tell_asked(j, buf_span(&sig), &rank, 1);
        buf_done(&sig);
    }
}

static void tell_slow(struct span sig, void *arg)
{
    struct span rest = sig;
    struct pmix_member m;

    if (pmix_sig_next(&rest, &m) == 1)
        node_send_map(arg, MSG_SLOW, wait_map(m.job, sig), false);
}

void node_pmix_tick(struct node *n, unsigned ticks)
{
    struct node_pmix *p = n->pmix;

    if (p == NULL || p->ending)
        return;
    pmix_fences_tick(p->fences, ticks, tell_slow, n);
    for (struct pmix_up *u = p->asked; u != NULL; u = u->next) {
        struct buf sig = {0};

        if (++u->ticks == ticks && keys_sig(n, u, &sig) != NULL)
            tell_slow(buf_span(&sig), n);
        buf_done(&sig);
    }
}

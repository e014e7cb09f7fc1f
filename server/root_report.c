/* SPDX-License-Identifier: BSD-3-Clause */
/* root_report.c - who is awaited? The nodes are asked which barriers last and who is in them, and answer. */
#include <stdlib.h>
#include <string.h>
#include "common/io/log.h"
#include "server/barrier_msg.h"
#include "server/root_report.h"

#define REPORT_MS 1000 /* nodes that have not answered by then are not waited for */
#define WAITS_MAX 16   /* barriers told at once */

static uint32_t places_of(const struct root *r)
{
    return r->first->job->places;
}

void root_report_free(struct root *r)
{
    struct wait *next;

    if (r->asked == NULL)
        return;
    for (struct wait *w = r->asked->waits; w != NULL; w = next) {
        next = w->next;
        buf_done(&w->group);
        free(w->in);
        free(w);
    }
    for (unsigned i = 0; i < r->asked->job_count; i++) {
        free(r->asked->job[i].ended);
        free(r->asked->job[i].stopped);
    }
    free(r->asked->answered);
    free(r->asked->queued);
    free(r->asked);
    r->asked = NULL;
}

static struct report *report_new(const struct root *r)
{
    struct report *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return NULL;
    p->tail = &p->waits;
    p->answered = calloc(places_of(r), sizeof(*p->answered));
    p->queued = calloc(places_of(r), sizeof(*p->queued));
    if (p->answered != NULL && p->queued != NULL)
        return p;
    free(p->answered);
    free(p->queued);
    free(p);
    return NULL;
}

/* --- asking ----------------------------------------------------------------------------------------------------- */

void root_report_now(struct root *r)
{
    struct report *p = r->asked;

    if (p == NULL)
        return;
    uv_timer_stop(&r->report);
    root_say_report(r);
    for (unsigned i = 0; i < p->slow_count; i++)
        r->told[r->told_count++ % SLOW_MAX] = p->slow[i];
    root_report_free(r);
}

static void on_report(uv_timer_t *t)
{
    root_report_now(t->data);
}

static uint32_t places_left(const struct root *r)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < places_of(r); i++)
        n += !r->place_lost[i];
    return n;
}

static void ask_about(struct root *r, struct root_job *j)
{
    struct asked_job *a = &r->asked->job[r->asked->job_count];

    a->job = j;
    a->ended = calloc(j->size, sizeof(*a->ended));
    a->stopped = calloc(j->size, sizeof(*a->stopped));
    if (a->ended == NULL || a->stopped == NULL) {
        free(a->ended);
        free(a->stopped);
        return;
    }
    memcpy(a->ended, j->ended, j->size * sizeof(*a->ended));
    r->asked->job_count++;
    r->asked->asked += places_left(r);
    root_send_map(r, MSG_ASK, root_job_map(j), false);
}

static void ask_nodes(struct root *r)
{
    for (struct root_job *j = r->jobs; j != NULL && r->asked->job_count < ASKED_JOBS_MAX; j = j->next)
        if (j == r->first || j->state == JOB_RUNNING)
            ask_about(r, j);
}

static const bool *ended_then(const struct report *p, const struct root_job *j)
{
    for (unsigned i = 0; i < p->job_count; i++)
        if (p->job[i].job == j)
            return p->job[i].ended;
    return j->ended;
}

void root_ask(struct root *r, enum ask_why why, int sig)
{
    bool asked = r->asked != NULL;

    if (!asked)
        r->asked = report_new(r);
    if (r->asked == NULL) {
        log_error("out of memory for the nodes' answers");
        return;
    }
    r->asked->why |= why;
    r->asked->sig = sig;
    if (asked)
        return;
    uv_timer_start(&r->report, on_report, REPORT_MS, 0);
    ask_nodes(r);
}

void root_state(struct root *r)
{
    if (r->phase < ROOT_RUNNING)
        root_say_start(r);
    else
        root_ask(r, ASK_STATE, 0);
}

void root_limit(struct root *r)
{
    if (r->phase == ROOT_RUNNING)
        root_ask(r, ASK_LIMIT, 0);
    else
        root_say_limit(r);
}

/* What has no rounds is told anew once it can have lasted for so long again. */
static bool is_among(const struct root *r, const struct slow_barrier *list, unsigned count,
                     const struct slow_barrier *s)
{
    for (unsigned i = 0; i < count && i < SLOW_MAX; i++)
        if (list[i].job == s->job && strcmp(list[i].text, s->text) == 0 &&
            s->at - list[i].at < r->conf->barrier_warn_ms)
            return true;
    return false;
}

void root_slow(struct root_job *j, const struct msg_in *m)
{
    struct root *r = j->root;
    struct slow_barrier s = {.job = j->id};
    struct barrier_id id;
    uint64_t round;

    if (r->phase != ROOT_RUNNING || barrier_read(m, &id, &round, NULL) < 0)
        return;
    barrier_text(&id, round, s.text, sizeof(s.text));
    s.at = id.set == BARRIER_SET_PMIX ? uv_now(r->loop) : 0;
    if (is_among(r, r->told, r->told_count, &s)) /* more than one node finds it slow */
        return;
    root_ask(r, ASK_SLOW, 0);
    if (r->asked != NULL && r->asked->slow_count < SLOW_MAX && !is_among(r, r->asked->slow, r->asked->slow_count, &s))
        r->asked->slow[r->asked->slow_count++] = s;
}

/* --- answers ---------------------------------------------------------------------------------------------------- */

static struct wait *wait_of(struct report *p, const struct root_job *j, const struct barrier_id *id, uint64_t round,
                            uint32_t node)
{
    char text[BARRIER_TEXT_MAX];
    struct wait *w;

    barrier_text(id, round, text, sizeof(text));
    for (w = p->waits; w != NULL; w = w->next)
        if (w->job == j && w->node == node && strcmp(w->text, text) == 0)
            return w;
    if (p->wait_count >= WAITS_MAX) {
        p->left_out++;
        return NULL;
    }
    w = calloc(1, sizeof(*w));
    if (w == NULL)
        return NULL;
    w->job = j;
    w->node = node;
    w->ended = ended_then(p, j);
    w->in = calloc(j->size, sizeof(*w->in));
    memcpy(w->text, text, sizeof(text));
    w->pmix = id->set == BARRIER_SET_PMIX;
    if (w->in == NULL || buf_add(&w->group, id->group.p, id->group.n) < 0) {
        free(w->in);
        free(w);
        return NULL;
    }
    p->wait_count++;
    *p->tail = w;
    p->tail = &w->next;
    return w;
}

static uint32_t node_at(const struct root *r, uint32_t place)
{
    return r->first->job->node_at[place];
}

/* Of a barrier that lasts there. */
static void add_wait(const struct root_job *j, uint32_t place, const struct msg_in *m)
{
    struct barrier_id id;
    struct wait *w;
    uint64_t round;
    uint32_t *in;
    size_t n;

    if (barrier_read(m, &id, &round, NULL) < 0 || msg_get_u32v(m, "in", TASKS_MAX, &in, &n, NULL) < 0)
        return;
    w = wait_of(j->root->asked, j, &id, round, span_is(id.group, "NODE") ? node_at(j->root, place) : TREE_NONE);
    for (size_t i = 0; w != NULL && i < n; i++)
        if (in[i] < j->size)
            w->in[in[i]] = true;
    free(in);
}

static void add_stopped(const struct root_job *j, const struct msg_in *m)
{
    const struct report *p = j->root->asked;
    uint32_t *ranks = NULL;
    size_t n = 0;

    if (msg_get_u32v(m, "stopped", j->size, &ranks, &n, NULL) < 0)
        n = 0;
    for (unsigned i = 0; i < p->job_count; i++)
        for (size_t k = 0; p->job[i].job == j && k < n; k++)
            if (ranks[k] < j->size)
                p->job[i].stopped[ranks[k]] = true;
    free(ranks);
}

void root_reported(struct root_job *j, const struct msg_in *m)
{
    struct root *r = j->root;
    struct report *p = r->asked;
    uint64_t place, queued;

    if (p == NULL || msg_get_u64(m, "place", 0, places_of(r) - 1, &place, NULL) < 0)
        return;
    if (msg_get_u64(m, "queued", 0, UINT64_MAX, &queued, NULL) < 0) {
        add_wait(j, (uint32_t)place, m);
        return;
    }
    p->answers++;
    p->queued[place] = queued;
    add_stopped(j, m);
    if (j == r->first)
        p->answered[place] = true;
    /* From the loop, as our own node answers while it is being asked, and more jobs may be to be asked about. */
    if (p->answers >= p->asked)
        uv_timer_start(&r->report, on_report, 0, 0);
}

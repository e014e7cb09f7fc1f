/* SPDX-License-Identifier: BSD-3-Clause */
/* root_fault.c - messages that others wait for and that somebody had to refuse, or could not send
 *
 * What such a message says is lost, so the run ends. With --keep-going it goes on where only a barrier is concerned:
 * all of that job's barriers fail from then on, as its keys can be incomplete. That is done from the loop, as the
 * launcher's own node can be amidst the very barrier.
 */
#include <signal.h>
#include "common/io/log.h"
#include "server/fault.h"
#include "server/root_priv.h"

static const char *host_at(const struct root *r, uint32_t place)
{
    const struct job *j = r->first->job;
    int64_t node = -1;

    if (j->parent == NULL)
        node = r->ops->node_at(place, r->arg);
    else if (place < j->places)
        node = j->node_at[place];
    if (node >= 0 && node < r->plan->node_count)
        return r->plan->node[node].host;
    return place == 0 ? "the launcher" : "a node";
}

static const char *peer_of(const struct root *r, uint32_t place, uint32_t from)
{
    const struct job *j = r->first->job;

    if (from != FAULT_PARENT)
        return host_at(r, from);
    if (place == 0)
        return NULL; /* its own launcher */
    return j->parent == NULL || place >= j->places ? NULL : host_at(r, j->parent[place]);
}

static void on_faulty(uv_timer_t *t)
{
    struct root *r = t->data;

    if (r->faulty)
        root_end(r, SIGTERM);
    for (struct root_job *j = r->jobs; j != NULL; j = j->next)
        if (j->faulty && r->phase == ROOT_RUNNING)
            root_break_barriers(j);
}

static void blame(struct root *r, struct fault *f, uint32_t place)
{
    struct root_job *j = f->has_barrier ? root_job_numbered(r, f->job) : NULL;
    char text[ERR_TEXT_MAX];

    if (j != NULL && (j->faulty || j->broken_sent)) /* a consequence, or the same at another node */
        return;
    if (j != NULL && j == r->served)
        f->job = 0; /* people know of one alone */
    fault_text(f, host_at(r, place), f->from == FAULT_OWN ? NULL : peer_of(r, place, f->from), text, sizeof(text));
    root_blame(r, BLAME_STATUS, 1, text);
    if (!r->conf->keep_going || r->phase != ROOT_RUNNING)
        return;
    if (j != NULL)
        j->faulty = true;
    else
        r->faulty = true;
    uv_timer_start(&r->window, on_faulty, 0, 0); /* nothing else uses it with --keep-going */
}

void root_fault(struct root *r, const struct msg_in *m)
{
    struct fault f = {.from = FAULT_OWN};
    struct err err = {0};
    uint64_t place = NODES_MAX;

    if (msg_get_u64(m, "place", 0, NODES_MAX, &place, &err) < 0 || fault_read(m, &f, &err) < 0)
        f.text = span_of("it cannot go on"); /* whatever it says */
    blame(r, &f, (uint32_t)place);
}

void root_refuse(struct root *r, unsigned type, const struct err *why)
{
    struct fault f = {.from = FAULT_PARENT, .type = type, .text = span_of(why->text)};

    if (fault_is_awaited(type))
        blame(r, &f, 0);
}

void root_unsent(struct root *r, unsigned type, int rc)
{
    struct fault f = {.from = FAULT_OWN, .type = type};

    f.text = span_of(rc == -E2BIG ? "it is too long" : "out of memory");
    if (fault_is_awaited(type))
        blame(r, &f, 0);
}

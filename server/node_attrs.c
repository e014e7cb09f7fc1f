/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/node_attrs.h"

#include "common/io/log.h"
#include "common/util.h"
#include "server/blame.h"

#define CHECK_MS 100          /* who put one meanwhile needs no look */
#define ATTR_THREADS_MS 15000 /* without a request, until no other thread of a task is believed to put anything */

/* What may come of a task: nothing, as it is gone or waits itself; what another of its threads puts; what it does when
 * it is back (--serve); anything. */
enum may_put { PUTS_NONE, PUTS_BY_THREAD, PUTS_WHEN_BACK, PUTS_ANY };

/* `*key`: what it waits for. */
static enum may_put may_put(const struct task *t, struct span *key)
{
    enum may_put may = PUTS_NONE;
    bool threaded;

    *key = SPAN_NONE;
    if (node_task_is_gone(t))
        return PUTS_NONE;
    if (t->conns == NULL)
        return t->job->serve != NULL ? PUTS_WHEN_BACK : PUTS_ANY;
    for (const struct pmi_conn *c = t->conns; c != NULL; c = c->hh.next) {
        *key = session_awaits_attr(c->session, &threaded);
        if (key->p == NULL)
            return PUTS_ANY;
        if (threaded)
            may = PUTS_BY_THREAD;
    }
    return may;
}

static void say_attr(struct task *t, struct span key)
{
    struct err text = {0};

    err_set(&text, -EDEADLK, "waits for node attribute '%s', which nobody on its node can put any more",
            log_escape(key));
    node_task_failure(t, BLAME_UNFINALIZED, 1, text.text);
}

/* What is the most that may come? Where it is no more than what is not believed in, the wait is over; of several that
 * wait, for each other perhaps, one is named. */
static enum may_put judge_attrs(struct node_job *j, enum may_put disbelieved)
{
    enum may_put most = PUTS_NONE;
    struct span key = SPAN_NONE;
    struct task *who = NULL;

    for (uint32_t i = 0; i < j->task_count; i++) {
        struct span one;
        enum may_put may = may_put(&j->task[i], &one);

        most = MAX(most, may);
        if (who == NULL && one.p != NULL) {
            who = &j->task[i];
            key = one;
        }
    }
    if (who != NULL && most <= disbelieved) {
        say_attr(who, key);
        if (j->job->keep_going)
            attrs_give_up(j->attrs);
    }
    return most;
}

static void on_attr(uv_timer_t *h)
{
    struct node_job *j = h->data;

    if (!j->node->paused &&
        (judge_attrs(j, j->attr_late ? PUTS_BY_THREAD : PUTS_NONE) != PUTS_BY_THREAD || j->attr_late))
        return;
    j->attr_late = true;
    uv_timer_start(h, on_attr, ATTR_THREADS_MS, 0);
}

void node_attrs_absent(struct node_job *j)
{
    (void)judge_attrs(j, PUTS_WHEN_BACK);
}

void node_attrs_arm(struct node_job *j)
{
    j->attr_late = false;
    if (!j->closing && j->attrs != NULL && attrs_is_awaited(j->attrs))
        uv_timer_start(&j->attr, on_attr, CHECK_MS, 0);
}

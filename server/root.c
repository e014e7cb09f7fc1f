/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/root.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/log.h"
#include "server/pmix_store.h"
#include "server/root_priv.h"

#define BLAME_WINDOW_MS 250
#define GIVE_UP_MS 5000 /* a task that has not ended so long after KILL is given up, and output after a signal */

static void on_limit(uv_timer_t *t);
static void on_window(uv_timer_t *t);
static void on_kill(uv_timer_t *t);

void root_send_map(struct root *r, unsigned type, struct msg_out *m, bool data)
{
    struct span body;
    int rc = m == NULL ? -ENOMEM : msg_out_done(m, &body);

    if (rc == 0)
        r->ops->send(type, body, data, r->arg);
    else
        root_unsent(r, type, rc);
    msg_out_free(m);
}

/* --- output ----------------------------------------------------------------------------------------------------- */

static void describe(uint32_t task, struct outmux_task *out, void *arg)
{
    const struct root_job *j;
    uint32_t rank;

    j = root_job_at(arg, task, &rank);
    root_rank_name(j, rank, out->rank, sizeof(out->rank));
    out->host = root_host(j, rank);
    out->node = j->node_of[rank];
}

static void on_credit(uint32_t task, bool is_err, size_t bytes, void *arg)
{
    struct root *r = arg;
    const struct root_job *j;
    struct msg_out *m;
    uint32_t rank;

    /* Also for a rank that has ended: what it wrote last may still be in its pipe. */
    if (r->phase != ROOT_DONE && r->place_of != NULL) {
        j = root_job_at(r, task, &rank);
        m = root_job_map(j);
        if (m != NULL) {
            msg_put_u64(m, "place", r->place_of[j->node_of[rank]]);
            msg_put_u64(m, "rank", rank);
            msg_put_bool(m, "err", is_err);
            msg_put_u64(m, "bytes", bytes);
        }
        root_send_map(r, MSG_OUTPUT_CREDIT, m, false);
    }
    root_terminal_look(r, task);
    root_check_over(r);
}

static void on_broken(int fd, const struct err *why, void *arg)
{
    struct root *r = arg;

    if (fd == 2)
        return;
    if (fd == 1 && why->code == -EPIPE)
        root_decide(r, EXIT_CLOSED_OUTPUT, NULL);
    else
        root_decide(r, 1, why->text);
    root_end(r, SIGTERM);
}

static const struct outmux_ops out_ops = {.credit = on_credit, .on_broken = on_broken};

static int root_output(struct root_job *j, const struct msg_in *m, struct err *err)
{
    struct outmux *out = j->root->out;
    struct span data = SPAN_NONE;
    uint64_t rank;
    bool is_err, eof = false;
    int rc;

    if ((rc = msg_get_u64(m, "rank", 0, j->size - 1, &rank, err)) < 0 ||
        (rc = msg_get_bool(m, "err", &is_err, err)) < 0)
        return rc;
    (void)msg_get_bool(m, "eof", &eof, NULL);
    if (eof) {
        outmux_eof(out, j->base + (uint32_t)rank, is_err);
        if (!is_err && j->job->pty && (int)rank == j->job->input)
            j->root->terminal_eof = true;
        root_terminal_look(j->root, j->base + (uint32_t)rank);
        return 0;
    }
    if ((rc = msg_get_bin(m, "data", &data, err)) < 0)
        return rc;
    rc = outmux_data(out, j->base + (uint32_t)rank, is_err, data);
    root_terminal_look(j->root, j->base + (uint32_t)rank);
    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}

/* --- the way to the end ----------------------------------------------------------------------------------------- */

static int result(const struct root *r)
{
    if (r->final)
        return r->final_status;
    if (r->conf->keep_going && r->blame.kind != BLAME_ABORT)
        return r->blame.highest;
    return r->blame.kind == BLAME_NONE ? 0 : r->blame.status;
}

/* Everything is written and every node is through. */
static void over(struct root *r)
{
    if (r->phase == ROOT_DONE)
        return;
    r->phase = ROOT_DONE;
    uv_timer_stop(&r->limit);
    uv_timer_stop(&r->window);
    uv_timer_stop(&r->kill);
    root_report_now(r);
    root_pmix_singletons(r);
    if (!r->final && !r->conf->keep_going) {
        if (r->blame.kind == BLAME_LOST && r->lost_count > 0)
            root_say_lost(r);
        else if (r->blame.kind != BLAME_NONE)
            log_error("%s", r->blame.text);
    }
    r->ops->on_done(result(r), r->arg);
}

void root_check_over(struct root *r)
{
    if (r->phase == ROOT_DRAINING && r->finished && outmux_is_idle(r->out))
        over(r);
}

void root_finished(struct root *r)
{
    if (r->phase == ROOT_DONE)
        return;
    r->phase = ROOT_DRAINING;
    r->finished = true;
    outmux_flush(r->out);
    root_check_over(r);
}

static void on_drained_enough(uv_timer_t *t)
{
    over(t->data);
}

void root_drain(struct root *r)
{
    if (r->phase >= ROOT_DRAINING)
        return;
    r->phase = ROOT_DRAINING;
    uv_timer_stop(&r->kill);
    if (r->hurry)
        uv_timer_start(&r->kill, on_drained_enough, GIVE_UP_MS, 0);
    root_input_stop(r->input);
    root_send_map(r, MSG_END, msg_out_new(), false);
    /* Every node drains within its own limits, unless our own output is what holds it up: that may take any time,
     * unless there is a hurry. */
}

static void send_signal(struct root *r, int sig)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL)
        msg_put_u64(m, "signal", (uint64_t)sig);
    root_send_map(r, MSG_SIGNAL, m, false);
}

static void on_give_up(uv_timer_t *t)
{
    struct root *r = t->data;

    root_say_given_up(r);
    over(r);
}

static void on_kill(uv_timer_t *t)
{
    struct root *r = t->data;

    send_signal(r, SIGKILL);
    uv_timer_start(t, on_give_up, GIVE_UP_MS, 0);
}

void root_end(struct root *r, int sig)
{
    if (r->phase >= ROOT_ENDING)
        return;
    if (r->phase == ROOT_STARTING)
        r->ops->start_over(r->arg);
    if (r->phase < ROOT_RUNNING) {
        root_drain(r);
        return;
    }
    r->phase = ROOT_ENDING;
    for (struct root_job *j = r->jobs; j != NULL; j = j->next)
        if (j->id > 0 && j->state == JOB_PREPARING) /* it is not let go any more */
            root_job_over(j);
    send_signal(r, sig);
    if (sig == SIGKILL)
        uv_timer_start(&r->kill, on_give_up, GIVE_UP_MS, 0);
    else
        uv_timer_start(&r->kill, on_kill, r->conf->kill_grace_ms, 0);
}

void root_decide(struct root *r, int status, const char *text)
{
    if (r->final)
        return;
    r->final = true;
    r->final_status = status;
    if (text != NULL)
        log_error("%s", text);
}

static void on_window(uv_timer_t *t)
{
    root_end(t->data, SIGTERM);
}

void root_blame(struct root *r, enum blame_kind kind, int status, const char *text)
{
    bool first;

    if (r->phase == ROOT_ENDING || r->phase == ROOT_DONE || r->final)
        return;
    first = blame_add(&r->blame, kind, status, text);
    if (r->conf->keep_going && kind != BLAME_ABORT) {
        log_error("%s", text);
        if (r->phase < ROOT_RUNNING) /* nothing runs that could go on */
            root_end(r, SIGTERM);
        return;
    }
    if (kind == BLAME_ABORT) {
        if (r->conf->keep_going)
            log_error("%s", text);
        root_end(r, SIGTERM);
    } else if (first && r->phase == ROOT_RUNNING) {
        uv_timer_start(&r->window, on_window, BLAME_WINDOW_MS, 0);
    } else if (r->phase < ROOT_RUNNING) {
        root_end(r, SIGTERM);
    }
}

static void on_limit(uv_timer_t *t)
{
    struct root *r = t->data;

    r->hurry = true;
    if (r->phase == ROOT_DRAINING) {
        if (!r->final && r->blame.kind == BLAME_NONE)
            root_say_time(r);
        over(r);
    } else if (!r->final && r->phase < ROOT_ENDING) {
        root_limit(r);
    }
}

/* --- messages --------------------------------------------------------------------------------------------------- */

/* What is about one job. */
static int job_up(struct root_job *j, unsigned type, const struct msg_in *m, struct err *err)
{
    switch (type) {
    case MSG_READY:
        root_ready(j->root, j, m);
        break;
    case MSG_OUTPUT:
        return root_output(j, m, err);
    case MSG_EXITED:
        return root_exited(j, m, err);
    case MSG_FAILED:
        return root_failed(j, m, err);
    case MSG_START_FAILED:
        return root_start_refused(j, m, err);
    case MSG_STARTED:
        return root_spawn_started(j, m, err);
    case MSG_LEFT:
        root_left(j);
        break;
    case MSG_WAITS:
        return root_waits(j, m, err);
    case MSG_STUCK:
        return root_stuck(j, m, err);
    case MSG_TRACE:
        root_trace(j, m);
        break;
    case MSG_INPUT_CREDIT:
        return j->id == 0 ? root_input_credit(j->root->input, m, err) : 0;
    case MSG_SLOW:
        root_slow(j, m);
        break;
    case MSG_REPORT:
        root_reported(j, m);
        break;
    case MSG_CAME:
        root_came(j, m);
        break;
    case MSG_PMIX_CAME:
        root_pmix_came(j);
        break;
    default: /* of a later version */
        break;
    }
    return 0;
}

static int up(struct root *r, unsigned type, const struct msg_in *m, struct err *err)
{
    struct root_job *j;

    switch (type) {
    case MSG_NODE_LOST:
        return root_place_lost(r, m, err);
    case MSG_LEAVING:
        return root_place_leaves(r, m, err);
    case MSG_LOG:
        root_log(r, m);
        return 0;
    case MSG_NAME:
        return root_name(r, m, err);
    case MSG_SPAWN:
        return root_spawn(r, m, err);
    case MSG_PMIX_ASK:
        return root_pmix_ask(r, m, err);
    case MSG_PMIX_GOT:
        return root_pmix_got(r, m, err);
    case MSG_PMIX_EVENT:
        return root_pmix_event(r, m, err);
    case MSG_FAULT:
        root_fault(r, m);
        return 0;
    case MSG_FINISHED: /* comes as root_finished() */
        return 0;
    default:
        j = root_job_of(r, m);
        return j == NULL ? err_set(err, -EPROTO, "it is of no job of this run") : job_up(j, type, m, err);
    }
}

void root_up(struct root *r, unsigned type, struct span body)
{
    struct msg_in *m = NULL;
    struct err err = {0};
    int rc;

    if (r->phase == ROOT_DONE)
        return;
    rc = msg_in_new(&m, body, &err);
    if (rc == 0)
        rc = up(r, type, m, &err);
    if (rc < 0)
        root_refuse(r, type, &err);
    msg_in_free(m);
}

/* --- signals ---------------------------------------------------------------------------------------------------- */

static void end_by_signal(struct root *r, int sig)
{
    bool again = ++r->signals > 1;

    r->hurry = true;
    if (!again && !r->final && r->phase == ROOT_RUNNING) /* ahead of the signal, which ends the waiting */
        root_ask(r, ASK_SIGNAL, sig);
    else if (!again && !r->final && r->phase < ROOT_RUNNING)
        root_say_start_ended(r, sig);
    root_decide(r, 128 + sig, NULL);
    if (r->phase < ROOT_ENDING) {
        root_end(r, sig);
    } else if (r->phase == ROOT_ENDING && again) { /* for the first time, a failure was ending it already */
        uv_timer_stop(&r->kill);
        on_kill(&r->kill);
    } else if (r->phase == ROOT_DRAINING) { /* the user does not wait for the rest of the output */
        over(r);
    }
}

void root_signal(struct root *r, int sig)
{
    if (sig == SIGINT || sig == SIGTERM || sig == SIGHUP)
        end_by_signal(r, sig);
    else if (sig == SIGQUIT)
        root_state(r);
    else if (r->phase == ROOT_RUNNING || r->phase == ROOT_ENDING)
        send_signal(r, sig);
}

/* --- life ------------------------------------------------------------------------------------------------------- */

static void root_free(struct root *r)
{
    root_jobs_free(r);
    names_free(r->names);
    pmix_store_free(r->published);
    for (uint32_t i = 0; i < r->lost_count; i++)
        free(r->lost_why[i]);
    free(r->lost);
    free(r->lost_why);
    free(r->place_of);
    free(r->place_lost);
    root_report_free(r);
    if (r->trace != NULL && r->trace != stderr)
        fclose(r->trace);
    free(r);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct root *r = h->data;

    if (--r->handles == 0)
        root_free(r);
}

void root_close(struct root *r)
{
    if (r == NULL)
        return;
    root_input_close(r->input);
    r->input = NULL;
    outmux_close(r->out);
    uv_timer_t *timers[] = {&r->limit, &r->window, &r->kill, &r->lookup, &r->report, &r->terminal};
    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
        uv_close((uv_handle_t *)timers[i], on_timer_closed);
}

static int open_streams(struct root *r, const struct root_conf *conf, struct err *err)
{
    struct outmux_conf oc = {
        .size = r->plan->size,
        .label = r->conf->label,
        .output = r->conf->output,
        .error = r->conf->error,
        .terminal = conf->terminal != NULL ? r->first->job->input : -1,
        .describe = describe,
    };
    struct root_input_conf ic = {.size = r->plan->size,
                                 .input = conf->input_handed ? INPUT_NONE : r->first->job->input,
                                 .terminal = conf->terminal,
                                 .root = r};
    int rc = outmux_open(r->loop, &oc, &out_ops, r, &r->out, err);

    return rc < 0 ? rc : root_input_open(r->loop, &ic, &r->input, err);
}

static void init_timers(struct root *r)
{
    uv_timer_t *timers[] = {&r->limit, &r->window, &r->kill, &r->lookup, &r->report, &r->terminal};

    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++) {
        uv_timer_init(r->loop, timers[i]);
        timers[i]->data = r;
        r->handles++;
    }
}

int root_open(uv_loop_t *loop, struct root_conf *conf, const struct root_ops *ops, void *arg, struct root **out,
              struct err *err)
{
    struct root *r = calloc(1, sizeof(*r));
    int rc;

    if (r == NULL) {
        job_free(conf->job);
        return err_set(err, -ENOMEM, "out of memory");
    }
    *r = (struct root){.loop = loop, .conf = conf->conf, .plan = conf->plan, .ops = ops, .arg = arg};
    r->first = root_job_new(r, conf->job);
    r->names = names_new();
    r->published = root_pmix_store(r);
    init_timers(r);
    rc = r->first == NULL || r->names == NULL || r->published == NULL ? err_set(err, -ENOMEM, "out of memory")
                                                                      : root_trace_open(r, err);
    if (rc == 0)
        rc = open_streams(r, conf, err);
    if (rc < 0) {
        root_close(r);
        return rc;
    }
    if (r->conf->timeout_ms > 0)
        uv_timer_start(&r->limit, on_limit, r->conf->timeout_ms, 0);
    *out = r;
    return 0;
}

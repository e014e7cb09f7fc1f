/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/launcher.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/hostlist.h"
#include "common/io/addrs.h"
#include "common/io/log.h"
#include "common/limits.h"
#include "common/strv.h"
#include "config.h"
#include "server/job_make.h"
#include "common/msg.h"
#include "server/launcher_priv.h"
#include "server/pmix_host.h"
#include "server/process.h"
#include "server/provider.h"
#include "server/secret.h"

#define PROGRESS_FIRST_MS 2000
#define PROGRESS_EVERY_MS 5000
/* When every node is through: how long logins that stay open may take to end by themselves. */
#define LAST_MS 3000

/* --- the end ---------------------------------------------------------------------------------------------------- */

static void tear_down(struct launcher *l)
{
    if (l->torn_down)
        return;
    l->torn_down = true;
    uv_close((uv_handle_t *)&l->progress, NULL);
    uv_close((uv_handle_t *)&l->last, NULL);
    uv_close((uv_handle_t *)&l->stop, NULL);
    boot_close(l->boot);
    l->boot = NULL;
    join_root_close(l->join);
    l->join = NULL;
    launcher_tree_close(l);
    node_close(l->node);
    root_close(l->root);
    spawner_close(l->spawner);
    launcher_signals_close(l);
}

static void on_last(uv_timer_t *t)
{
    tear_down(t->data);
}

static void check_end(struct launcher *l)
{
    if (l->closing && l->links_closed && l->boot_running == 0)
        tear_down(l);
}

/* Those who came by themselves end as the run has. */
static void tell_status(struct launcher *l)
{
    struct msg_out *m = msg_out_new();
    struct span body;

    if (m != NULL)
        msg_put_u64(m, "status", (uint64_t)l->status);
    if (m != NULL && msg_out_done(m, &body) == 0) {
        node_down(l->node, MSG_STATUS, body);
        join_root_tell(l->join, MSG_STATUS, body);
    }
    msg_out_free(m);
}

void launcher_finish(struct launcher *l, int status)
{
    if (l->closing)
        return;
    l->closing = true;
    l->status = status;
    terminal_set_raw(&l->terminal, false);
    if (l->join != NULL && launcher_by_secret(l))
        tell_status(l);
    (void)launcher_stop_listening(l);
    uv_timer_start(&l->last, on_last, LAST_MS, 0);
    links_finish(l->links, true); /* without an edge this tears all down */
    check_end(l);
}

/* --- root ------------------------------------------------------------------------------------------------------- */

static void root_send(unsigned type, struct span body, bool data, void *arg)
{
    (void)data;
    launcher_tell_traffic(arg, type);
    node_down(((struct launcher *)arg)->node, type, body);
}

static void root_done(int status, void *arg)
{
    struct launcher *l = arg;

    launcher_tell_traffic(l, 0);
    launcher_finish(l, status);
}

static void root_waiting(struct buf *names, uint32_t *joined, uint32_t *total, void *arg)
{
    struct launcher *l = arg;

    *total = l->plan->node_count;
    *joined = *total - launcher_waiting(l, names);
}

static int64_t root_node_at(uint32_t place, void *arg)
{
    struct launcher *l = arg;

    if (l->tree != NULL)
        return launcher_tree_node_at(l, place);
    return l->join != NULL ? join_root_node_at(l->join, place) : -1;
}

/* The start has failed, perhaps as there were too many of them. Those with whom something else was wrong may have been
 * the providers themselves, and whatever that was has been said. */
static void tell_crowd(const struct launcher *l)
{
    if (l->strangers.crowded > 0)
        root_tell_strangers(l->strangers.crowded + l->strangers.rejected);
}

/* All are in, or the start has failed. */
static void root_start_over(void *arg)
{
    struct launcher *l = arg;

    uv_timer_stop(&l->progress);
    l->strangers = launcher_stop_listening(l);
    if (l->boot == NULL)
        return;
    if (boot_waiting(l->boot) == 0) {
        boot_done(l->boot);
    } else {
        tell_crowd(l);
        boot_close(l->boot);
        l->boot = NULL;
    }
}

static const struct root_ops root_ops = {.send = root_send,
                                         .on_done = root_done,
                                         .waiting = root_waiting,
                                         .node_at = root_node_at,
                                         .start_over = root_start_over,
                                         .traffic = launcher_traffic};

/* --- own node, edges, processes --------------------------------------------------------------------------------- */

static void node_send_up(unsigned type, struct span body, bool data, void *arg)
{
    (void)data;
    root_up(((struct launcher *)arg)->root, type, body);
}

static bool node_up_full(void *arg)
{
    (void)arg;
    return false; /* credit alone bounds what our own tasks write */
}

static void node_finished(void *arg)
{
    root_finished(((struct launcher *)arg)->root);
}

/* The listener has closed before the job was sent. */
static uint64_t node_all_in(void *arg)
{
    const struct launcher *l = arg;

    return l->strangers.crowded + l->strangers.rejected;
}

static const struct node_ops node_ops = {
    .send_up = node_send_up, .up_full = node_up_full, .all_in = node_all_in, .on_finished = node_finished};

static void on_msg(uint32_t place, unsigned type, struct span body, void *arg)
{
    struct launcher *l = arg;

    if (type == MSG_LISTENING && l->join != NULL)
        join_root_msg(l->join, place, type, body);
    else if (!launcher_tree_msg(l, place, type, body))
        node_up(l->node, place, type, body);
}

static void on_lost(uint32_t place, const struct err *why, void *arg)
{
    struct launcher *l = arg;

    if (!launcher_tree_lost(l, place, why))
        node_child_lost(l->node, place, why);
}

static void on_drain(uint32_t place, void *arg)
{
    node_drain(((struct launcher *)arg)->node, place);
}

static void on_links_closed(void *arg)
{
    struct launcher *l = arg;

    l->links_closed = true;
    check_end(l);
}

static const struct links_ops links_ops = {
    .on_msg = on_msg, .on_lost = on_lost, .on_drain = on_drain, .on_closed = on_links_closed};

static void on_started(uint32_t id, pid_t pid, void *arg)
{
    if (id < BOOT_ID_BASE)
        node_task_started(((struct launcher *)arg)->node, id, pid);
}

static void boot_over(struct launcher *l, uint32_t id, int err_no, int wstatus)
{
    l->boot_running--;
    if (l->boot != NULL && err_no != 0)
        boot_not_started(l->boot, id, err_no);
    else if (l->boot != NULL)
        boot_exited(l->boot, id, wstatus);
    check_end(l);
}

static void on_failed(uint32_t id, enum spawn_stage stage, int err_no, void *arg)
{
    struct launcher *l = arg;

    if (id < BOOT_ID_BASE)
        node_task_failed(l->node, id, stage, err_no);
    else
        boot_over(l, id, err_no, 0);
}

static void on_exited(uint32_t id, pid_t pid, int wstatus, void *arg)
{
    struct launcher *l = arg;

    (void)pid;
    if (id < BOOT_ID_BASE)
        node_task_exited(l->node, id, wstatus);
    else
        boot_over(l, id, 0, wstatus);
}

static void on_keeper_lost(void *arg)
{
    struct launcher *l = arg;
    const char *why = spawner_why_lost(l->spawner); /* the next call reaps it */

    (void)descendants_kill_all(DESCENDANTS_KILL_MS);
    if (!l->closing) { /* else how the run went has been said */
        log_error("%s: lost: %s", l->plan->self >= 0 ? l->plan->node[l->plan->self].host : "launcher", why);
        launcher_finish(l, EXIT_HOST);
    }
    tear_down(l);
}

static const struct spawn_ops spawn_ops = {
    .on_started = on_started, .on_failed = on_failed, .on_exited = on_exited, .on_lost = on_keeper_lost};

/* --- progress --------------------------------------------------------------------------------------------------- */

static void on_progress(uv_timer_t *t)
{
    struct launcher *l = t->data;
    struct buf names;
    uint32_t waiting;

    buf_init(&names, 0);
    waiting = launcher_waiting(l, &names);
    if (waiting > 0)
        log_error("starting %u/%u hosts (waiting for %s)", l->plan->node_count - waiting, l->plan->node_count,
                  buf_str(&names));
    buf_done(&names);
}

/* --- life ------------------------------------------------------------------------------------------------------- */

/* --pty without one is refused with the other things about the job. */
static bool has_terminal(const struct launcher *l)
{
    return l->conf->pty && isatty(0) == 1;
}

static int open_parts(struct launcher *l, int keeper_fd, struct err *err)
{
    struct node_conf nc = {.place = 0, .stdin_fd = 0};
    struct root_conf rc_conf = {.conf = l->conf, .plan = l->plan};
    struct job_world world = {.envp = l->envp, .limits = &l->limits, .input_is_terminal = isatty(0) == 1};
    int rc = spawner_open(&l->loop, keeper_fd, l->keeper_pid, &spawn_ops, l, &l->spawner, err);

    if (rc < 0)
        return rc;
    if (has_terminal(l)) {
        terminal_size(&l->terminal, &world.rows, &world.cols);
        rc_conf.terminal = &l->terminal;
    }
    nc.links = l->links = links_new(&links_ops, l);
    nc.spawner = l->spawner;
    nc.serve = &l->serve;
    if (l->links != NULL)
        l->node = node_new(&l->loop, &nc, &node_ops, l);
    if (l->node == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    if (l->conf->serve_count > 0 && (rc = launcher_serve(l, err)) < 0)
        return rc;
    rc = job_make(l->conf, l->plan, &world, &rc_conf.job, err);
    if (rc < 0)
        return rc;
    rc_conf.input_handed = rc_conf.job->input_handed;
    rc = root_open(&l->loop, &rc_conf, &root_ops, l, &l->root, err);
    return rc < 0 ? rc : launcher_signals_open(l, err);
}

static void launcher_free(struct launcher *l)
{
    links_free(l->links);
    launcher_tree_free(l);
    tls_ctx_unref(l->ctx);
    strv_free(l->addrs);
    free(l->self_path);
    free(l->script);
    free(l->srun);
    plan_free(l->plan);
    conf_free(l->conf);
}

static int run(struct launcher *l, int keeper_fd)
{
    struct err err = {0};
    int rc = process_loop_init(&l->loop);

    if (rc < 0) {
        log_error("cannot make an event loop: %s", uv_strerror(rc));
        return 1;
    }
    uv_timer_init(&l->loop, &l->progress);
    uv_timer_init(&l->loop, &l->last);
    uv_timer_init(&l->loop, &l->stop);
    l->progress.data = l->last.data = l->stop.data = l;
    rc = open_parts(l, keeper_fd, &err);
    if (rc == 0 && isatty(STDERR_FILENO) == 1 && l->conf->verbose >= 0)
        uv_timer_start(&l->progress, on_progress, PROGRESS_FIRST_MS, PROGRESS_EVERY_MS);
    if (rc == 0)
        rc = launcher_start(l, &err);
    if (rc < 0) {
        log_error("%s", err.text);
        launcher_finish(l, rc == -EINVAL ? EXIT_USAGE : 1);
        tear_down(l);
    }
    uv_run(&l->loop, UV_RUN_DEFAULT);
    rc = uv_loop_close(&l->loop);
    assert(rc == 0);
    process_end_keeper(l->keeper_pid);
    return l->status;
}

static int print_hosts(const struct launcher *l)
{
    struct hostlist *hl = l->conf->hosts;
    struct buf b;

    if (hl != NULL && l->conf->nodes > 0)
        hostlist_truncate(hl, l->conf->nodes);
    buf_init(&b, 0);
    if (l->conf->action == ACTION_PRINT_HOSTS_FOLDED && hl != NULL) {
        (void)hostlist_fold(hl, true, &b);
        (void)buf_add(&b, "\n", 1);
    }
    for (size_t i = 0; l->conf->action == ACTION_PRINT_HOSTS && hl != NULL && i < hostlist_count(hl); i++) {
        (void)buf_add_str(&b, hostlist_get(hl, i).name);
        (void)buf_add(&b, "\n", 1);
    }
    fwrite(b.p, 1, b.len, stdout);
    buf_done(&b);
    return 0;
}

/* What was printed has to have arrived. */
static int flushed(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    log_error("cannot write standard output: %s", strerror(errno));
    return 1;
}

/* What is asked for is no run. -1: it is one. */
static int other_action(struct launcher *l, struct err *err)
{
    char *text;

    switch (l->conf->action) {
    case ACTION_HELP:
        fputs(conf_help(), stdout);
        return 0;
    case ACTION_VERSION:
        puts("pmi-start " PACKAGE_VERSION);
        return 0;
    case ACTION_PRINT_HOSTS:
    case ACTION_PRINT_HOSTS_FOLDED:
        return print_hosts(l);
    case ACTION_PRINT_CONFIG:
        text = conf_print(l->conf);
        if (text == NULL)
            return 1;
        fputs(text, stdout);
        free(text);
        return 0;
    case ACTION_NEW_SECRET:
        if (secret_make(l->conf->new_secret, err) == 0)
            return 0;
        log_error("%s", err->text);
        return EXIT_USAGE;
    default:
        return -1;
    }
}

/* By hand only the launcher knows; but all pods are told the same. */
static bool has_plan(const struct conf *conf)
{
    return !conf_joins(conf) || conf->bootstrap == BOOT_K8S;
}

static int plan_it(struct launcher *l, struct err *err)
{
    char host[256] = "localhost";

    (void)gethostname(host, sizeof(host) - 1);
    return plan_make(l->conf, addrs_is_self, host, &l->plan, err);
}

static int start_keeper(struct launcher *l, int *fd, struct err *err)
{
    bool tty = has_terminal(l);

    if (tty && terminal_open(&l->terminal, 0, err) < 0)
        return -ENOTTY;
    return keeper_fork(tty ? &l->terminal.before : NULL, fd, &l->keeper_pid, err);
}

static int refuse_to_start(const struct err *err)
{
    log_error("%s", err->text);
    return err->code == -ENOMEM ? 1 : EXIT_USAGE;
}

int launcher_main(int argc, char **argv, char **envp)
{
    struct launcher l = {.envp = envp};
    struct err err = {0};
    int keeper_fd, status;

    task_limits_capture(&l.limits);
    if (conf_load(argc, argv, envp, &l.conf, &err) < 0)
        return refuse_to_start(&err);
    log_set_level((enum log_level)(l.conf->verbose + 1));
    status = other_action(&l, &err);
    if (status >= 0)
        status = flushed(status);
    if (status < 0 && has_plan(l.conf) &&
        (plan_it(&l, &err) < 0 || conf_check_interface(l.conf, addrs_is_self, &err) < 0))
        status = refuse_to_start(&err);
    if (status < 0 && conf_joins(l.conf)) {
        status = provider_join(l.conf);
    } else if (status < 0) {
        (void)signal(SIGPIPE, SIG_IGN);
        (void)signal(SIGXFSZ, SIG_IGN); /* a write that is refused says why */
        process_raise_limits();         /* the keeper needs them too */
        if (start_keeper(&l, &keeper_fd, &err) < 0) {
            log_error("%s", err.text);
            status = 1;
        } else {
            process_protect();
            status = run(&l, keeper_fd);
        }
    }
    launcher_free(&l);
    log_flush();
    launcher_signals_last(&l, status);
    if (pmix_host_is_left()) /* its threads use what exit() would take away */
        _exit(status);
    return status;
}

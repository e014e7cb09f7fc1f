/* SPDX-License-Identifier: BSD-3-Clause */
/* provider.c - one node's process: say the key, join, run the node's part of the job, end with the parent
 *
 * The process that the login started forks the worker and waits: it exits when the worker says that it has joined
 * (detached), so that the login ends, and otherwise with the worker's status. Attached, it is the worker itself.
 */
#include "server/provider_priv.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/limits.h"
#include "common/msg.h"
#include "server/fault.h"
#include "server/pmix_host.h"
#include "server/process.h"
#include "server/root.h"
#include "server/secret.h"

#define KEY_LINE_EVERY_MS 2000

/* --- the login -------------------------------------------------------------------------------------------------- */

/* What the login started: wait until the worker has joined or ended. */
static int wait_for_worker(pid_t worker, int pipe_fd)
{
    struct pollfd pfd = {.fd = pipe_fd, .events = POLLIN};
    int status;
    char joined;

    while (poll(&pfd, 1, -1) < 0 && errno == EINTR) {
    }
    if (read(pipe_fd, &joined, 1) == 1)
        return 0;
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* In the parent: does not return. In the child: 0, and *done is the writing end. */
static int fork_worker(int *done, struct err *err)
{
    int p[2];
    pid_t pid;

    if (pipe2(p, O_CLOEXEC) < 0)
        return err_set(err, -errno, "cannot make a pipe: %s", strerror(errno));
    pid = fork();
    if (pid < 0) {
        int rc = -errno;

        close(p[0]);
        close(p[1]);
        return err_set(err, rc, "cannot fork: %s", strerror(-rc));
    }
    if (pid > 0) {
        close(p[1]);
        _exit(wait_for_worker(pid, p[0]));
    }
    close(p[0]);
    *done = p[1];
    (void)setsid();
    return 0;
}

/* Keep the login's output for ourselves alone, above the standard descriptors, which become /dev/null. */
static void take_login(struct provider *p)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    p->login_out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    p->login_err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        (void)dup2(null, fd);
    if (null > 2)
        close(null);
}

/* Without having joined the login's process ends with our exit status. */
static void leave_login(struct provider *p, bool joined)
{
    if (p->login_done >= 0) {
        if (joined)
            (void)!write(p->login_done, "j", 1);
        close(p->login_done);
    }
    if (p->login_out >= 0)
        close(p->login_out);
    if (p->login_err >= 0)
        close(p->login_err);
    p->login_done = p->login_out = p->login_err = -1;
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

void provider_end(struct provider *p, int status)
{
    if (p->closing)
        return;
    p->closing = true;
    p->status = status;
    uv_close((uv_handle_t *)&p->key_line, NULL);
    leave_close(&p->leave);
    if (p->reaps)
        uv_close((uv_handle_t *)&p->strays, NULL);
    log_set_sink(NULL, NULL);
    links_finish(p->links, true);
    provider_logins_close(p->logins);
    join_node_close(p->join);
    node_close(p->node);
    spawner_close(p->spawner);
}

void provider_say(struct provider *p, const char *text)
{
    if (p->login_err >= 0 && p->conf->name != NULL) /* as pdsh puts it, where srun would not */
        dprintf(p->login_err, "%s: pmi-start: %s\n", p->conf->name, text);
    else if (p->login_err >= 0)
        dprintf(p->login_err, "pmi-start: %s\n", text);
    else
        log_error("%s", text);
}

/* We are slow to join. The launcher knows no more of that than that we have started, until this comes over the login.
 * */
static void say_what_hinders(struct provider *p)
{
    struct buf state = {0};

    join_node_state(p->join, &state);
    if (state.len > 0 && buf_str(&state) != NULL)
        provider_say(p, state.p);
    buf_done(&state);
}

static void on_key_line(uv_timer_t *t)
{
    struct provider *p = t->data;
    char line[256];
    int n = snprintf(line, sizeof(line), "\npmi-start-provider 1 run=%u index=%u key=%s\n", p->conf->run, p->conf->rank,
                     tls_ctx_key(p->ctx));

    if (p->login_out >= 0 && write(p->login_out, line, (size_t)n) < 0 && errno != EAGAIN && errno != EINTR)
        provider_end(p, 1); /* the login is gone: nobody waits for us, and nobody would hear a reason */
    else if (p->key_lines++ > 0)
        say_what_hinders(p);
}

/* --- joining ---------------------------------------------------------------------------------------------------- */

static void log_to_root(enum log_level level, const char *line, void *arg)
{
    struct provider *p = arg;
    struct msg_out *m = msg_out_new();
    struct span body;

    if (m != NULL) {
        msg_put_u64(m, "level", level);
        msg_put_u64(m, "node", p->node_id);
        msg_put_str(m, "line", line);
        if (msg_out_done(m, &body) == 0)
            (void)links_send(p->links, LINKS_PARENT, MSG_LOG, body, false);
    }
    msg_out_free(m);
}

static void send_up(unsigned type, struct span body, bool data, void *arg)
{
    struct provider *p = arg;

    (void)links_send(p->links, LINKS_PARENT, type, body, data);
}

static bool up_full(void *arg)
{
    struct provider *p = arg;

    return links_up_full(p->links);
}

static void on_finished(void *arg)
{
    struct provider *p = arg;

    p->finished = true; /* the parent closes when it has heard so from all of its children */
}

static uint64_t all_in(void *arg)
{
    struct provider *p = arg;

    return join_node_all_in(p->join) + provider_logins_all_in(p->logins);
}

static const struct node_ops node_ops = {
    .send_up = send_up, .up_full = up_full, .all_in = all_in, .on_finished = on_finished};

static void on_joined(uint32_t node, uint32_t place, void *arg)
{
    struct provider *p = arg;
    struct node_conf nc = {.place = place, .links = p->links, .spawner = p->spawner, .stdin_fd = -1};

    p->node_id = node;
    p->place = place;
    uv_timer_stop(&p->key_line);
    p->node = node_new(&p->loop, &nc, &node_ops, p);
    if (p->node == NULL || provider_make_logins(p) < 0) {
        provider_say(p, "out of memory");
        provider_end(p, 1);
        return;
    }
    log_set_sink(log_to_root, p);
    if (p->login_done >= 0)
        leave_login(p, true);
}

static void on_wired(void *arg)
{
    (void)arg;
}

static void on_status(struct span body, void *arg)
{
    struct provider *p = arg;
    struct msg_in *m;
    uint64_t status;

    if (msg_in_new(&m, body, NULL) < 0)
        return;
    if (msg_get_u64(m, "status", 0, 255, &status, NULL) == 0)
        p->run_status = (int)status;
    msg_in_free(m);
}

static void on_join_failed(const struct err *why, void *arg)
{
    struct provider *p = arg;

    if (p->run_status >= 0) {
        provider_end_as_run(p);
        return;
    }
    if (p->conf->join != NULL) {
        provider_cannot_join(p, why);
        return;
    }
    provider_say(p, why->text);
    provider_end(p, 1);
}

static const struct join_node_ops join_ops = {
    .on_joined = on_joined, .on_wired = on_wired, .on_status = on_status, .on_failed = on_join_failed};

/* --- edges and processes ---------------------------------------------------------------------------------------- */

static void on_msg(uint32_t place, unsigned type, struct span body, void *arg)
{
    struct provider *p = arg;
    struct logins *logins = provider_logins_of(p->logins);
    struct err err = {0};
    int rc = 0;

    if (place == LINKS_PARENT && type == MSG_STATUS)
        on_status(body, p);
    if (place == LINKS_PARENT && type == MSG_SHARE && p->logins != NULL)
        rc = provider_logins_share(p->logins, body, &err);
    else if (place != LINKS_PARENT && logins != NULL && logins_is_msg(type))
        rc = logins_msg(logins, place, type, body, &err);
    else if (place == LINKS_PARENT)
        node_down(p->node, type, body);
    else
        node_up(p->node, place, type, body);
    if (rc < 0)
        node_refuse(p->node, place == LINKS_PARENT ? FAULT_PARENT : place, type, &err);
}

static void on_lost(uint32_t place, const struct err *why, void *arg)
{
    struct provider *p = arg;

    if (place != LINKS_PARENT && provider_logins_of(p->logins) != NULL &&
        logins_child_lost(provider_logins_of(p->logins), place, why))
        return;
    if (place != LINKS_PARENT) {
        node_child_lost(p->node, place, why);
        return;
    }
    if (p->run_status >= 0) {
        provider_end_as_run(p);
        return;
    }
    if (p->conf->join != NULL) {
        provider_lost_launcher(p, why);
        return;
    }
    if (!p->finished)
        log_debug("the parent is lost: %s", why->text);
    provider_end(p, p->finished ? 0 : 1);
}

static void on_drain(uint32_t place, void *arg)
{
    struct provider *p = arg;

    if (p->node != NULL)
        node_drain(p->node, place);
}

static void on_links_closed(void *arg)
{
    (void)arg;
}

static const struct links_ops links_ops = {
    .on_msg = on_msg, .on_lost = on_lost, .on_drain = on_drain, .on_closed = on_links_closed};

static void on_started(uint32_t id, pid_t pid, void *arg)
{
    if (id < SPAWN_ID_KEPT)
        node_task_started(((struct provider *)arg)->node, id, pid);
}

static void on_spawn_failed(uint32_t id, enum spawn_stage stage, int err_no, void *arg)
{
    struct provider *p = arg;

    if (id < SPAWN_ID_KEPT)
        node_task_failed(p->node, id, stage, err_no);
    else
        provider_logins_exited(p->logins, id, err_no, 0);
}

static void on_exited(uint32_t id, pid_t pid, int wstatus, void *arg)
{
    struct provider *p = arg;

    (void)pid;
    if (id < SPAWN_ID_KEPT)
        node_task_exited(p->node, id, wstatus);
    else
        provider_logins_exited(p->logins, id, 0, wstatus);
}

/* Its children are ours now. They cannot be served without it: the node is lost, and says so itself. */
static void on_keeper_lost(void *arg)
{
    struct provider *p = arg;
    const char *why = spawner_why_lost(p->spawner); /* the next call reaps it */

    (void)descendants_kill_all(DESCENDANTS_KILL_MS);
    if (p->node == NULL)
        provider_say(p, why); /* over the login, as we have not joined yet */
    else
        node_keeper_lost(p->node, why);
    provider_end(p, 1);
}

static const struct spawn_ops spawn_ops = {
    .on_started = on_started, .on_failed = on_spawn_failed, .on_exited = on_exited, .on_lost = on_keeper_lost};

/* --- main ------------------------------------------------------------------------------------------------------- */

static int make_ctx(struct provider *p, struct err *err)
{
    if (p->conf->secret_file != NULL)
        return secret_ctx(p->conf->secret_file, &p->ctx, err) < 0 ? -EINVAL : 0; /* bad use, whatever it is */
    return tls_ctx_new_cert(&p->ctx, p->conf->key, err);
}

static int provider_open(struct provider *p, int keeper_fd, pid_t keeper_pid, struct err *err)
{
    struct join_node_conf jc = {.conf = p->conf, .attached = p->login_done < 0};
    int rc;

    uv_timer_init(&p->loop, &p->key_line);
    p->key_line.data = p;
    p->reaps = leave_reap_strays(&p->loop, &p->strays, keeper_pid) == 1;
    p->links = links_new(&links_ops, p);
    if (p->links == NULL) {
        close(keeper_fd);
        return err_set(err, -ENOMEM, "out of memory");
    }
    rc = spawner_open(&p->loop, keeper_fd, keeper_pid, &spawn_ops, p, &p->spawner, err);
    if (rc == 0)
        rc = make_ctx(p, err);
    if (rc < 0)
        return rc;
    jc.links = p->links;
    jc.ctx = p->ctx;
    rc = join_node_open(&p->loop, &jc, &join_ops, p, &p->join, err);
    if (rc == 0 && p->conf->secret_file == NULL)
        uv_timer_start(&p->key_line, on_key_line, 0, KEY_LINE_EVERY_MS);
    if (rc == 0 && p->conf->join != NULL)
        provider_seek(p);
    /* What a login has started is nobody's to signal; Slurm does so to all of a job. */
    return rc == 0 && (p->conf->join != NULL || p->conf->hosts != NULL) ? provider_catch_signals(p, err) : rc;
}

static int provider_run(struct provider *p, int keeper_fd, pid_t keeper_pid)
{
    struct err err = {0};
    int rc = process_loop_init(&p->loop);

    if (rc < 0) {
        provider_say(p, "cannot make an event loop");
        return 1;
    }
    rc = provider_open(p, keeper_fd, keeper_pid, &err);
    if (rc < 0) {
        provider_say(p, err.text);
        provider_end(p, rc == -EINVAL ? EXIT_USAGE : 1);
    }
    uv_run(&p->loop, UV_RUN_DEFAULT);
    leave_login(p, false);
    log_set_sink(NULL, NULL);
    rc = uv_loop_close(&p->loop);
    assert(rc == 0);
    process_end_keeper(keeper_pid);
    links_free(p->links);
    provider_logins_free(p->logins);
    tls_ctx_unref(p->ctx);
    return p->status;
}

static bool stays_attached(const struct provider_conf *c)
{
    return c->attach == ATTACH_YES || (c->attach == ATTACH_AUTO && process_in_doomed_session());
}

int provider_start(struct provider *p)
{
    struct err err = {0};
    pid_t keeper_pid;
    int keeper_fd, status;

    (void)signal(SIGPIPE, SIG_IGN);
    task_limits_capture(&p->limits);
    process_raise_limits(); /* the keeper needs them too */
    if ((!stays_attached(p->conf) && fork_worker(&p->login_done, &err) < 0) ||
        keeper_fork(NULL, &keeper_fd, &keeper_pid, &err) < 0) {
        log_error("%s", err.text);
        provider_conf_free(p->conf);
        return 1;
    }
    process_protect();
    take_login(p);
    status = provider_run(p, keeper_fd, keeper_pid);
    provider_conf_free(p->conf);
    if (pmix_host_is_left()) /* its threads use what exit() would take away */
        _exit(status);
    return status;
}

int provider_main(int argc, char **argv)
{
    struct provider p = {.login_done = -1, .login_out = -1, .login_err = -1, .run_status = -1};
    struct err err = {0};

    if (provider_conf_parse(argc, argv, &p.conf, &err) < 0) {
        log_error("%s", err.text);
        return 2;
    }
    return provider_start(&p);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* node_task.c - this node's tasks: their table, descriptors and start */
#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/strv.h"
#include "conf/conf.h"
#include "server/blame.h"
#include "server/env.h"
#include "server/node_pmix.h"
#include "server/node_pty.h"

#define PMIX_FILES 20 /* of libpmix itself, and those that are open while a task is started */

/* --- descriptors in the loop ------------------------------------------------------------------------------------ */

static void on_fd_closed(uv_handle_t *h)
{
    struct node_fd *f = h->data;
    struct node_job *j = f->job;

    close(f->fd);
    if (f->on_closed != NULL)
        f->on_closed(f->owner);
    node_job_unref(j);
}

int node_fd_open(struct node_job *j, void *owner, struct node_fd *h, int fd)
{
    int rc = uv_poll_init(j->node->loop, &h->poll, fd);

    if (rc < 0) {
        close(fd);
        return rc;
    }
    h->job = j;
    h->owner = owner;
    h->fd = fd;
    h->poll.data = h;
    h->open = true;
    h->events = 0;
    j->handles++;
    return 0;
}

void node_fd_watch(struct node_fd *h, int events, uv_poll_cb cb)
{
    if (!h->open || h->events == events)
        return;
    h->events = events;
    if (events == 0)
        uv_poll_stop(&h->poll);
    else
        uv_poll_start(&h->poll, events, cb);
}

void node_fd_close(struct node_fd *h)
{
    if (!h->open)
        return;
    h->open = false;
    h->events = 0;
    uv_close((uv_handle_t *)&h->poll, on_fd_closed);
}

/* --- the table -------------------------------------------------------------------------------------------------- */

static void fill_table(struct node_job *j, uint32_t my)
{
    uint32_t rank = 0, slot = 0;

    for (uint32_t i = 0; i < j->job->runs; i++)
        for (uint32_t k = 0; k < j->job->run_len[i]; k++, rank++) {
            struct task *t;

            if (j->job->run_node[i] != my)
                continue;
            t = &j->task[slot];
            t->job = j;
            t->rank = rank;
            t->slot = slot++;
            t->app = job_app_of(j->job, rank);
            t->out.task = t->err.task = t;
            t->out.credit = t->err.credit = STDIO_CREDIT;
            t->err.is_err = true;
        }
}

static uint64_t open_now(void)
{
    DIR *d = opendir("/proc/self/fd");
    uint64_t count = 0;

    if (d == NULL)
        return 0;
    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

/* Two pipes and a connection each, of which one end stays. Where there is not quite room for these, the start of a task
 * fails and says so. libpmix does not: a task that connects to it last waits for ever, so for it all is counted. */
static int check_room(const struct node_job *j, uint32_t count, struct err *err)
{
    bool pmix = j->job->nspace != NULL;
    uint64_t each = 2u + ((j->job->connect & CONNECT_FD) != 0) + (pmix ? 1 : 0), need = each * count;
    struct rlimit lim;

    if (j->job->connect == CONNECT_SERVE || getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur == RLIM_INFINITY)
        return 0;
    need += pmix && count > 0 && need <= lim.rlim_cur ? open_now() + PMIX_FILES : 0;
    if (need <= lim.rlim_cur)
        return 0;
    return err_set(err, -EMFILE,
                   "%u tasks need %" PRIu64 " open files here, but the limit (ulimit -n) is %" PRIu64
                   ": use more nodes, or raise it",
                   count, need, (uint64_t)lim.rlim_cur);
}

int node_tasks_prepare(struct node_job *j, struct err *err)
{
    struct node *n = j->node;
    uint32_t my = j->tree->node[n->conf.place], count = 0;
    int rc;

    for (uint32_t i = 0; i < j->job->runs; i++)
        count += j->job->run_node[i] == my ? j->job->run_len[i] : 0;
    rc = check_room(j, count, err);
    if (rc < 0)
        return rc;
    j->task = calloc(count + 1u, sizeof(*j->task));
    if (j->task == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    j->task_count = count;
    j->id_base = n->next_id;
    n->next_id += count;
    fill_table(j, my);
    return 0;
}

struct task *node_task_of_rank(const struct node_job *j, uint32_t rank)
{
    uint32_t low = 0, high = j->task_count;

    while (low < high) { /* they are in the order of their ranks */
        uint32_t mid = low + (high - low) / 2;

        if (j->task[mid].rank < rank)
            low = mid + 1;
        else
            high = mid;
    }
    return low < j->task_count && j->task[low].rank == rank ? &j->task[low] : NULL;
}

void node_tasks_free(struct node_job *j)
{
    for (uint32_t i = 0; i < j->task_count; i++)
        buf_done(&j->task[i].in_buf);
    free(j->task);
}

int dir_check(const char *dir, struct err *err)
{
    struct stat st;
    int rc = 0;

    if (stat(dir, &st) < 0 || (S_ISDIR(st.st_mode) && access(dir, X_OK) < 0))
        rc = -errno;
    else if (!S_ISDIR(st.st_mode))
        rc = -ENOTDIR;
    return rc < 0 ? err_set(err, rc, "directory %s: %s", dir, strerror(-rc)) : 0;
}

/* --- start ------------------------------------------------------------------------------------------------------ */

/* Both ends close-on-exec; ours non-blocking. `mine` is the reading end unless `to_task`. */
static int task_pipe(bool to_task, int *mine, int *theirs)
{
    int p[2];

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    *mine = p[to_task ? 1 : 0];
    *theirs = p[to_task ? 0 : 1];
    (void)fcntl(*mine, F_SETFL, O_NONBLOCK | (to_task ? O_WRONLY : O_RDONLY));
    return 0;
}

/* What the task gets, and our ends of it. */
struct task_ends {
    int theirs[3], pmi_theirs;
    int out, err, in, pmi; /* ours; in -1: none */
};

static void ends_close(struct task_ends *e, bool ours)
{
    for (int i = 0; i < 3; i++)
        if (e->theirs[i] > 2)
            close(e->theirs[i]);
    if (e->pmi_theirs >= 0)
        close(e->pmi_theirs);
    if (!ours)
        return;
    int mine[] = {e->out, e->err, e->in, e->pmi};
    for (int i = 0; i < 4; i++)
        if (mine[i] >= 0)
            close(mine[i]);
}

static bool reads_input(const struct task *t)
{
    int input = t->job->job->input;

    return input == INPUT_ALL || input == (int)t->rank;
}

static int pipes_open(const struct task *t, struct task_ends *e)
{
    const struct node_job *j = t->job;
    int rc;

    if ((rc = task_pipe(false, &e->out, &e->theirs[1])) < 0 || (rc = task_pipe(false, &e->err, &e->theirs[2])) < 0 ||
        !reads_input(t))
        return rc;
    if (!j->job->input_handed)
        return task_pipe(true, &e->in, &e->theirs[0]);
    e->theirs[0] = j->node->conf.stdin_fd; /* 0: stays ours, see ends_close() */
    return 0;
}

static int ends_open(const struct task *t, struct task_ends *e)
{
    const struct node_job *j = t->job;
    int sv[2], rc;

    *e = (struct task_ends){.theirs = {-1, -1, -1}, .pmi_theirs = -1, .out = -1, .err = -1, .in = -1, .pmi = -1};
    rc = task_has_pty(t) ? task_pty_open(t, &e->out, &e->in, e->theirs) : pipes_open(t, e);
    if (rc < 0)
        return rc;
    if (!(j->job->connect & CONNECT_FD))
        return 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
        return -errno;
    e->pmi = sv[0];
    e->pmi_theirs = sv[1];
    (void)fcntl(sv[0], F_SETFL, O_NONBLOCK | O_RDWR);
    return 0;
}

static int ends_adopt(struct task *t, struct task_ends *e)
{
    int rc = e->pmi < 0 ? 0 : task_pmi_open(t, e->pmi), rc2 = task_stdio_open(t, e->out, e->err, e->in);

    e->pmi = e->out = e->err = e->in = -1;
    return rc < 0 ? rc : rc2;
}

/* What our client library is told, so that it asks for the keys of us and of nobody else (docs/protocol.md). A trace is
 * to have every get. */
static uint64_t map_number(const struct node_job *j, const struct task_ends *e)
{
    struct stat st;

    return e->pmi_theirs < 0 || j->job->trace || fstat(e->pmi_theirs, &st) < 0 ? 0 : st.st_ino;
}

static int make_env(const struct task *t, const struct task_ends *e, char ***env)
{
    const struct node_job *j = t->job;
    const struct job_app *a = &j->job->app[t->app];
    const char *dir = job_app_dir(j->job, a);
    char port[IPV4_TEXT_MAX + 8];
    struct env_rank er = {
        .rank = t->rank,
        .size = j->job->size,
        .local_rank = t->slot,
        .local_size = j->task_count,
        .node = j->tree->node[j->node->conf.place],
        .nodes = j->job->nodes,
        .pmi_fd = (j->job->connect & CONNECT_FD) != 0,
        .map = map_number(j, e),
        .spawned = j->job->spawner != NULL,
        .port = node_port_number(j),
        .dir = dir,
    };

    if (j->job->connect != CONNECT_NONE) {
        int rc = env_for_rank(a->env, &er, env);

        return rc < 0 ? rc : node_pmix_env(t, env);
    }
    node_serve_address(j->node, port, sizeof(port));
    return env_for_command(a->env, port, j->node->served->job->size, dir, env);
}

static int spawn(struct task *t, struct task_ends *e, struct err *err)
{
    struct node_job *j = t->job;
    const struct job_app *a = &j->job->app[t->app];
    char **env = NULL, *path = NULL;
    int rc = make_env(t, e, &env);

    if (rc < 0) {
        strv_free(env);
        return err_set(err, rc, rc == -ENOMEM ? "out of memory" : "PMIx does not say what its environment is to be");
    }
    rc = job_app_program(j->job, a, &path, err);
    if (rc == 0) {
        struct spawn_req req = {
            .id = j->id_base + t->slot,
            .program = path,
            .argv = a->argv,
            .envp = env,
            .dir = job_app_dir(j->job, a),
            .fd = {e->theirs[0], e->theirs[1], e->theirs[2]},
            .pmi_fd = e->pmi_theirs,
            .has_pty = task_has_pty(t),
            .limits = &j->job->limits,
        };
        rc = spawner_spawn(j->node->conf.spawner, &req, err);
    }
    strv_free(env);
    free(path);
    return rc;
}

static int task_start(struct task *t, struct err *err)
{
    struct task_ends e;
    int rc = ends_open(t, &e);

    if (rc < 0) {
        ends_close(&e, true);
        return err_set(err, rc, "cannot make its pipes: %s", strerror(-rc));
    }
    rc = spawn(t, &e, err);
    ends_close(&e, rc < 0);
    if (rc < 0)
        return rc;
    rc = ends_adopt(t, &e);
    return rc < 0 ? err_set(err, rc, "cannot watch its pipes: %s", strerror(-rc)) : 0;
}

void node_tasks_start(struct node_job *j)
{
    struct err err = {0};

    if (!j->ready || j->running > 0)
        return;
    if (j->serve != NULL) {
        node_serve_start(j);
        return;
    }
    j->running = j->starting = j->task_count;
    for (uint32_t i = 0; i < j->task_count; i++) {
        struct task *t = &j->task[i];

        /* Where there is no room for one there is none for the next: no more is tried, as each try takes its time. */
        if (err.code != -EMFILE && err.code != -ENFILE && task_start(t, &err) == 0)
            continue;
        if (j->job->id == 0)
            node_task_failure(t, BLAME_STATUS, 126, err.text);
        task_pmi_close(t);
        task_stdio_close(t);
        node_task_failed(j->node, j->id_base + t->slot, SPAWN_FDS, -err.code);
    }
}

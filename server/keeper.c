/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/keeper.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/num.h"
#include "common/util.h"
#include "server/descendants.h"
#include "server/keeper_wire.h"
#include "server/scratch.h"
#include "server/spawn_id.h"
#include "server/terminal.h"

/* Children between fork and exec at one time; each has a pipe open. */
#define STARTING_MAX 64
#define READ_SIZE 65536
/* What cannot be killed for that long hangs in the kernel and ends when the kernel lets it. */
#define END_MS 30000u

struct child {
    uint32_t id;
    pid_t pid;
    int pipe;                  /* tells how the start went; -1 once that is known */
    struct task_report report; /* err_no != 0: it did not start, and the worker is told when it has been reaped */
};

struct keeper {
    int sock, sigfd;
    int tty; /* the launcher's terminal, or -1 */
    struct buf in, out;
    int fds[2 * KEEPER_FDS_MAX]; /* came with messages that are not complete yet, in order */
    unsigned nfds;
    struct child *child;
    size_t count, cap, starting;
    bool over;
    bool no_memory;
};

/* A worker that cannot be told the truth is better ended: without memory for twelve bytes nothing goes on. */
static void tell(struct keeper *k, enum keeper_type type, struct keeper_note note)
{
    if (keeper_note_add(&k->out, type, &note) < 0)
        k->over = k->no_memory = true;
}

/* How did the start of `c` go? Nothing happens while it is not known. */
static void look_at_start(struct keeper *k, struct child *c)
{
    struct task_report report;
    ssize_t n;

    if (c->pipe < 0)
        return;
    n = read(c->pipe, &report, sizeof(report));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    close(c->pipe);
    c->pipe = -1;
    k->starting--;
    if (n == (ssize_t)sizeof(report))
        c->report = report;
    else
        tell(k, KEEPER_STARTED, (struct keeper_note){c->id, c->pid, 0});
}

static void child_gone(struct keeper *k, struct child *c, int wstatus)
{
    look_at_start(k, c); /* its end of the pipe is closed, so now it is known */
    if (c->report.err_no != 0)
        tell(k, KEEPER_FAILED, (struct keeper_note){c->id, c->report.stage, c->report.err_no});
    else
        tell(k, KEEPER_EXITED, (struct keeper_note){c->id, c->pid, wstatus});
    *c = k->child[--k->count];
}

static void reap(struct keeper *k)
{
    struct signalfd_siginfo info[16];
    pid_t pid;
    int wstatus;

    while (read(k->sigfd, info, sizeof(info)) > 0)
        ;
    while ((pid = waitpid(-1, &wstatus, WNOHANG)) > 0) {
        for (size_t i = 0; i < k->count; i++) {
            if (k->child[i].pid == pid) {
                child_gone(k, &k->child[i], wstatus);
                break;
            }
        } /* else it was an orphan that fell to us */
    }
}

static int room_for_child(struct keeper *k)
{
    size_t cap = k->cap == 0 ? 64 : 2 * k->cap;
    struct child *p;

    if (k->count < k->cap)
        return 0;
    p = realloc(k->child, cap * sizeof(*p));
    if (p == NULL)
        return -ENOMEM;
    k->child = p;
    k->cap = cap;
    return 0;
}

/* All signals stay blocked in the child until task_exec() unblocks them, see there. */
static int fork_child(struct keeper *k, const struct spawn_req *req)
{
    int rc = room_for_child(k), pipefd[2];
    pid_t pid;

    if (rc < 0)
        return rc;
    if (pipe2(pipefd, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    pid = fork();
    if (pid == 0)
        task_exec(req, pipefd[1]);
    rc = -errno;
    close(pipefd[1]);
    if (pid < 0) {
        close(pipefd[0]);
        return rc;
    }
    k->child[k->count++] = (struct child){.id = req->id, .pid = pid, .pipe = pipefd[0]};
    k->starting++;
    return 0;
}

static int serve_spawn(struct keeper *k, struct span body, unsigned nfds)
{
    struct task_limits limits = {0};
    struct spawn_req req;
    int rc;

    if (nfds > k->nfds)
        return -EPROTO;
    rc = keeper_spawn_parse(body, k->fds, nfds, &req, &limits);
    if (rc < 0)
        return rc;
    rc = fork_child(k, &req);
    if (rc < 0)
        tell(k, KEEPER_FAILED, (struct keeper_note){req.id, SPAWN_FORK, -rc});
    keeper_spawn_done(&req);
    for (unsigned i = 0; i < nfds; i++)
        close(k->fds[i]);
    k->nfds -= nfds;
    memmove(k->fds, k->fds + nfds, k->nfds * sizeof(*k->fds));
    return 0;
}

/* The group, or where there is none, the process: it has not come to setsid() yet. */
static void kill_group(pid_t pid, int sig)
{
    if (kill(-pid, sig) < 0 && errno == ESRCH)
        kill(pid, sig);
}

static void kill_child(const struct child *c, int sig)
{
    kill_group(c->pid, sig);
    if (sig == SIGTERM || sig == SIGHUP || sig == SIGINT)
        kill_group(c->pid, SIGCONT); /* a stopped process takes nothing but KILL */
}

static void serve_kill(struct keeper *k, uint32_t id, int sig)
{
    for (size_t i = 0; i < k->count; i++) {
        const struct child *c = &k->child[i];

        if (c->id == id || (id == SPAWN_ID_ALL && c->id < SPAWN_ID_KEPT))
            kill_child(c, sig);
    }
}

static int serve_one(struct keeper *k, const struct keeper_head *head, struct span body)
{
    struct keeper_note note;
    int rc;

    if (head->type == KEEPER_SPAWN)
        return serve_spawn(k, body, head->nfds);
    rc = keeper_note_parse(body, &note);
    if (rc < 0)
        return rc;
    if (head->type != KEEPER_KILL)
        return -EPROTO;
    serve_kill(k, note.id, note.a);
    return 0;
}

/* Every whole message, but no more starts under way than STARTING_MAX: the rest waits, in order. */
static void serve(struct keeper *k)
{
    size_t done = 0;
    int rc = 0;

    while (!k->over && k->starting < STARTING_MAX) {
        struct span rest = {buf_span(&k->in).p + done, k->in.len - done}, body;
        struct keeper_head head;
        ssize_t n = keeper_wire_next(rest, &head, &body);

        if (n == 0)
            break;
        if (n > 0)
            rc = serve_one(k, &head, body);
        if (n < 0 || rc < 0)
            k->over = true;
        else
            done += (size_t)n;
    }
    k->no_memory = k->no_memory || rc == -ENOMEM;
    buf_drop(&k->in, done);
}

static void receive(struct keeper *k)
{
    ssize_t n;

    if (buf_reserve(&k->in, READ_SIZE) < 0) {
        k->over = k->no_memory = true;
        return;
    }
    n = keeper_wire_recv(k->sock, k->in.p + k->in.len, READ_SIZE, k->fds, &k->nfds);
    if (n > 0)
        k->in.len += (size_t)n;
    else if (n != -EAGAIN)
        k->over = true; /* the worker has ended */
}

static void flush(struct keeper *k)
{
    while (k->out.len > 0) {
        ssize_t n = keeper_wire_send(k->sock, buf_span(&k->out), NULL, 0);

        if (n < 0) { /* a worker that is gone shows as end of file, by poll() */
            if (n != -EAGAIN)
                buf_drop(&k->out, k->out.len);
            return;
        }
        buf_drop(&k->out, (size_t)n);
    }
}

static nfds_t fill_poll(const struct keeper *k, struct pollfd *p)
{
    nfds_t n = 2;

    p[0] = (struct pollfd){.fd = k->sock};
    if (k->starting < STARTING_MAX)
        p[0].events |= POLLIN;
    if (k->out.len > 0)
        p[0].events |= POLLOUT;
    p[1] = (struct pollfd){.fd = k->sigfd, .events = POLLIN};
    for (size_t i = 0; i < k->count; i++) {
        if (k->child[i].pipe < 0)
            continue;
        assert(n < STARTING_MAX + 2);
        p[n++] = (struct pollfd){.fd = k->child[i].pipe, .events = POLLIN};
    }
    return n;
}

static void turn(struct keeper *k)
{
    struct pollfd p[STARTING_MAX + 2];
    nfds_t n = fill_poll(k, p);

    if (poll(p, n, -1) < 0)
        return;
    if (p[0].revents & (POLLHUP | POLLERR)) { /* what it still asked for does not matter any more */
        k->over = true;
        return;
    }
    if (p[0].revents & POLLIN)
        receive(k);
    for (size_t i = 0; i < k->count; i++)
        look_at_start(k, &k->child[i]);
    reap(k);
    serve(k);
    flush(k);
}

/* Close whatever we inherited but `keep` to `last`: a pipe of somebody who waits for its end, most of all. */
static void close_inherited(int keep, int last)
{
    struct dirent *d;
    DIR *dir;

    if (syscall(SYS_close_range, 3u, (unsigned)keep - 1, 0u) == 0 &&
        syscall(SYS_close_range, (unsigned)last + 1, ~0u, 0u) == 0)
        return;
    dir = opendir("/proc/self/fd"); /* Linux before 5.9 */
    while (dir != NULL && (d = readdir(dir)) != NULL) {
        uint64_t fd;

        if (num_u64(span_of(d->d_name), 3, INT32_MAX, &fd) == 0 && ((int)fd < keep || (int)fd > last) &&
            (int)fd != dirfd(dir))
            close((int)fd);
    }
    if (dir != NULL)
        closedir(dir);
}

static int take_leave(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0)
        return -errno;
    for (int i = 0; i < 3; i++)
        if (dup2(null, i) < 0)
            return -errno;
    setsid();
    if (chdir("/") < 0)
        return -errno;
    prctl(PR_SET_NAME, "pmi-keeper");
    return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

static int watch_children(void)
{
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    return signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Signals are blocked by keeper_fork(). */
static void keeper_main(int sock, const struct termios *tty) __attribute__((noreturn));
static void keeper_main(int sock, const struct termios *tty)
{
    struct keeper k = {.tty = -1};

    k.sock = fcntl(sock, F_DUPFD_CLOEXEC, 10); /* so that 3 is below it, for close_inherited() */
    if (k.sock >= 0 && tty != NULL)
        k.tty = dup3(0, k.sock + 1, O_CLOEXEC);
    if (k.sock < 0 || take_leave() < 0)
        _exit(1);
    close_inherited(k.sock, MAX(k.sock, k.tty));
    k.sigfd = watch_children();
    if (k.sigfd < 0)
        _exit(1);
    while (!k.over)
        turn(&k);
    if (k.tty >= 0)
        terminal_put_back(k.tty, tty);
    descendants_kill_all(END_MS);
    scratch_remove();
    _exit(k.no_memory ? KEEPER_NO_MEMORY : 0);
}

/* Everything but what a fault of our own raises. */
static void block_signals(sigset_t *old)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    sigset_t all;

    sigfillset(&all);
    for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
        sigdelset(&all, faults[i]);
    sigprocmask(SIG_SETMASK, &all, old);
}

int keeper_fork(const struct termios *tty, int *fd, pid_t *pid, struct err *err)
{
    struct sigaction sa = {.sa_handler = SIG_DFL};
    sigset_t old;
    int pair[2];
    pid_t p;

    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return err_set(err, -errno, "cannot start the keeper: %s", strerror(errno));
    sigaction(SIGCHLD, &sa, NULL); /* where it was ignored, no exit status would ever be seen */
    block_signals(&old);
    scratch_share();
    p = fork();
    if (p == 0)
        keeper_main(pair[1], tty);
    int rc = -errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    close(pair[1]);
    if (p < 0) {
        close(pair[0]);
        return err_set(err, rc, "cannot start the keeper: %s", strerror(-rc));
    }
    *fd = pair[0];
    *pid = p;
    return 0;
}

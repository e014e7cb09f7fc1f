/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/task_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/strv.h"
#include "common/util.h"

_Static_assert(TASK_LIMITS_MAX >= RLIMIT_NLIMITS, "every limit has a place");

/* glibc's prototypes take an enum where others take an int; this is the one that fits both. */
#define LIMIT_FILES ((int)RLIMIT_NOFILE)
#define LIMIT_STACK ((int)RLIMIT_STACK)
#define LIMIT_CORE ((int)RLIMIT_CORE)

/* Sources of descriptors are moved at or above this first, out of the way of 0 to 3. */
#define FD_CLEAR 4

static bool is_ignored(int sig)
{
    struct sigaction sa;

    return sigaction(sig, NULL, &sa) == 0 && !(sa.sa_flags & SA_SIGINFO) && sa.sa_handler == SIG_IGN;
}

void task_limits_capture(struct task_limits *out)
{
    static const int carried[] = {LIMIT_FILES, LIMIT_STACK, LIMIT_CORE};

    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < ARRAY_SIZE(carried); i++) {
        struct rlimit lim;

        if (getrlimit((__rlimit_resource_t)carried[i], &lim) < 0)
            continue;
        out->soft[carried[i]] = lim.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)lim.rlim_cur;
        out->set[carried[i]] = true;
    }
    out->umask = umask(0);
    umask(out->umask);
    out->ignore_hup = is_ignored(SIGHUP);
    out->ignore_int = is_ignored(SIGINT);
}

static int set_limit(int which, uint64_t soft)
{
    struct rlimit lim;

    if (getrlimit((__rlimit_resource_t)which, &lim) < 0)
        return -errno;
    lim.rlim_cur = soft == UINT64_MAX ? RLIM_INFINITY : (rlim_t)soft;
    if (lim.rlim_max != RLIM_INFINITY && (soft == UINT64_MAX || lim.rlim_cur > lim.rlim_max))
        lim.rlim_cur = lim.rlim_max;
    return setrlimit((__rlimit_resource_t)which, &lim) < 0 ? -errno : 0;
}

static int set_limits(const struct task_limits *limits)
{
    if (limits == NULL)
        return 0;
    umask(limits->umask);
    for (int i = 0; i < (int)RLIMIT_NLIMITS; i++) {
        int rc = limits->set[i] ? set_limit(i, limits->soft[i]) : 0;

        if (rc < 0)
            return rc;
    }
    return 0;
}

/* libc keeps its own signals (32, 33) from sigaction(), but whoever started us may have left them ignored, and a task
 * would inherit that. All zero bytes say SIG_DFL in the kernel's struct, whatever its layout; a set has 8 bytes. */
static void set_default(int sig)
{
    static const char zero[64];

    (void)syscall(SYS_rt_sigaction, sig, zero, NULL, 8); /* KILL and STOP refuse, which is fine */
}

/* Dispositions only: the signals stay blocked until the last moment, so that one sent meanwhile is not lost. */
static void set_signals(const struct task_limits *limits)
{
    struct sigaction sa = {.sa_handler = SIG_IGN};

    for (int sig = 1; sig < NSIG; sig++)
        set_default(sig);
    if (limits != NULL && limits->ignore_hup)
        sigaction(SIGHUP, &sa, NULL);
    if (limits != NULL && limits->ignore_int)
        sigaction(SIGINT, &sa, NULL);
}

/* Make `from[i]` descriptor i. All are moved up first because a source may be another one's destination. */
static int place_fds(int from[4], unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_CLEAR);
        if (from[i] < 0)
            return -errno;
    }
    for (unsigned i = 0; i < count; i++)
        if (dup2(from[i], (int)i) < 0)
            return -errno;
    return 0;
}

static int set_fds(const struct spawn_req *req)
{
    int from[4] = {req->fd[0], req->fd[1], req->fd[2], req->pmi_fd};

    for (int i = 0; i < 3; i++)
        if (from[i] < 0)
            from[i] = i; /* ours is /dev/null */
    int rc = place_fds(from, req->pmi_fd < 0 ? 3 : 4);
    if (rc == 0 && req->has_pty && ioctl(0, TIOCSCTTY, 0) < 0)
        rc = -errno;
    return rc;
}

/* The kernel knows no format for it: a script without "#!". */
static int exec_by_shell(const struct spawn_req *req)
{
    size_t n = strv_count(req->argv);
    const char **argv = calloc(n + 3, sizeof(*argv));

    if (argv == NULL)
        return -ENOMEM;
    argv[0] = "/bin/sh";
    argv[1] = req->program;
    for (size_t i = 1; i < n; i++)
        argv[i + 1] = req->argv[i];
    execve(argv[0], (char *const *)(void *)argv, req->envp);
    return -errno;
}

static int become(const struct spawn_req *req)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(req->program, req->argv, req->envp);
    return errno == ENOEXEC ? exec_by_shell(req) : -errno;
}

static void fail(int report_fd, enum spawn_stage stage, int rc)
{
    struct task_report report = {.stage = (int32_t)stage, .err_no = -rc};
    ssize_t n = write(report_fd, &report, sizeof(report)); /* to an empty pipe: never short, never waits */

    _exit(n == (ssize_t)sizeof(report) ? 127 : 126);
}

void task_exec(const struct spawn_req *req, int report_fd)
{
    int rc;

    set_signals(req->limits);
    setsid();
    report_fd = fcntl(report_fd, F_DUPFD_CLOEXEC, FD_CLEAR);
    if (report_fd < 0)
        _exit(126);
    if (chdir(req->dir == NULL ? "/" : req->dir) < 0)
        fail(report_fd, SPAWN_CHDIR, -errno);
    rc = set_fds(req);
    if (rc < 0)
        fail(report_fd, SPAWN_FDS, rc);
    rc = set_limits(req->limits); /* after the descriptors: a low limit of files would be in our own way */
    if (rc < 0)
        fail(report_fd, SPAWN_LIMITS, rc);
    rc = become(req);
    fail(report_fd, SPAWN_EXEC, rc);
    _exit(127);
}

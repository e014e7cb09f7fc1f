/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc_flux.c - a job of Flux, or the instance that we are in: its hosts only its own command knows
 *
 * A broker gives what it runs at first (the shell of flux-alloc(1), the script of flux-batch(1)) FLUX_URI, and takes
 * FLUX_JOB_ID away; a job's tasks have both. Its attribute `hostlist` has a host for each broker (RFC 29).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/limits.h"
#include "common/num.h"
#include "conf/alloc.h"
#include "conf/option.h"

#define ANSWER_MS 10000

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* All that comes from `fd` until its end. -ETIMEDOUT, -E2BIG or what read() says. */
static int read_answer(int fd, struct buf *out)
{
    int64_t end = now_ms() + ANSWER_MS, left;

    while ((left = end - now_ms()) > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        char piece[4096];
        ssize_t n;
        int rc = poll(&p, 1, (int)left);

        if (rc == 0 || (rc < 0 && errno == EINTR))
            continue;
        n = rc < 0 ? -1 : read(fd, piece, sizeof(piece));
        if (n <= 0)
            return n == 0 ? 0 : -errno;
        rc = buf_add(out, piece, (size_t)n);
        if (rc < 0)
            return rc;
    }
    return -ETIMEDOUT;
}

/* By the shell, which looks for it in the PATH of `envp`. Its words on standard error come with the rest. */
static int start_flux(char *const *envp, int out_fd, pid_t *pid)
{
    static char sh[] = "sh", c[] = "-c", command[] = "exec flux getattr hostlist 2>&1";
    char *argv[] = {sh, c, command, NULL};
    posix_spawn_file_actions_t files;
    int rc = posix_spawn_file_actions_init(&files);

    if (rc != 0)
        return -rc;
    rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&files, out_fd, 1);
    if (rc == 0)
        rc = posix_spawn(pid, "/bin/sh", &files, NULL, argv, envp);
    posix_spawn_file_actions_destroy(&files);
    return -rc;
}

static int reap(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

/* What the command says. -ECHILD: it failed, and `out` has its words. */
static int ask_flux(char *const *envp, struct buf *out)
{
    int p[2], rc;
    pid_t pid = -1;

    if (pipe2(p, O_CLOEXEC) < 0)
        return -errno;
    rc = start_flux(envp, p[1], &pid);
    close(p[1]);
    if (rc == 0) {
        int ended;

        rc = read_answer(p[0], out);
        if (rc < 0)
            kill(pid, SIGKILL);
        ended = reap(pid);
        rc = rc < 0 ? rc : ended;
    }
    close(p[0]);
    return rc;
}

static int no_answer(const struct buf *said, int rc, struct err *err)
{
    struct span line = buf_span(said);
    const char *nl = line.n > 0 ? memchr(line.p, '\n', line.n) : NULL;

    if (nl != NULL)
        line.n = (size_t)(nl - line.p);
    if (rc == -ECHILD && line.n > 0)
        return err_set(err, -EINVAL, "FLUX_URI is set, but flux getattr hostlist fails: '%s'", quoted(line).text);
    return err_set(err, rc == -ENOMEM ? rc : -EINVAL, "FLUX_URI is set, but flux getattr hostlist fails: %s",
                   rc == -ECHILD      ? "without a word"
                   : rc == -ETIMEDOUT ? "no answer within 10 s"
                   : rc == -E2BIG     ? "it says too much"
                                      : strerror(-rc));
}

/* A broker a line: those of one host are slots. */
static int hosts_of_brokers(const struct hostlist *brokers, struct hostlist **out, struct err *err)
{
    struct hostlist *hl = hostlist_new();
    struct buf lines;
    int rc = hl == NULL ? -ENOMEM : 0;

    buf_init(&lines, 0);
    for (size_t i = 0; rc == 0 && i < hostlist_count(brokers); i++)
        rc = buf_printf(&lines, "%s\n", hostlist_get(brokers, i).name);
    if (rc == 0)
        rc = alloc_hosts(buf_span(&lines), ALLOC_REPEATED, hl, err);
    else
        err_set(err, rc, "out of memory");
    buf_done(&lines);
    if (rc == 0)
        *out = hl;
    else
        hostlist_free(hl);
    return rc;
}

static int read_brokers(struct span answer, struct hostlist **out, struct err *err)
{
    struct hostlist *brokers = hostlist_new();
    int rc = brokers == NULL ? err_set(err, -ENOMEM, "out of memory") : hostlist_add(brokers, answer, NULL, NULL, err);

    if (rc == 0)
        rc = hosts_of_brokers(brokers, out, err);
    hostlist_free(brokers);
    return rc == 0 || rc == -ENOMEM ? rc : err_prefix(err, "FLUX_URI is set, and flux getattr hostlist says");
}

int alloc_flux_instance(char *const *envp, struct alloc *out, struct err *err)
{
    const char *uri = alloc_get(envp, "FLUX_URI");
    struct alloc a = {.kind = ALLOC_FLUX};
    struct buf answer;
    int rc;

    if (uri == NULL || alloc_get(envp, "FLUX_JOB_ID") != NULL)
        return 0;
    if (alloc_get(envp, "FLUX_PROXY_REMOTE") != NULL)
        return err_set(err, -EINVAL, "FLUX_URI is of an instance elsewhere, as FLUX_PROXY_REMOTE is set");
    buf_init(&answer, HOSTFILE_BYTES_MAX);
    rc = ask_flux(envp, &answer);
    rc = rc < 0 ? no_answer(&answer, rc, err) : read_brokers(buf_span(&answer), &a.hosts, err);
    buf_done(&answer);
    if (rc == 0 && (a.job = strdup(uri)) == NULL)
        rc = err_set(err, -ENOMEM, "out of memory");
    if (rc == 0)
        *out = a;
    else
        alloc_done(&a);
    return rc == 0 || rc == -ENOMEM ? rc : -EINVAL;
}

int alloc_flux(char *const *envp, struct alloc *out, struct err *err)
{
    const char *job = alloc_get(envp, "FLUX_JOB_ID"), *size = alloc_get(envp, "FLUX_JOB_SIZE");

    uint64_t tasks;

    (void)out;
    if ((job == NULL) != (size == NULL))
        return err_set(err, -EINVAL, "%s is set, but %s is not", job != NULL ? "FLUX_JOB_ID" : "FLUX_JOB_SIZE",
                       job != NULL ? "FLUX_JOB_SIZE" : "FLUX_JOB_ID");
    if (job == NULL || strcmp(size, "1") == 0)
        return 0;
    if (num_u64(span_of(size), 1, UINT32_MAX, &tasks) < 0)
        return err_set(err, -EINVAL, "FLUX_JOB_SIZE is '%s', which is no number of tasks", quoted(span_of(size)).text);
    return err_set(err, -EINVAL,
                   "FLUX_JOB_SIZE is '%s': each of the tasks of this job of Flux would start the whole run; say "
                   "flux run -n1, or begin with flux alloc",
                   quoted(span_of(size)).text);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* ssh_main.c - pmi-start-ssh: log in to every host of PMI_HOSTLIST by ssh, without pdsh, or by a manager's own agent
 *
 * Run by the script pmi-start-rsh; its arguments are options for ssh, or the agent (a first word that does not begin
 * with '-') and its options. Runs PMI_PROVIDER with --pmi-rank=N on the host
 * at place N, at most PMI_LOGIN_FANOUT hosts at a time. What a host says comes out line by line, behind "HOST: ", and a
 * login that fails ends with "HOST: ssh exited with exit code N", as with pdsh. Ends with 0 once all logins have ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/hostlist.h"
#include "common/limits.h"
#include "common/num.h"
#include "common/strv.h"
#include "common/util.h"

#define FANOUT_DEFAULT 32
#define PIECE_MAX 4096 /* a longer one comes in pieces; a provider's key line fits */

extern char **environ;

/* One of the two pipes of a login: 0 its output, 1 its error. */
struct pipe_in {
    int fd; /* -1: at its end */
    struct buf line;
};

struct login {
    const char *name; /* without user@; NULL: the slot is free */
    pid_t pid;        /* 0: has ended, with `code` */
    int code;
    struct pipe_in pipe[2];
};

static void write_all(int fd, struct span s)
{
    while (s.n > 0) {
        ssize_t n = write(fd, s.p, s.n);

        if (n < 0 && errno != EINTR)
            exit(1); /* nobody listens any more */
        if (n > 0)
            s = (struct span){s.p + n, s.n - (size_t)n};
    }
}

/* In one write, so that lines of several hosts do not mix. */
static void say(const struct login *l, int fd, struct span text)
{
    struct buf out = {0};

    if (buf_printf(&out, "%s: ", l->name) < 0 || buf_add(&out, text.p, text.n) < 0 || buf_add(&out, "\n", 1) < 0)
        exit(1);
    write_all(fd, buf_span(&out));
    buf_done(&out);
}

/* Say all whole lines; what is left stays, unless it is too long or the `last`. */
static void say_lines(struct login *l, int i, bool last)
{
    struct buf *b = &l->pipe[i].line;
    const char *nl;

    while (b->len > 0 && (nl = memchr(b->p, '\n', b->len)) != NULL) {
        say(l, i + 1, (struct span){b->p, (size_t)(nl - b->p)});
        buf_drop(b, (size_t)(nl - b->p) + 1);
    }
    if (b->len == 0 || (!last && b->len < PIECE_MAX))
        return;
    say(l, i + 1, buf_span(b));
    buf_drop(b, b->len);
}

static void end_if_done(struct login *l)
{
    char text[64];

    if (l->pid != 0 || l->pipe[0].fd >= 0 || l->pipe[1].fd >= 0)
        return;
    if (l->code != 0) {
        snprintf(text, sizeof(text), "ssh exited with exit code %d", l->code);
        say(l, STDERR_FILENO, span_of(text));
    }
    l->name = NULL;
}

static void take(struct login *l, int i)
{
    struct pipe_in *p = &l->pipe[i];
    ssize_t n;

    if (buf_reserve(&p->line, PIECE_MAX) < 0)
        exit(1);
    n = read(p->fd, p->line.p + p->line.len, PIECE_MAX);
    if (n < 0 && errno == EINTR)
        return;
    if (n > 0)
        p->line.len += (size_t)n;
    say_lines(l, i, n <= 0);
    if (n > 0)
        return;
    close(p->fd);
    p->fd = -1;
    buf_done(&p->line);
    end_if_done(l);
}

static void reap(struct login *slot, size_t slots)
{
    int wstatus;
    pid_t pid;

    while ((pid = waitpid(-1, &wstatus, WNOHANG)) > 0) {
        for (size_t i = 0; i < slots; i++) {
            if (slot[i].name == NULL || slot[i].pid != pid)
                continue;
            slot[i].pid = 0;
            slot[i].code = WIFEXITED(wstatus) ? WEXITSTATUS(wstatus) : 128 + WTERMSIG(wstatus);
            end_if_done(&slot[i]);
        }
    }
}

/* No fork: it would cost as much as ssh's exec. 0, or the errno. */
static int spawn(pid_t *pid, char *const *argv, const int out[2])
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    int rc;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = posix_spawn_file_actions_adddup2(&files, out[i], i + 1);
    if (rc == 0)
        rc = posix_spawnattr_setsigmask(&attr, &none);
    if (rc == 0)
        rc = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    if (rc == 0)
        rc = posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);
    return rc;
}

/* Agents execute words, where ssh hands one line to a shell. Those of a provider mean the same to both. */
static int add_words(char ***argv, const char *line)
{
    int rc = 0;

    while (rc == 0 && *line != '\0') {
        size_t n = strcspn(line, " ");

        if (n > 0)
            rc = strv_add_len(argv, line, n);
        line += n + (line[n] != '\0');
    }
    return rc;
}

/* The words of one login: ssh and `options`, or the agent that they begin with, the host, the command there. */
static char **words_of(char *const *options, const char *host, const char *provider, size_t place)
{
    bool agent = options[0] != NULL && options[0][0] != '-';
    struct buf command = {0};
    char **argv = NULL;
    int rc = agent ? 0 : strv_add(&argv, "ssh");

    for (size_t i = 0; rc == 0 && options[i] != NULL; i++)
        rc = strv_add(&argv, options[i]);
    if (rc == 0 && !agent)
        rc = strv_add(&argv, "--");
    if (rc == 0)
        rc = strv_add(&argv, host);
    if (rc == 0)
        rc = buf_printf(&command, "%s --pmi-rank=%zu", provider, place);
    if (rc < 0 || buf_str(&command) == NULL)
        exit(1);
    if ((agent ? add_words(&argv, command.p) : strv_add(&argv, command.p)) < 0)
        exit(1);
    buf_done(&command);
    return argv;
}

static const char *name_of(const char *host)
{
    const char *at = strrchr(host, '@');

    return at != NULL ? at + 1 : host;
}

/* As it would go with all from `first` on: their own words, of which the launcher makes one line. */
static void cannot_run(const struct hostlist *hosts, size_t first, const char *program, int why)
{
    for (size_t i = first; i < hostlist_count(hosts); i++)
        fprintf(stderr, "%s: cannot run %s: %s\n", name_of(hostlist_get(hosts, i).name), program, strerror(why));
    exit(why == ENOENT ? 127 : 126);
}

/* 0, or the errno. */
static int start(struct login *l, const char *host, char **argv)
{
    int out[2] = {-1, -1}, rc = 0;

    *l = (struct login){.name = name_of(host)};
    for (int i = 0; i < 2; i++) {
        int p[2] = {-1, -1};

        if (pipe2(p, O_CLOEXEC) < 0)
            rc = errno;
        l->pipe[i].fd = p[0];
        out[i] = p[1];
    }
    if (rc == 0)
        rc = spawn(&l->pid, argv, out);
    for (int i = 0; i < 2; i++)
        if (out[i] >= 0)
            close(out[i]);
    return rc;
}

/* Wait for something to happen to any of them. */
static void turn(struct login *slot, size_t slots, struct pollfd *pfd)
{
    sigset_t none;

    sigemptyset(&none);
    for (size_t i = 0; i < 2 * slots; i++)
        pfd[i] = (struct pollfd){.fd = slot[i / 2].name != NULL ? slot[i / 2].pipe[i % 2].fd : -1, .events = POLLIN};
    if (ppoll(pfd, 2 * slots, NULL, &none) > 0)
        for (size_t i = 0; i < 2 * slots; i++)
            if (pfd[i].revents != 0)
                take(&slot[i / 2], (int)(i % 2));
    reap(slot, slots);
}

static void log_in_to_all(const struct hostlist *hosts, size_t slots, const char *provider, char *const *options)
{
    struct login *slot = calloc(slots, sizeof(*slot));
    struct pollfd *pfd = calloc(2 * slots, sizeof(*pfd));
    size_t next = 0, count = hostlist_count(hosts), open;

    if (slot == NULL || pfd == NULL)
        exit(1);
    do {
        open = 0;
        for (size_t i = 0; i < slots; i++) {
            if (slot[i].name == NULL && next < count) {
                const char *host = hostlist_get(hosts, next).name;

                char **argv = words_of(options, host, provider, next);
                int rc = start(&slot[i], host, argv);

                if (rc != 0)
                    cannot_run(hosts, next, argv[0], rc);
                strv_free(argv);
                next++;
            }
            open += slot[i].name != NULL;
        }
        if (open > 0)
            turn(slot, slots, pfd);
    } while (open > 0 || next < count);
    free(slot);
    free(pfd);
}

static void on_child(int sig)
{
    (void)sig; /* interrupts ppoll() */
}

static void watch_children(void)
{
    struct sigaction sa = {.sa_handler = on_child};
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    sigaction(SIGCHLD, &sa, NULL);
}

static int number_of(const char *text, uint64_t *out)
{
    return text == NULL ? 0 : num_u64(span_of(text), 1, HOSTS_MAX, out);
}

int main(int argc, char **argv)
{
    const char *list = getenv("PMI_HOSTLIST"), *provider = getenv("PMI_PROVIDER");
    struct hostlist *hosts = hostlist_new();
    uint64_t fanout = FANOUT_DEFAULT;
    struct err err = {0};
    int status = 2;

    (void)argc;
    if (list == NULL || provider == NULL || hosts == NULL)
        fputs("PMI_HOSTLIST or PMI_PROVIDER is not set; this program is run by pmi-start-rsh\n", stderr);
    else if (hostlist_add(hosts, span_of(list), NULL, NULL, &err) < 0)
        fprintf(stderr, "PMI_HOSTLIST: %s\n", err.text);
    else if (number_of(getenv("PMI_LOGIN_FANOUT"), &fanout) < 0)
        fprintf(stderr, "PMI_LOGIN_FANOUT is '%s', which is no number of logins\n", getenv("PMI_LOGIN_FANOUT"));
    else
        status = 0;
    if (status == 0) {
        watch_children();
        log_in_to_all(hosts, MIN((size_t)fanout, hostlist_count(hosts)), provider, argv + 1);
    }
    hostlist_free(hosts);
    return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_floor.c - the least that a PMI server on one machine can cost its tasks, as pmi-bench sees it
 *
 *   pmi_floor -n N PROGRAM [ARG...]
 *
 * Runs N tasks and answers their PMI-1, each over a socket pair of its own, from one epoll loop: one read and one write
 * a request, no checks, no output, no failures, no other node. Only for programs that behave, as pmi-bench does.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAIRS_MAX (1u << 22) /* keys over a whole run; a power of two */
#define READY_MAX 1024

struct pair {
    char *key, *value;
};

static struct pair *pairs;
static int *fds;
static int ntasks, waiting, alive;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static struct pair *place_of(const char *key)
{
    uint64_t h = 1469598103934665603u;

    for (const char *p = key; *p != '\0'; p++)
        h = (h ^ (unsigned char)*p) * 1099511628211u;
    for (;; h++) {
        struct pair *p = &pairs[h & (PAIRS_MAX - 1)];

        if (p->key == NULL || strcmp(p->key, key) == 0)
            return p;
    }
}

static void say(int fd, const char *text, size_t n)
{
    if (send(fd, text, n, MSG_NOSIGNAL) != (ssize_t)n)
        die("send");
}

static void answer(int fd, const char *text)
{
    say(fd, text, strlen(text));
}

static void barrier_in(void)
{
    static const char out[] = "cmd=barrier_out rc=0\n";

    if (++waiting < ntasks)
        return;
    waiting = 0;
    for (int i = 0; i < ntasks; i++)
        say(fds[i], out, sizeof(out) - 1);
}

static char *copy(const char *text)
{
    char *p = strdup(text);

    if (p == NULL)
        die("strdup");
    return p;
}

static void put(int fd, char *key)
{
    char *value = strstr(key, " value=");
    struct pair *p;

    if (value == NULL)
        die("put without a value");
    *value = '\0';
    p = place_of(key);
    if (p->key == NULL)
        p->key = copy(key);
    free(p->value);
    p->value = copy(value + 7);
    answer(fd, "cmd=put_result rc=0\n");
}

static void get(int fd, const char *key)
{
    char out[2048];
    const struct pair *p = place_of(key);
    int n = snprintf(out, sizeof(out), p->key == NULL ? "cmd=get_result rc=4\n" : "cmd=get_result rc=0 value=%s\n",
                     p->value);

    say(fd, out, (size_t)n);
}

static void request(int fd, char *line)
{
    char *key = strstr(line, " key=");

    if (strncmp(line, "cmd=barrier_in", 14) == 0)
        barrier_in();
    else if (strncmp(line, "cmd=put ", 8) == 0 && key != NULL)
        put(fd, key + 5);
    else if (strncmp(line, "cmd=get ", 8) == 0 && key != NULL)
        get(fd, key + 5);
    else if (strncmp(line, "cmd=init", 8) == 0)
        answer(fd, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
    else if (strncmp(line, "cmd=get_maxes", 13) == 0)
        answer(fd, "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n");
    else if (strncmp(line, "cmd=get_appnum", 14) == 0)
        answer(fd, "cmd=appnum rc=0 appnum=0\n");
    else if (strncmp(line, "cmd=get_universe_size", 21) == 0)
        answer(fd, "cmd=universe_size rc=0 size=1\n");
    else if (strncmp(line, "cmd=get_my_kvsname", 18) == 0)
        answer(fd, "cmd=my_kvsname rc=0 kvsname=floor\n");
    else if (strncmp(line, "cmd=finalize", 12) == 0)
        answer(fd, "cmd=finalize_ack rc=0\n");
    else
        die(line);
}

/* A client that waits for each answer sends one line at a time. */
static void serve(int fd)
{
    char line[4096];
    ssize_t n = recv(fd, line, sizeof(line) - 1, 0);

    if (n <= 0) {
        close(fd);
        alive--;
        return;
    }
    if (line[n - 1] != '\n')
        die("more or less than a line");
    line[n - 1] = '\0';
    request(fd, line);
}

static void start(int rank, char **argv)
{
    char text[16];
    int sv[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
        die("socketpair");
    pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        int fd = dup(sv[1]);

        snprintf(text, sizeof(text), "%d", fd);
        setenv("PMI_FD", text, 1);
        snprintf(text, sizeof(text), "%d", rank);
        setenv("PMI_RANK", text, 1);
        snprintf(text, sizeof(text), "%d", ntasks);
        setenv("PMI_SIZE", text, 1);
        execvp(argv[0], argv);
        die(argv[0]);
    }
    close(sv[1]);
    fds[rank] = sv[0];
}

int main(int argc, char **argv)
{
    struct epoll_event ready[READY_MAX];
    int epoll = epoll_create1(EPOLL_CLOEXEC), status, bad = 0;

    ntasks = argc > 3 && strcmp(argv[1], "-n") == 0 ? (int)strtol(argv[2], NULL, 10) : 0;
    if (ntasks < 1) {
        fprintf(stderr, "usage: pmi_floor -n N PROGRAM [ARG...]\n");
        return 2;
    }
    pairs = calloc(PAIRS_MAX, sizeof(*pairs));
    fds = calloc((size_t)ntasks, sizeof(*fds));
    if (pairs == NULL || fds == NULL || epoll < 0)
        die("setup");
    for (int i = 0; i < ntasks; i++) {
        start(i, argv + 3);
        ready[0] = (struct epoll_event){.events = EPOLLIN, .data.fd = fds[i]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &ready[0]) < 0)
            die("epoll_ctl");
    }
    for (alive = ntasks; alive > 0;) {
        int n = epoll_wait(epoll, ready, READY_MAX, -1);

        for (int i = 0; i < n; i++)
            serve(ready[i].data.fd);
    }
    while (wait(&status) > 0)
        bad |= status != 0;
    return bad;
}

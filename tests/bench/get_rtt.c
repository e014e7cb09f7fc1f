/* SPDX-License-Identifier: BSD-3-Clause */
/* get_rtt.c - one PMI get as a client sees it, and the least it can be
 *
 *   get_rtt pmi N [LEN]   over PMI_FD: put one value of LEN bytes (64), then get it N times
 *   get_rtt floor N [LEN] the same bytes to and fro over a socket pair, answered by a child that does nothing else
 *
 * Prints "NAME MEDIAN_US MIN_US". Two processes on one machine: where the scheduler puts them decides as much as the
 * code, so both forms are run in turn, several times, under the same CPU mask.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char line[65536];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t put = write(fd, p, n);

        if (put <= 0)
            die("write");
        p += put;
        n -= (size_t)put;
    }
}

/* One line, which is the only thing under way. */
static void read_line(int fd)
{
    size_t used = 0;

    do {
        ssize_t got = read(fd, line + used, sizeof(line) - 1 - used);

        if (got <= 0)
            die("read");
        used += (size_t)got;
    } while (line[used - 1] != '\n');
    line[used] = '\0';
}

static void ask(int fd, const char *request)
{
    send_all(fd, request, strlen(request));
    read_line(fd);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void measure(const char *name, int fd, const char *request, size_t count)
{
    double *us = calloc(count, sizeof(*us));

    if (us == NULL)
        die("calloc");
    for (size_t i = 0; i < count / 10; i++)
        ask(fd, request);
    for (size_t i = 0; i < count; i++) {
        double start = now_us();

        ask(fd, request);
        us[i] = now_us() - start;
    }
    qsort(us, count, sizeof(*us), by_size);
    printf("%s %.2f %.2f\n", name, us[count / 2], us[0]);
    free(us);
}

static void over_pmi(size_t count, const char *value)
{
    const char *env = getenv("PMI_FD");
    char kvs[256] = "", request[4096], *p;
    int fd;

    if (env == NULL) {
        fprintf(stderr, "get_rtt: no PMI_FD\n");
        exit(1);
    }
    fd = (int)strtol(env, NULL, 10);
    ask(fd, "cmd=init pmi_version=1 pmi_subversion=1\n");
    ask(fd, "cmd=get_my_kvsname\n");
    p = strstr(line, "kvsname=");
    if (p != NULL)
        (void)sscanf(p + 8, "%255s", kvs);
    snprintf(request, sizeof(request), "cmd=put kvsname=%s key=k value=%s\n", kvs, value);
    ask(fd, request);
    ask(fd, "cmd=barrier_in\n");
    snprintf(request, sizeof(request), "cmd=get kvsname=%s key=k\n", kvs);
    measure("pmi", fd, request, count);
    ask(fd, "cmd=finalize\n");
}

static void over_pair(size_t count, const char *value)
{
    char request[4096], reply[4096];
    int sv[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv) < 0)
        die("socketpair");
    snprintf(request, sizeof(request), "cmd=get kvsname=pmi-start.somehost.12345 key=k\n");
    snprintf(reply, sizeof(reply), "cmd=get_result rc=0 value=%s\n", value);
    pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        close(sv[0]);
        while (read(sv[1], line, sizeof(line)) > 0)
            send_all(sv[1], reply, strlen(reply));
        _exit(0);
    }
    close(sv[1]);
    measure("floor", sv[0], request, count);
    close(sv[0]);
    (void)waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, len = argc > 3 ? strtoul(argv[3], NULL, 10) : 64;
    char value[1024];

    if (count == 0 || len == 0 || len >= sizeof(value)) {
        fprintf(stderr, "usage: get_rtt pmi|floor N [LEN]\n");
        return 2;
    }
    memset(value, 'v', len);
    value[len] = '\0';
    if (strcmp(argv[1], "pmi") == 0)
        over_pmi(count, value);
    else
        over_pair(count, value);
    return 0;
}

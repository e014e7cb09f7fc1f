/* SPDX-License-Identifier: BSD-3-Clause */
/* scale_login.c - a stand-in for logins to hosts that there are not: it takes the time that they take, and then runs
 * the command on this machine. For tests/bench/scale.py
 *
 *     pmi-start --rsh-command=scale_login ...          the script's contract of pmi-start(1): all of PMI_HOSTLIST
 *     scale_login [-OPTION]... HOST COMMAND [ARG]...   as ssh would, for launchers that run one process a host
 *
 * Each login lasts SCALE_LOGIN_US until the command begins. Its caller is busy with it for the first SCALE_GAP_US of
 * these: another login of the same caller does not begin meanwhile, whichever process it is in. Both are slept, the
 * second under a lock in the folder SCALE_DIR that has the caller's number.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/hostlist.h"

static void fail(const char *what)
{
    fprintf(stderr, "scale_login: %s: %s\n", what, strerror(errno));
    exit(255);
}

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    char *end;
    long v;

    if (text == NULL)
        return otherwise;
    v = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || v < 0) {
        errno = EINVAL;
        fail(name);
    }
    return v;
}

static void sleep_us(long us)
{
    struct timespec left = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

/* The time of a login to a host, as seen by the one who asked for it. */
static void log_in(pid_t caller)
{
    long login = number("SCALE_LOGIN_US", 250000), gap = number("SCALE_GAP_US", 16000);
    const char *dir = getenv("SCALE_DIR");
    char path[4096];
    int fd;

    snprintf(path, sizeof(path), "%s/caller.%ld", dir == NULL ? "/tmp" : dir, (long)caller);
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        fail(path);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            fail(path);
    sleep_us(gap);
    close(fd);
    sleep_us(login > gap ? login - gap : 0);
}

/* --- as the script ---------------------------------------------------------------------------------------------- */

/* The provider's words are of letters that no shell changes. */
static void run_provider(unsigned index)
{
    static char *words[64];
    char rank[32], *text = getenv("PMI_PROVIDER"), *save = NULL;
    int n = 0;

    for (char *w = strtok_r(text, " ", &save); w != NULL && n < 62; w = strtok_r(NULL, " ", &save))
        words[n++] = w;
    snprintf(rank, sizeof(rank), "--pmi-rank=%u", index);
    words[n++] = rank;
    words[n] = NULL;
    execv(words[0], words);
    fail(words[0]);
}

static int script(const char *list)
{
    struct hostlist *hosts = hostlist_new();
    struct err err = {0};
    long most = number("PMI_LOGIN_FANOUT", 32), running = 0;
    pid_t caller = getppid();
    size_t count;

    if (getenv("PMI_PROVIDER") == NULL || hosts == NULL ||
        hostlist_add(hosts, (struct span){list, strlen(list)}, NULL, NULL, &err) < 0) {
        errno = EINVAL;
        fail("PMI_PROVIDER, PMI_HOSTLIST");
    }
    count = hostlist_count(hosts);
    for (size_t i = 0; i < count; i++) {
        pid_t pid;

        for (; running >= most; running--)
            (void)wait(NULL);
        pid = fork();
        if (pid < 0)
            fail("fork");
        if (pid == 0) {
            log_in(caller);
            run_provider((unsigned)i);
        }
        running++;
    }
    while (wait(NULL) > 0 || errno == EINTR)
        ;
    hostlist_free(hosts);
    return 0;
}

/* --- as ssh ----------------------------------------------------------------------------------------------------- */

static int one_host(char **words)
{
    struct buf command = {0};

    while (*words != NULL && **words == '-')
        words++;
    if (words[0] == NULL || words[1] == NULL) {
        errno = EINVAL;
        fail("usage: [-OPTION]... HOST COMMAND [ARG]...");
    }
    for (char **w = words + 1; *w != NULL; w++)
        if (buf_add_str(&command, *w) < 0 || buf_add_str(&command, " ") < 0)
            fail("command");
    log_in(getppid());
    execl("/bin/sh", "sh", "-c", buf_str(&command), (char *)NULL);
    fail("/bin/sh");
    return 255;
}

int main(int argc, char **argv)
{
    const char *list = getenv("PMI_HOSTLIST");

    return argc == 1 && list != NULL ? script(list) : one_host(argv + 1);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/progs/suite.h"

#define THREADS_MAX 64

int suite_rank = -1;

void suite_check(bool ok, const char *what, const char *file, int line)
{
    if (ok)
        return;
    fprintf(stderr, "%s: rank %d: %s:%d: not so: %s\n", suite_name, suite_rank, file, line, what);
    exit(1);
}

void suite_gives(int want, int got, const char *call, const char *file, int line)
{
    if (got == want)
        return;
    fprintf(stderr, "%s: rank %d: %s:%d: %d and not %d from %s\n", suite_name, suite_rank, file, line, got, want, call);
    exit(1);
}

bool suite_option(char **argv, const char *name)
{
    for (int i = 1; argv[i] != NULL; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return false;
}

void suite_value(char value[SUITE_VALUE_ROOM], int rank, int i, int round, int max, const char *without)
{
    static const char all[] = "abc= ;:,.#$/+()[]{}<>@XY Z0189-_\"'\\|";
    static const int lengths[] = {24, 25, 100, 255, 256, 500, 1023};
    size_t want = (size_t)lengths[i % 7], n;

    if (want > (size_t)max - 1)
        want = (size_t)max - 1;
    n = (size_t)snprintf(value, SUITE_VALUE_ROOM, "%d/%d/%d", rank, i, round);
    for (; n < want; n++) {
        char c = all[(n * 7 + (size_t)rank + (size_t)i) % (sizeof(all) - 1)];

        value[n] = strchr(without, c) != NULL ? '~' : c;
    }
    value[n] = '\0';
}

void suite_in_child(int (*child)(void))
{
    int status;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        _exit(child());
    while (waitpid(pid, &status, 0) < 0)
        CHECK(errno == EINTR);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct job {
    void (*work)(int index);
    int index;
};

static void *run(void *arg)
{
    const struct job *j = arg;

    j->work(j->index);
    return NULL;
}

void suite_in_threads(int count, void (*work)(int index))
{
    pthread_t thread[THREADS_MAX];
    struct job job[THREADS_MAX];

    CHECK(count <= THREADS_MAX);
    for (int i = 0; i < count; i++) {
        job[i] = (struct job){work, i};
        CHECK(pthread_create(&thread[i], NULL, run, &job[i]) == 0);
    }
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
}

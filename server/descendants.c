/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/num.h"
#include "common/util.h"
#include "server/proc_stat.h"

/* From this pass on, what is left forks faster than it is killed: stop it first. */
#define PASS_STOP 3
#define STOP_ROUNDS_MAX 50
#define PAUSE_MAX_MS 50u

/* One line of the table that descendants_scan() makes. */
struct proc_entry {
    pid_t pid, ppid, pgrp;
};

struct proc_table {
    struct proc_entry *p;
    size_t count, cap;
};

void descendants_done(struct descendants *list)
{
    free(list->p);
    memset(list, 0, sizeof(*list));
}

/* Room for one more of `size` bytes in a growing array. */
static int grow(void **p, size_t *cap, size_t count, size_t size)
{
    size_t more = *cap == 0 ? 64 : 2 * *cap;
    void *q;

    if (count < *cap)
        return 0;
    q = realloc(*p, more * size);
    if (q == NULL)
        return -ENOMEM;
    *p = q;
    *cap = more;
    return 0;
}

static int add(struct descendants *list, pid_t pid, pid_t pgrp)
{
    void *p = list->p;
    int rc = grow(&p, &list->cap, list->count, sizeof(*list->p));

    list->p = p;
    if (rc == 0)
        list->p[list->count++] = (struct descendant){pid, pgrp};
    return rc;
}

static bool is_kept(pid_t pid, const pid_t *keep, size_t nkeep)
{
    for (size_t i = 0; i < nkeep; i++)
        if (keep[i] == pid)
            return true;
    return false;
}

static bool pid_of_name(const char *name, pid_t *pid)
{
    uint64_t n;

    if (num_u64(span_of(name), 1, INT_MAX, &n) < 0)
        return false;
    *pid = (pid_t)n;
    return true;
}

static int read_table(struct proc_table *t, DIR *dir, const char *proc)
{
    struct dirent *d;

    while ((d = readdir(dir)) != NULL) {
        struct proc_entry e;
        struct proc_stat stat;
        void *p = t->p;
        int rc;

        if (!pid_of_name(d->d_name, &e.pid) || !proc_stat_read(proc, e.pid, &stat))
            continue;
        e.ppid = stat.ppid;
        e.pgrp = stat.pgrp;
        rc = grow(&p, &t->cap, t->count, sizeof(e));
        t->p = p;
        if (rc < 0)
            return rc;
        t->p[t->count++] = e;
    }
    return 0;
}

static int by_ppid(const void *a, const void *b)
{
    const struct proc_entry *x = a, *y = b;

    return (x->ppid > y->ppid) - (x->ppid < y->ppid);
}

/* The first of the sorted table whose parent is `ppid` or greater. */
static size_t first_child(const struct proc_table *t, pid_t ppid)
{
    size_t low = 0, high = t->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (t->p[mid].ppid < ppid)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int walk_table(struct descendants *list, const struct proc_table *t, pid_t root, const pid_t *keep, size_t nkeep)
{
    pid_t at = root;

    for (size_t next = 0;; next++) {
        for (size_t i = first_child(t, at); i < t->count && t->p[i].ppid == at; i++) {
            if (is_kept(t->p[i].pid, keep, nkeep))
                continue;
            /* Pids reused while the table was read could make a circle. */
            if (list->count > t->count)
                return 0;
            int rc = add(list, t->p[i].pid, t->p[i].pgrp);
            if (rc < 0)
                return rc;
        }
        if (next >= list->count)
            return 0;
        at = list->p[next].pid;
    }
}

int descendants_scan(struct descendants *list, const char *proc, pid_t root, const pid_t *keep, size_t nkeep)
{
    struct proc_table t = {0};
    DIR *dir = opendir(proc);
    int rc;

    list->count = 0;
    if (dir == NULL)
        return -errno;
    rc = read_table(&t, dir, proc);
    closedir(dir);
    if (rc == 0 && t.count > 0) {
        qsort(t.p, t.count, sizeof(*t.p), by_ppid);
        rc = walk_table(list, &t, root, keep, nkeep);
    }
    free(t.p);
    return rc;
}

/* Add the children of one thread. -ENOENT: no such file. */
static int add_children_of(struct descendants *list, const char *path, const pid_t *keep, size_t nkeep)
{
    FILE *f = fopen(path, "re");
    int pid, rc = 0;

    if (f == NULL)
        return -errno;
    while (rc == 0 && fscanf(f, "%d", &pid) == 1)
        if (!is_kept(pid, keep, nkeep))
            rc = add(list, pid, 0);
    fclose(f);
    return rc;
}

/* Add the children of all threads of `pid`. A process or thread that has gone meanwhile has none, but -ENOENT comes
 * back where no thread has the file, for the caller to tell whether this kernel has it at all. */
static int add_children(struct descendants *list, const char *proc, pid_t pid, const pid_t *keep, size_t nkeep)
{
    char path[PATH_MAX];
    struct dirent *d;
    DIR *dir;
    int rc = -ENOENT;

    snprintf(path, sizeof(path), "%s/%d/task", proc, (int)pid);
    dir = opendir(path);
    if (dir == NULL)
        return -ENOENT;
    while ((d = readdir(dir)) != NULL) {
        pid_t tid;
        int got;

        if (!pid_of_name(d->d_name, &tid))
            continue;
        snprintf(path, sizeof(path), "%s/%d/task/%d/children", proc, (int)pid, (int)tid);
        got = add_children_of(list, path, keep, nkeep);
        if (got == 0)
            rc = 0;
        else if (got != -ENOENT && got != -ESRCH) {
            rc = got;
            break;
        }
    }
    closedir(dir);
    return rc;
}

int descendants_list(struct descendants *list, const char *proc, pid_t root, const pid_t *keep, size_t nkeep)
{
    int rc;

    list->count = 0;
    rc = add_children(list, proc, root, keep, nkeep);
    if (rc == -ENOENT)
        return descendants_scan(list, proc, root, keep, nkeep);
    for (size_t i = 0; rc == 0 && i < list->count; i++) {
        rc = add_children(list, proc, list->p[i].pid, keep, nkeep);
        if (rc == -ENOENT)
            rc = 0;
    }
    return rc;
}

static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* By group as well where it is known: a process that forks and ends at once has another pid by the time it is killed,
 * but still its group. Never our own group; ours are in sessions of their own, so nobody else is in theirs. */
static void signal_all(const struct descendants *list, int sig)
{
    pid_t own = getpgrp();

    for (size_t i = 0; i < list->count; i++) {
        if (list->p[i].pgrp > 1 && list->p[i].pgrp != own)
            kill(-list->p[i].pgrp, sig);
        kill(list->p[i].pid, sig);
    }
}

/* What is stopped cannot fork, so this comes to an end also where killing only makes room for the next ones. */
static void stop_all(struct descendants *list)
{
    size_t before = 0;

    for (int i = 0; i < STOP_ROUNDS_MAX && list->count > before; i++) {
        before = list->count;
        signal_all(list, SIGSTOP);
        if (descendants_scan(list, "/proc", getpid(), NULL, 0) < 0)
            return;
    }
}

/* False: no child is left, and so no descendant. */
static bool reap_all(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, WNOHANG | __WALL);
    while (pid > 0 || (pid < 0 && errno == EINTR));
    return pid == 0;
}

/* Until a child ends, or the pause of this pass is over. CHLD is blocked. */
static void wait_child(unsigned pass)
{
    struct timespec ts = {.tv_nsec = 1000000L * (long)MIN(pass + 1, PAUSE_MAX_MS)};
    sigset_t chld;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigtimedwait(&chld, NULL, &ts);
}

static size_t kill_pass(struct descendants *list, unsigned pass)
{
    int rc = pass < PASS_STOP ? descendants_list(list, "/proc", getpid(), NULL, 0)
                              : descendants_scan(list, "/proc", getpid(), NULL, 0);

    if (rc < 0)
        return 1; /* out of memory or files; what was found is still killed */
    if (pass >= PASS_STOP)
        stop_all(list);
    signal_all(list, SIGKILL);
    return list->count;
}

unsigned descendants_kill_all(unsigned ms)
{
    uint64_t end = now_ms() + ms;
    struct descendants list = {0};
    sigset_t chld, old;
    size_t left = 0;

    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, &old);
    for (unsigned pass = 0; reap_all(); pass++) {
        left = kill_pass(&list, pass);
        if (now_ms() >= end)
            break;
        wait_child(pass);
        left = 0;
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    descendants_done(&list);
    return (unsigned)left;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <limits.h>
#include "common/limits.h"
#include "server/descendants.h"

void process_raise_limits(void)
{
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur == lim.rlim_max)
        return;
    lim.rlim_cur = lim.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &lim);
}

void process_protect(void)
{
#ifndef __SANITIZE_ADDRESS__ /* the leak checker attaches to its own process */
    (void)prctl(PR_SET_DUMPABLE, 0);
#endif
}

int process_loop_init(uv_loop_t *loop)
{
    int fd[3][2], n = 0, rc = 0;

    /* A loop takes six, and where one of them cannot be had libuv may call abort(). */
    while (n < 3 && (rc = pipe2(fd[n], O_CLOEXEC)) == 0)
        n++;
    rc = rc < 0 ? -errno : 0;
    while (n-- > 0) {
        close(fd[n][0]);
        close(fd[n][1]);
    }
    return rc < 0 ? rc : uv_loop_init(loop);
}

int process_self_path(char **out, struct err *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (n < 0)
        return err_set(err, -errno, "cannot read /proc/self/exe: %s", strerror(errno));
    path[n] = '\0';
    *out = strdup(path);
    return *out == NULL ? err_set(err, -ENOMEM, "out of memory") : 0;
}

void process_end_keeper(pid_t pid)
{
    struct pollfd pfd = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

    if (pfd.fd >= 0) {
        (void)poll(&pfd, 1, KEEPER_END_MS);
        close(pfd.fd);
    }
    if (waitpid(pid, NULL, WNOHANG) == 0)
        (void)descendants_kill_all(DESCENDANTS_KILL_MS);
}

/* A line of a logind configuration file says KillUserProcesses=no (or another false word)? -1: it does not say. */
static int file_says_kill(const char *path)
{
    static const char *const no[] = {"no", "false", "off", "0"};
    FILE *f = fopen(path, "re");
    char line[512];
    int kill = -1;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        char word[16];

        if (sscanf(line, " KillUserProcesses = %15s", word) != 1)
            continue;
        kill = 1;
        for (size_t i = 0; i < 4; i++)
            if (strcmp(word, no[i]) == 0)
                kill = 0;
    }
    if (f != NULL)
        fclose(f);
    return kill;
}

/* logind's built-in default differs from one distribution to the next, so only a written "no" counts as one. */
static bool logind_kills(void)
{
    static const char *const dirs[] = {"/usr/lib/systemd/logind.conf.d", "/run/systemd/logind.conf.d",
                                       "/etc/systemd/logind.conf.d"};
    int kill = file_says_kill("/etc/systemd/logind.conf"), said;

    for (size_t i = 0; i < 3; i++) {
        DIR *d = opendir(dirs[i]);
        struct dirent *e;

        while (d != NULL && (e = readdir(d)) != NULL) {
            char path[PATH_MAX];

            snprintf(path, sizeof(path), "%s/%s", dirs[i], e->d_name);
            if ((said = file_says_kill(path)) >= 0)
                kill = said;
        }
        if (d != NULL)
            closedir(d);
    }
    return kill != 0;
}

bool process_in_doomed_session(void)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[1024];
    bool in = false;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        in = in || (strstr(line, "/session-") != NULL && strstr(line, ".scope") != NULL);
    if (f != NULL)
        fclose(f);
    return in && logind_kills();
}

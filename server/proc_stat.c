/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/proc_stat.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "PID (NAME) STATE PPID PGRP ...": the name may hold anything, also ')'. */
static bool parse(const char *text, struct proc_stat *out)
{
    const char *p = strrchr(text, ')');

    return p != NULL && sscanf(p + 1, " %c %d %d", &out->state, &out->ppid, &out->pgrp) == 3;
}

bool proc_stat_read(const char *proc, pid_t pid, struct proc_stat *out)
{
    char path[PATH_MAX], text[512];
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    return parse(text, out);
}

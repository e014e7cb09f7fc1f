/* SPDX-License-Identifier: BSD-3-Clause */
/* proc_stat.h - what a process's line in /proc says of it (proc(5), /proc/PID/stat) */
#ifndef SERVER_PROC_STAT_H
#define SERVER_PROC_STAT_H

#include <stdbool.h>
#include <sys/types.h>

struct proc_stat {
    char state; /* 'R', 'S', 'T' (stopped by a signal), 't' (by a debugger), 'Z', ... */
    pid_t ppid, pgrp;
};

/* `proc` is the proc file system ("/proc"). False where the process has gone. */
bool proc_stat_read(const char *proc, pid_t pid, struct proc_stat *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* task_exec.h - what a process of the node is to become, and the steps between fork and exec that make it so */
#ifndef SERVER_TASK_EXEC_H
#define SERVER_TASK_EXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Soft limits and umask as they were at the launcher. */
#define TASK_LIMITS_MAX 16
struct task_limits {
    uint64_t soft[TASK_LIMITS_MAX]; /* indexed by RLIMIT_*; UINT64_MAX is RLIM_INFINITY */
    bool set[TASK_LIMITS_MAX];
    mode_t umask;
    bool ignore_hup, ignore_int; /* were ignored when the launcher started */
};

/* Of this process: files, stack and core (the others may rightly differ from host to host). To be called at the very
 * start, before we raise our own limits and while there is one thread: the umask can only be read by setting it. */
void task_limits_capture(struct task_limits *out);

enum spawn_stage { SPAWN_FORK, SPAWN_LIMITS, SPAWN_CHDIR, SPAWN_FDS, SPAWN_EXEC };

struct spawn_req {
    uint32_t id;         /* the caller's own, unique while it runs */
    const char *program; /* path to exec, as seen from `dir` */
    char *const *argv;
    char *const *envp;
    const char *dir; /* NULL: "/" */
    int fd[3];       /* become 0, 1, 2; -1: /dev/null. Stay the caller's, which may close them at return */
    int pmi_fd;      /* becomes descriptor 3, or -1: none */
    bool has_pty;    /* descriptor 0 is a terminal: it becomes the session's */
    const struct task_limits *limits; /* NULL: as the keeper has them */
    /* Every process is made leader of a session of its own. A soft limit over the hard one becomes the hard one. */
};

/* What the child writes to `report_fd` when a step fails. */
struct task_report {
    int32_t stage; /* enum spawn_stage */
    int32_t err_no;
};

/* Run in a fresh child that has all signals blocked, one thread, descriptors 0 to 2 on /dev/null and every other one
 * close-on-exec. Becomes the task, or writes a struct task_report to `report_fd` and ends. A file without a known
 * format is run by /bin/sh, as execvp() does. */
void task_exec(const struct spawn_req *req, int report_fd) __attribute__((noreturn));

#endif

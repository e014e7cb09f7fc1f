/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pty.h - the terminal of the task that has the launcher's (--pty) */
#ifndef SERVER_NODE_PTY_H
#define SERVER_NODE_PTY_H

#include <stdbool.h>
#include "common/err.h"
#include "common/msg.h"

struct node_job;
struct task;

bool task_has_pty(const struct task *t);
/* Both sides, close-on-exec; `out` and `in` are ours and do not wait. What was not opened stays -1, also on failure. */
int task_pty_open(const struct task *t, int *out, int *in, int theirs[3]);
/* A message: its size has changed. */
int node_window(struct node_job *j, const struct msg_in *m, struct err *err);

#endif

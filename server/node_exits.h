/* SPDX-License-Identifier: BSD-3-Clause */
/* node_exits.h - the ends of tasks, here and below, on their way up; for the files node*.c alone */
#ifndef SERVER_NODE_EXITS_H
#define SERVER_NODE_EXITS_H

#include "server/node_priv.h"

/* The task has ended, or will never run. */
void node_exit_add(const struct task *t);
int node_exits_from_child(struct node_job *j, const struct msg_in *m, struct err *err);
/* Send those that wait. */
void node_flush_exits(struct node *n);

#endif

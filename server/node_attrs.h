/* SPDX-License-Identifier: BSD-3-Clause */
/* node_attrs.h - node attributes for which a task waits, and which nobody on its node can put any more */
#ifndef SERVER_NODE_ATTRS_H
#define SERVER_NODE_ATTRS_H

#include "server/node_priv.h"

/* A request has been served, or a task is gone: look at those that wait. */
void node_attrs_arm(struct node_job *j);
/* --serve: who is away stays away. */
void node_attrs_absent(struct node_job *j);

#endif

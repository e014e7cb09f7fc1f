/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_process.h - processes of the bootstrap, which a node's keeper starts for it */
#ifndef SERVER_BOOT_PROCESS_H
#define SERVER_BOOT_PROCESS_H

#include "bootstrap/bootstrap.h"
#include "server/spawner.h"

/* For boot_ops.spawn. */
int boot_process_spawn(struct spawner *s, const struct task_limits *limits, const struct spawn_req *what, int *out_fd,
                       int *err_fd, struct err *err);
/* Where the shipped script is, for the program at `self_path`: a fresh string, or -ENOMEM. */
int boot_process_script(const char *self_path, char **out);

#endif

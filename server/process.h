/* SPDX-License-Identifier: BSD-3-Clause */
/* process.h - what launcher and provider do to their own process before there is a loop */
#ifndef SERVER_PROCESS_H
#define SERVER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>
#include "common/err.h"

/* As many descriptors as the system lets us have. Call after task_limits_capture(). */
void process_raise_limits(void);
/* No core dumps: this process holds keys. */
void process_protect(void);
/* uv_loop_init(), but for want of descriptors it fails, where libuv ends the process. Negative errno. */
int process_loop_init(uv_loop_t *loop);
/* This program's absolute path, fresh. */
int process_self_path(char **out, struct err *err);
/* The last thing: the keeper ends what the tasks left behind, and itself. One that does not, as when it was stopped, is
 * ended with all that is below it. */
void process_end_keeper(pid_t pid);
/* Is this process in a systemd-logind session that is cleaned up when the login ends? */
bool process_in_doomed_session(void);

#endif

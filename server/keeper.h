/* SPDX-License-Identifier: BSD-3-Clause */
/* keeper.h - the small process that starts and ends every other process of the node
 *
 * It has no loop library, no thread and no connection but the socketpair to its worker (keeper_wire.h). It is a session
 * of its own, named "pmi-keeper", its descriptors 0 to 2 on /dev/null, and every signal that can be is blocked: only
 * the end of the worker, KILL, or the worker's word end it.
 */
#ifndef SERVER_KEEPER_H
#define SERVER_KEEPER_H

#include <sys/types.h>
#include <termios.h>
#include "common/err.h"

#define KEEPER_NO_MEMORY 12 /* its exit status when it has ended for want of memory */

/* Forks the keeper; returns our end of the socketpair in *fd (close-on-exec, non-blocking) and its pid. The caller is
 * (and stays) the worker: it becomes a subreaper and gets CHLD's default disposition. To be called before there is a
 * loop or a thread. No copy of *fd may get into another process: its end is how the keeper learns of ours.
 *
 * `tty`: how descriptor 0, a terminal, is to be left if we are killed with it in raw mode; NULL: there is none. */
int keeper_fork(const struct termios *tty, int *fd, pid_t *pid, struct err *err);

#endif

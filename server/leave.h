/* SPDX-License-Identifier: BSD-3-Clause */
/* leave.h - signals to a node itself, by a user, the kubelet or Slurm: it is asked to end, or to pass them on
 *
 * A pod's first process gets no signal that it does not catch, and is the parent of whatever loses its own.
 */
#ifndef SERVER_LEAVE_H
#define SERVER_LEAVE_H

#include <sys/types.h>
#include <uv.h>

#define LEAVE_SIGNALS 5

struct leave {
    uv_signal_t handle[LEAVE_SIGNALS];
    void (*on_signal)(int sig, void *arg);
    void *arg;
    unsigned count;
};

/* HUP, INT, TERM, USR1 and USR2 come to `on_signal`, but for HUP and INT where they are ignored. Negative errno: those
 * that could be caught are. leave_close() is due either way; memory is the caller's, until the loop has run its close
 * callbacks. */
int leave_open(struct leave *l, uv_loop_t *loop, void (*on_signal)(int sig, void *arg), void *arg);
void leave_close(struct leave *l);

/* Where this is the first process of a container: take up the ends of processes that are nobody's, but for `keeper`'s,
 * for as long as the loop runs. The handle is the caller's; close it where 1 is returned. 0: there is no need. */
int leave_reap_strays(uv_loop_t *loop, uv_signal_t *h, pid_t keeper);

/* The last thing of a process that SIGINT has ended: it dies of it. A shell that runs a script or a loop goes on
 * where its command exits, be it with 130. Returns in the first process of a container, which cannot die so. */
void leave_by_int(void);

#endif

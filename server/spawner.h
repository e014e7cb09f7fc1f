/* SPDX-License-Identifier: BSD-3-Clause */
/* spawner.h - the worker's side of its keeper, the small process that starts and ends every other process of the node
 *
 * keeper_fork() is called first of all, before there is a loop or a thread. The keeper forks and execs what it is asked
 * to over a socketpair, reports every exit, and when the worker ends, however it ends, kills every descendant that is
 * left. The worker is a subreaper as well: when the keeper is killed, its children fall to the worker, which is told by
 * on_lost() and calls descendants_kill_all() before it ends.
 */
#ifndef SERVER_SPAWNER_H
#define SERVER_SPAWNER_H

#include <stdint.h>
#include <sys/types.h>
#include <uv.h>
#include "common/err.h"
#include "server/descendants.h"
#include "server/keeper.h"
#include "server/program_find.h"
#include "server/spawn_id.h"
#include "server/task_exec.h"

struct spawner;

/* Never called inside a call of this module, always from the loop. Each may call anything here. */
struct spawn_ops {
    /* It has been exec'd; comes before its on_exited(), always. */
    void (*on_started)(uint32_t id, pid_t pid, void *arg);
    /* Nothing runs under this id. `err_no` is positive. */
    void (*on_failed)(uint32_t id, enum spawn_stage stage, int err_no, void *arg);
    /* `wstatus` as of waitpid(). What it left running is not waited for. */
    void (*on_exited)(uint32_t id, pid_t pid, int wstatus, void *arg);
    /* The keeper is gone (not by spawner_close). No more callbacks come; calls are taken and do nothing. */
    void (*on_lost)(void *arg);
};

/* In on_lost(), before anybody reaps the keeper: how it ended, in words. Static. */
const char *spawner_why_lost(const struct spawner *s);

/* `fd`, `pid` from keeper_fork(). `fd` is owned, also on failure; the keeper's status is left for the caller to reap,
 * as descendants_kill_all() does. `*ops` is copied, `arg` lent. */
int spawner_open(uv_loop_t *loop, int fd, pid_t pid, const struct spawn_ops *ops, void *arg, struct spawner **out,
                 struct err *err);

/* Queued and sent in order, everything in `req` copied. 0 or negative errno: -E2BIG, -ENOMEM, -EMFILE. */
int spawner_spawn(struct spawner *s, const struct spawn_req *req, struct err *err);

/* Signal the process group of `id`, or with SPAWN_ID_ALL those of all that run with an id below SPAWN_ID_KEPT. TERM,
 * HUP and INT are followed by CONT, so that a stopped process can heed them. An id that does not run is ignored. In
 * order with spawner_spawn(): one that is asked for before is signalled also if it has not come to its exec yet. 0 or
 * -ENOMEM. */
int spawner_kill(struct spawner *s, uint32_t id, int sig);

/* Tell the keeper to kill everything and go; returns at once. No more callbacks; the memory goes with the loop. NULL is
 * fine. */
void spawner_close(struct spawner *s);

pid_t spawner_keeper_pid(const struct spawner *s);

#endif

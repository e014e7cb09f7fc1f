/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_priv.h - what the files launcher*.c share */
#ifndef SERVER_LAUNCHER_PRIV_H
#define SERVER_LAUNCHER_PRIV_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "bootstrap/bootstrap.h"
#include "bootstrap/plan.h"
#include "common/io/tls.h"
#include "conf/conf.h"
#include "server/join_root.h"
#include "server/leave.h"
#include "server/links.h"
#include "server/node.h"
#include "server/root.h"
#include "server/serve.h"
#include "server/spawner.h"
#include "server/terminal.h"

#define LAUNCHER_SIGNALS 9 /* at most */

struct launcher {
    uv_loop_t loop;
    struct conf *conf;
    struct plan *plan;
    char *const *envp; /* lent by the process */
    struct task_limits limits;
    struct tls_ctx *ctx;
    struct spawner *spawner;
    struct links *links;
    struct node *node;
    struct join_root *join;
    struct strangers strangers; /* when the listener has closed */
    struct bootstrap *boot;
    struct boot_conf boot_conf;
    struct boot_ops boot_ops;
    struct root *root;
    struct serve_conf serve;  /* --serve */
    struct terminal terminal; /* --pty */
    char **addrs, *self_path, *script, *srun;
    uint32_t boot_running; /* bootstrap processes that have not ended */
    uv_signal_t signal[LAUNCHER_SIGNALS];
    unsigned signal_count;
    uv_signal_t strays; /* where we are the first process of a container */
    bool reaps;
    uv_timer_t progress, last, stop;
    pid_t keeper_pid;
    bool closing, links_closed, torn_down;
    int status;
};

/* launcher_signal.c */
int launcher_signals_open(struct launcher *l, struct err *err);
void launcher_signals_close(struct launcher *l);

/* launcher_start.c: addresses, listener, bootstrap */
int launcher_start(struct launcher *l, struct err *err);
/* Nodes prove themselves by a secret that was shared beforehand, and start by themselves. */
bool launcher_by_secret(const struct launcher *l);
uint32_t launcher_waiting(struct launcher *l, struct buf *names);

/* launcher_serve.c: fills l->serve from the configuration and this machine's addresses */
int launcher_serve(struct launcher *l, struct err *err);

/* launcher.c */
void launcher_finish(struct launcher *l, int status);

#endif

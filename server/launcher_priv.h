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
#include "server/logins.h"
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
    struct launcher_tree *tree; /* --rsh-tree, in the place of `join`; or NULL */
    struct strangers strangers; /* when the listener has closed */
    struct bootstrap *boot;
    struct boot_conf boot_conf;
    struct boot_ops boot_ops;
    struct root *root;
    struct serve_conf serve;  /* --serve */
    struct terminal terminal; /* --pty */
    char **addrs, *self_path, *script, *srun;
    const char *agent;     /* a manager's own for logins, or NULL */
    uint32_t boot_running; /* bootstrap processes that have not ended */
    uv_signal_t signal[LAUNCHER_SIGNALS];
    unsigned signal_count;
    bool interrupted;   /* SIGINT has come */
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
void launcher_signals_last(const struct launcher *l, int status); /* may not return */

/* launcher_start.c: addresses, listener, bootstrap */
int launcher_start(struct launcher *l, struct err *err);
/* Nodes prove themselves by a secret that was shared beforehand, and start by themselves. */
bool launcher_by_secret(const struct launcher *l);
uint32_t launcher_waiting(struct launcher *l, struct buf *names);
struct strangers launcher_stop_listening(struct launcher *l);

/* launcher_serve.c: fills l->serve from the configuration and this machine's addresses */
int launcher_serve(struct launcher *l, struct err *err);

/* launcher_tree.c: --rsh-tree. The messages and edges are handled by it where they say so. */
int launcher_tree_open(struct launcher *l, const uint32_t *others, uint32_t count, struct err *err);
uint16_t launcher_tree_port(const struct launcher *l);
int launcher_tree_begin(struct launcher *l, struct err *err);
void launcher_tree_key(struct launcher *l, uint32_t node, const char *key);
const char *launcher_tree_login_from(uint32_t node, void *arg);
bool launcher_tree_msg(struct launcher *l, uint32_t place, unsigned type, struct span body);
bool launcher_tree_lost(struct launcher *l, uint32_t place, const struct err *why);
int64_t launcher_tree_node_at(const struct launcher *l, uint32_t place);
struct strangers launcher_tree_all_in(struct launcher *l);
void launcher_tree_close(struct launcher *l);
void launcher_tree_free(struct launcher *l);
/* launcher_traffic.c: what its links carry; `arg` is the launcher. Told ahead of some messages, and at the end (0). */
void launcher_traffic(struct buf *out, void *arg);
void launcher_tell_traffic(struct launcher *l, unsigned type);

/* launcher.c */
void launcher_finish(struct launcher *l, int status);

#endif

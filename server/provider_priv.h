/* SPDX-License-Identifier: BSD-3-Clause */
/* provider_priv.h - what provider.c and provider_join.c share */
#ifndef SERVER_PROVIDER_PRIV_H
#define SERVER_PROVIDER_PRIV_H

#include <uv.h>
#include "common/io/tls.h"
#include "conf/provider_conf.h"
#include "server/join_node.h"
#include "server/leave.h"
#include "server/node.h"
#include "server/provider.h"
#include "server/provider_logins.h"
#include "server/spawner.h"

struct provider {
    uv_loop_t loop;
    struct provider_conf *conf;
    struct tls_ctx *ctx;
    struct spawner *spawner;
    struct links *links;
    struct join_node *join;
    struct node *node;
    struct provider_logins *logins; /* --rsh-tree, or NULL */
    struct task_limits limits;
    uv_timer_t key_line;
    unsigned key_lines;       /* written */
    int login_out, login_err; /* the login's output and error, until the login has ended; -1 */
    int login_done;           /* pipe: closing it tells the login's process that we have joined; -1: attached */
    uint32_t node_id, place;
    bool finished, closing;
    int status;
    int run_status; /* as the launcher has told it, or -1 */
    /* --join, and pods: */
    struct leave leave;
    uv_signal_t strays;
    bool reaps, told_to_leave;
};

/* Take the parts down and exit with this status. */
void provider_end(struct provider *p, int status);
/* To who started us. */
void provider_say(struct provider *p, const char *text);
/* Run it: returns the exit status. */
int provider_start(struct provider *p);

/* provider_tree.c: where the welcome says how logins are done. 0 or -ENOMEM. */
int provider_make_logins(struct provider *p);

/* provider_join.c: one that joins by itself */
void provider_seek(struct provider *p);
/* Signals to this node: its end, and those that are passed on. */
int provider_catch_signals(struct provider *p, struct err *err);
void provider_cannot_join(struct provider *p, const struct err *why);
/* The launcher has told its status, and is gone. */
void provider_end_as_run(struct provider *p);
/* It is gone without. */
void provider_lost_launcher(struct provider *p, const struct err *why);

#endif

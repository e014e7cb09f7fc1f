/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_rig.h - a bootstrap with small sh scripts in the place of logins and providers, and a record of what it says */
#ifndef TESTS_UNIT_BOOT_RIG_H
#define TESTS_UNIT_BOOT_RIG_H

#include <uv.h>
#include "bootstrap/bootstrap.h"
#include "common/buf.h"

#define RIG_KEY "aabbccddeeff00112233445566778899aabbccddeeff00112233445566778899"
#define RIG_NODES_MAX 600

struct rig {
    uv_loop_t loop;
    struct conf conf;
    struct plan plan;
    struct plan_node node[8192];
    struct boot_conf boot_conf;
    struct bootstrap *boot;
    char dir[64]; /* scripts and what they write; gone at rig_done() */
    char *env[8];
    struct buf keys; /* "node=N run=R index=I " of every key line */
    struct buf said; /* on_failed()'s text; empty while it was not called */
    unsigned failed, spawned, killed;
    bool join;        /* nodes join as soon as their key comes */
    bool attached;    /* what is said of their login then */
    uv_timer_t limit; /* the test hangs */
    pid_t pid[1024];  /* by id */
    uv_signal_t child;
};

/* `nodes` hosts, none of them the launcher: names from `hosts`, words cut at blanks. */
struct rig *rig_new(enum boot_method method, const char *hosts);
void rig_done(struct rig *r);

/* Write an executable file into the rig's folder; its path is lent until the next call. */
const char *rig_script(struct rig *r, const char *name, const char *body);
/* The content of a file in the folder, or "" ; lent until the next call. */
const char *rig_file(struct rig *r, const char *name);

/* Open it, and run until it has failed, all have joined, or `ms` are over. */
int rig_run(struct rig *r, unsigned ms, struct err *err);
/* Go on, the same way. */
void rig_go_on(struct rig *r, unsigned ms);

#endif

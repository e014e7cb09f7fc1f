/* SPDX-License-Identifier: BSD-3-Clause */
/* session_spawn.h - a request for a new job: read from either wire, carried in a message
 *
 * PMI-1 sends many lines, mcmd=spawn ... endcmd once for each command, which may come in pieces; PMI-2 sends one frame.
 * Both end up in a struct spawn_want. Nothing here knows what a program or an info key means.
 */
#ifndef SERVER_SESSION_SPAWN_H
#define SERVER_SESSION_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/msg.h"
#include "common/span.h"

/* An info key by which PMIx's spawn requests bring a variable: NAME=VALUE; may come often. */
#define SPAWN_INFO_ENV "pmix.env"

/* One command. Arrays end with NULL, or are NULL where they are empty. */
struct spawn_cmd {
    char **argv; /* argc of them, argv[0] is the program; argc >= 1 */
    uint32_t argc;
    uint32_t nprocs; /* 1..TASKS_MAX, the sum of all commands as well */
    char **info;     /* key, value, key, value ... */
    uint32_t ninfo;  /* pairs */
};

/* Owns its memory; all zero is empty. */
struct spawn_want {
    uint32_t count; /* 1..SPAWN_CMDS_MAX */
    struct spawn_cmd *cmd;
    char **preput;    /* key, value, key, value ... */
    uint32_t npreput; /* pairs */
};

void spawn_want_done(struct spawn_want *w);
/* All tasks asked for. */
uint32_t spawn_want_tasks(const struct spawn_want *w);
/* As keys "spawn_*" of a message that may have others. 0 or -ENOMEM. */
int spawn_want_pack(const struct spawn_want *w, struct msg_out *m);
/* `w` is empty. Every count is held against the caps and against what is there. 0, -ENOENT, -EPROTO, -ENOMEM; then `w`
 * is empty still. */
int spawn_want_unpack(const struct msg_in *m, struct spawn_want *w, struct err *err);

/* A request being read; all zero is none. */
struct spawn_parse {
    struct spawn_want want;
    const char *refused; /* the first thing that is wrong with it, one word; then `want` is empty. NULL: nothing */
    bool is_open;        /* PMI-1: between mcmd=spawn and endcmd */
    bool is_more;        /* PMI-1: behind an endcmd, and a further mcmd=spawn must follow */
    uint32_t strings, bytes;
    uint64_t tasks;
    uint64_t total, so_far;     /* 0: not said */
    uint64_t ppsaid;            /* UINT64_MAX: not said, as the next two */
    uint64_t argsaid, infosaid; /* of the command being read */
    uint32_t npp, ninfo, cmds;  /* strings so far, commands begun */
    bool takes_preput;          /* this segment's: MPICH 4.0.2 repeats them in each, newest MPICH does not */
};

/* PMI-1: the line mcmd=spawn. */
void spawn_parse_begin(struct spawn_parse *p);
/* A further line while is_open. True: that was all; `want` or `refused` says what it came to. */
bool spawn_parse_line(struct spawn_parse *p, struct span line);
/* PMI-2: a whole payload that pmi2_check() found good. `room` is used. */
void spawn_parse_frame(struct spawn_parse *p, struct span payload, struct buf *room);
/* Back to all zero. */
void spawn_parse_done(struct spawn_parse *p);

#endif

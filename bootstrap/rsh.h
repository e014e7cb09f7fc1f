/* SPDX-License-Identifier: BSD-3-Clause */
/* rsh.h - what the parts of the rsh method share. Not for others. */
#ifndef BOOTSTRAP_RSH_H
#define BOOTSTRAP_RSH_H

#include "bootstrap/boot.h"

#define RSH_TRIES_MAX 3
#define RSH_LIST_MAX (100u << 10) /* bytes of a PMI_HOSTLIST: one string of an environment may have 128 KiB on Linux */
#define RSH_NOISE_MAX 64          /* distinct lines of the script itself that are passed on */

/* Ends of logins that were reported for a label, where it is not known yet which of its nodes they belong to. */
struct rsh_exits {
    uint32_t count;
    int code; /* of the last */
};

/* One run of the script: providers are numbered by their place in it. */
struct rsh_run {
    struct proc proc;
    uint32_t number; /* 1 .. */
    uint32_t count, fanout;
    uint32_t *node;                /* by index */
    uint32_t *by_label, *by_short; /* indexes, sorted by the host's name without user@; by that up to its first dot */
    struct rsh_exits *exits;       /* by index, that of the first of equal labels */
    char **key;                    /* by index, or NULL */
    uint32_t open;                 /* logins that are not known to have ended */
    uint32_t attached;             /* logins that stay for the run */
    bool ended;
    char *last_noise; /* or NULL */
};

struct rsh {
    struct rsh_run **run; /* by number - 1 */
    uint32_t run_count, run_cap;
    uint32_t total;    /* providers of the whole start */
    bool all_at_once;  /* logins stay open, so that everybody needs a slot of his own */
    uint32_t *pending; /* nodes to be started, in list order */
    uint32_t pending_count;
    uint32_t *retry; /* nodes that pause */
    uint64_t *due;   /* by node, loop time */
    uint32_t retry_count;
    uv_timer_t retry_timer;
    uint64_t noise[RSH_NOISE_MAX]; /* hashes of the lines passed on */
    uint32_t noise_count;
};

/* What another script's or an agent's logins do when the process that they started exits is not known. */
static inline bool rsh_is_ssh(const struct boot_conf *bc)
{
    return bc->conf->rsh_command == NULL && bc->agent == NULL;
}

/* Run the script for the first nodes of `node`; at most `count`, as many as fit into one list. Returns how many. */
int64_t rsh_run_start(struct bootstrap *b, const uint32_t *node, uint32_t count, uint32_t fanout, struct err *err);
/* Can a provider's command be given to the hosts' shells? 0 or what start would say. */
int rsh_check_provider(struct bootstrap *b, struct err *err);
/* `node` of this run has joined. */
void rsh_run_joined(struct bootstrap *b, struct rsh_run *run, uint32_t node);
void rsh_run_free(struct rsh_run *run);

/* From a run: the login of `node` ended and brought no key; the whole script ended (its run is marked so). */
void rsh_login_failed(struct bootstrap *b, uint32_t node);
void rsh_run_ended(struct bootstrap *b);

/* words.c: did ssh say that trying again is of no use? */
bool rsh_words_decisive(struct span words);
/* ... or that its server was too busy with other logins? */
bool rsh_words_crowded(struct span words);
void rsh_why(const struct bootstrap *b, uint32_t node, struct buf *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* root_priv.h - what the files root*.c share */
#ifndef SERVER_ROOT_PRIV_H
#define SERVER_ROOT_PRIV_H

#include "common/buf.h"
#include "common/limits.h"
#include "common/msg.h"
#include "server/blame.h"
#include "server/names.h"
#include "server/outmux.h"
#include "server/root.h"
#include "server/root_input.h"
#include "server/serve.h"
#include "server/tree.h"

enum root_phase { ROOT_STARTING, ROOT_PREPARING, ROOT_RUNNING, ROOT_ENDING, ROOT_DRAINING, ROOT_DONE };

/* Who asked for a job to be spawned, or for a name: where the answer goes. */
struct root_asker {
    uint64_t place, job, rank, set, req;
};

enum root_job_state { JOB_PREPARING, JOB_STARTING, JOB_RUNNING, JOB_OVER };

/* One job of the run; the first is what the command line says. */
struct root_job {
    struct root *root;
    struct root_job *next;
    struct job *job; /* NULL once it is over (but the first's) */
    uint32_t id, size;
    uint32_t base;     /* of its ranks among all tasks of the run, for the output */
    uint32_t *node_of; /* [size] */
    uint32_t *addr;    /* [size] under --serve: from where each rank came, 0: it has not */
    bool *ended;       /* [size] */
    bool *blamed;      /* [size] its failure has been told */
    uint32_t ended_count;
    bool gone_sent, broken_sent;
    bool faulty;    /* --keep-going: its barriers are to fail */
    bool came;      /* a rank has begun PMIx */
    bool has_apart; /* one has ended well without, */
    uint32_t apart; /* this one */
    /* A spawned one: */
    enum root_job_state state;
    struct root_asker asker;
    uint32_t *errcodes; /* [size], as the asker is told them */
    bool failed;        /* some of its tasks could not be started */
    bool answered;      /* the asker has been told */
    bool *started;      /* [size] */
    uint32_t started_count;
};

/* Why the nodes are asked who waits in which barrier. */
enum ask_why { ASK_LIMIT = 1, ASK_SIGNAL = 2, ASK_STATE = 4, ASK_SLOW = 8 };

#define BARRIER_TEXT_MAX 200 /* bytes of what a barrier is called */
#define SLOW_MAX 16          /* slow barriers kept in mind */

struct slow_barrier {
    uint32_t job;
    char text[BARRIER_TEXT_MAX];
    uint64_t at; /* when; 0 of one that has rounds */
};

struct root {
    uv_loop_t *loop;
    const struct conf *conf;    /* lent */
    const struct plan *plan;    /* lent */
    const struct root_ops *ops; /* lent */
    void *arg;
    struct root_job *first; /* also the last of the list: */
    struct root_job *jobs;
    struct root_job **job_at; /* [next_job], by number */
    uint32_t jobs_live;       /* of which some rank has not ended */
    struct root_job *served;  /* --serve: the job of the ranks that come; the first one is COMMAND then. Else NULL */
    uint32_t next_job, task_total;
    uint32_t spawn_node; /* where the next spawned job begins */
    struct names *names;
    struct pmix_store *published; /* over PMIx */
    enum root_phase phase;
    struct outmux *out;
    struct root_input *input;
    uint32_t *place_of; /* [node] */
    bool *place_lost;   /* [places] */
    struct blame blame;
    bool hurry;  /* a signal or the time limit: output that nobody reads does not hold up the end */
    bool faulty; /* --keep-going: it cannot */
    bool final;  /* a signal, the time limit or closed output has decided the status */
    int final_status, signals;
    const char **lost; /* hosts lost, with reasons, in the window */
    char **lost_why;
    uint32_t lost_count;
    FILE *trace;
    uv_timer_t limit;                   /* --timeout */
    uv_timer_t window;                  /* from the first failure to its verdict */
    uv_timer_t kill;                    /* from TERM to KILL, from KILL to giving up */
    uv_timer_t lookup;                  /* until a lookup over PMIx has waited long enough */
    uv_timer_t report;                  /* from MSG_ASK to the answer */
    uv_timer_t terminal;                /* --pty: from the rank's end until its last output is written */
    bool terminal_eof;                  /* that output has all come */
    bool finished;                      /* every node is through */
    struct report *asked;               /* NULL: nobody is asked at present */
    struct slow_barrier told[SLOW_MAX]; /* the last that were told */
    unsigned told_count;
    unsigned handles;
};

#include "server/root_parts.h"

#endif

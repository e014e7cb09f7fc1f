/* SPDX-License-Identifier: BSD-3-Clause */
/* node_priv.h - what the files node*.c share; nobody else includes it */
#ifndef SERVER_NODE_PRIV_H
#define SERVER_NODE_PRIV_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include "common/buf.h"
#include "common/limits.h"
#include "common/msg.h"
#include "server/attrs.h"
#include "server/barrier.h"
#include "server/exits.h"
#include "server/fault.h"
#include "server/job.h"
#include "server/kvs.h"
#include "server/node.h"
#include "server/ringer.h"
#include "server/serve.h"
#include "server/session.h"
#include "server/tree.h"

enum task_state { TASK_NEW, TASK_STARTED, TASK_ENDED };

/* A descriptor in the loop, of a task's stream or of a PMI connection. */
struct node_fd {
    struct node_job *job;
    void *owner;
    void (*on_closed)(void *owner); /* or NULL */
    uv_poll_t poll;
    int fd;
    int events; /* polled for now */
    bool open;
};

struct stream {
    struct node_fd h;
    struct task *task;
    size_t credit;
    bool is_err, midline, saying;      /* it is that of errors; what it has last is no whole line; within say_words() */
    struct pmix_up *words, *last_word; /* of others about the task: they wait for credit, ahead of what it writes */
};

/* A PMI connection. It goes when it is closed and nothing more is to be judged by it. */
struct pmi_conn {
    struct node_job *job;
    struct task *task;             /* NULL: it has not said yet for whom it speaks (PMI_PORT) */
    UT_hash_handle hh;             /* among its task's sessions, by */
    uint32_t set;                  /* the number of the session */
    struct pmi_conn *next, **prev; /* else among the job's strangers */
    struct session *session;
    struct node_fd h;
    struct buf out;
    uv_timer_t timer; /* from end of file to the verdict, or until a stranger must have said who it is */
    bool timer_open, closing;
    bool is_fed; /* session_feed() is under way */
    bool own;    /* the PMI_FD that the task was started with */
    bool passes; /* a descriptor goes with the byte of `out` at */
    size_t pass_at;
    enum session_map passed;
    unsigned handles;
    size_t heard;  /* bytes */
    uint32_t addr; /* of its other end, over PMI_PORT */
    int lost;      /* errno with which it ended */
};

struct task {
    struct node_job *job;
    uint32_t rank, slot, app;
    enum task_state state;
    pid_t pid;
    int wstatus;
    struct pmi_conn *conns; /* by session number */
    bool no_start;          /* it could not be started */
    unsigned pmix;          /* enum task_pmix of node_pmix.h */
    bool judged;            /* a failure of this task was reported */
    bool left;              /* it has closed its one PMI connection, and can have no other */
    bool cut_off;           /* we closed its PMI connection: how it ends then is no cause */
    struct stream out, err;
    struct node_fd in;
    struct buf in_buf;
    bool in_eof;
};

/* One job's part on this node. */
struct node_job {
    struct node *node;
    struct node_job *next;
    struct job *job;
    struct tree *tree;
    uint32_t *kid_ranks;
    bool *kid_ready;
    uint32_t *place_of;   /* [size]: of each rank, made when a group of ranks is first named */
    uint32_t *group_kids; /* [kid_count]: members of the group asked for last */
    uint32_t task_count, running;
    uint32_t starting; /* asked of the keeper, not known yet to run */
    uint32_t id_base;  /* of its tasks' ids at the keeper: id_base + slot */
    struct task *task;
    struct kvs *kvs;
    struct barriers *barriers;
    struct edge_queue *edge; /* [kid_count + 1]: see node_edge.h */
    struct attrs *attrs;
    struct ringer *ringer; /* of its barriers; NULL: nobody has asked for it */
    struct session_job sjob;
    struct serve *serve;        /* its ranks come from elsewhere (--serve); else NULL */
    struct node_fd port;        /* listens for its tasks' connections; not open: they have PMI_FD alone */
    uv_timer_t port_again;      /* until it is looked at again, where there was no room for a connection */
    struct pmi_conn *strangers; /* connections that have not said who they are, */
    uint32_t stranger_count;
    unsigned refusals; /* of connections to the port, that were told */
    bool ready, ready_sent, over, closing, no_room_told;
    bool gone_known, left_sent; /* some rank has ended, or left PMI for good; the launcher has been told from here */
    struct exits exits;         /* of tasks here and below, not sent up yet */
    struct node_job_pmix *pmix; /* NULL: it has none */
    struct err start_text;      /* why a task could not be started */
    uv_timer_t check;           /* from an entry until it is asked whether the barrier can be complete */
    uv_timer_t slow;            /* looks for barriers that last */
    uv_timer_t attr;  /* from the last that happened until it is asked whether a node attribute can still come */
    bool attr_late;   /* for the second time */
    unsigned handles; /* open loop handles; the memory goes with the last */
};

struct node {
    uv_loop_t *loop;
    struct node_conf conf;
    const struct node_ops *ops; /* lent */
    void *arg;
    struct node_job *jobs;   /* the first job is always the last of the list */
    struct node_pmix *pmix;  /* NULL: no job had PMIx so far */
    struct node_job *served; /* the one whose ranks come from elsewhere, or NULL */
    uint32_t next_id;
    uint32_t kid_count;
    uint32_t *kid_place; /* [kid_count], ascending */
    bool *kid_finished;
    bool ending, finished_sent, closing, killing; /* killing: how tasks end is nobody's fault any more */
    bool paused;                                  /* the launcher is being stopped: tasks do not run */
    struct node_counters counters;
    struct msg_out *no_memory; /* a message that says so, made while there was some */
    uv_timer_t flush, silence;
    uint64_t strangers; /* dropped here and below during the start; said with the first ready */
    unsigned handles;   /* timers and jobs; the memory goes with the last */
};

/* A message that others wait for was refused (from: see fault.h), or could not be sent: the run ends, or with
 * --keep-going the job's barriers fail. */
void node_fault(struct node *n, const struct fault *f);

#include "server/node_parts.h"

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pmix.h - what the files node_pmix*.c share, and their calls for the other files node*.c; a part of node_priv.h
 *
 * A node has it from its first job with PMIx on: the server for its own ranks, if it has any, and its part of the
 * collectives, also where only nodes below are in them.
 */
#ifndef SERVER_NODE_PMIX_H
#define SERVER_NODE_PMIX_H

#include "server/barrier_msg.h"
#include "server/node_priv.h"
#include "server/pmix_fence.h"
#include "server/pmix_host.h"

/* Has a task begun PMIx, and is it through with it? */
enum task_pmix { TASK_PMIX_NEVER, TASK_PMIX_IN, TASK_PMIX_OUT };

/* Of a job with PMIx. */
struct node_job_pmix {
    bool begun;                           /* it is not ready until the library knows its namespace, */
    bool added;                           /* which it has been told: then its ranks may have to do with ours */
    bool came;                            /* a rank of ours has begun PMIx, */
    bool known;                           /* or one somewhere, */
    bool asked;                           /* and who may wait for it in a barrier of PMI has been asked */
    struct pmix_up *events, **events_end; /* of our ranks, which wait to be sent: the oldest first */
    size_t events_away;                   /* bytes of those that have not come back yet */
    bool event_lost;                      /* and that has been said */
    char *version[2];                     /* of the library, that were seen here and below, */
    uint32_t node[2];                     /* and where */
};

struct node_pmix {
    struct node *node;
    struct pmix_host *host; /* NULL: no rank of this node has PMIx */
    struct pmix_fences *fences;
    struct pmix_up *asked; /* wait for an answer from the root, by their tickets */
    uint32_t asked_count, next_req;
    uint64_t contexts;        /* at the root: the number that a group has got last */
    struct pmix_given *given; /* keys of ours that are asked for by others, until they are there */
    uv_timer_t late;          /* until what was begun last is there */
    uv_timer_t check;         /* from an entry, where some rank is gone, until it is asked who is awaited */
    unsigned handles;
    size_t words; /* bytes that tasks' streams have no credit for */
    bool broken;  /* --keep-going, and a rank is lost: no collective can be complete */
    bool ending;
    bool unclean; /* some task has ended without finalize, or was perhaps turned away */
};

#define PMIX_ASKER_SET BARRIER_SET_PMIX /* in the place of a session's number: the node's PMIx server asks */

/* The job's part of it. True: it has begun, and the job is ready when node_job_prepared() is called, or fails. */
bool node_pmix_begin(struct node_job *j);
/* Nothing of the run needs it any more; a spawned job is over; a job's memory goes. */
void node_pmix_end(struct node *n);
void node_pmix_forget(struct node_job *j);
void node_pmix_job_free(struct node_job *j);
/* Every rank's environment, added to. */
int node_pmix_env(const struct task *t, char ***env);
/* A task has ended: judge it by what it has done with PMIx. */
void node_pmix_ended(struct task *t);
/* Of a job with PMIx: it has ended, in a way that does not end the run, and never said a word over it. */
bool node_pmix_is_apart(const struct task *t);
/* --keep-going: every collective fails from now on. */
void node_pmix_broken(struct node *n);

/* Which versions of the library there are at and below this node, the first two of them. */
void node_pmix_seen(struct node_job *j, const char *version, uint32_t node);
void node_pmix_seen_put(const struct node_job *j, struct msg_out *m);
void node_pmix_seen_read(struct node_job *j, const struct msg_in *m);

/* Messages. */
void node_pmix_fence_from_child(struct node *n, uint32_t place, struct span body);
/* True: that was one of the parent's to us. */
bool node_pmix_down(struct node *n, unsigned type, struct span body);
int node_pmix_answer(struct node *n, const struct msg_in *m, struct err *err);
int node_pmix_get(struct node *n, const struct msg_in *m, struct err *err);
int node_pmix_notified(struct node_job *j, const struct msg_in *m, struct err *err);
/* There may be room on an edge again. */
void node_pmix_events_resume(const struct node *n);
int node_pmix_spawned(struct node *n, const struct msg_in *m, struct err *err);

/* node_pmix_wait.c: who waits for whom, and in vain. A rank is gone; one of ours has ended; one collective is broken.
 */
void node_pmix_watch(const struct node *n);
void node_pmix_task_gone(struct task *t);
void node_pmix_break(struct node *n, struct span sig);
/* For the launcher: all that lasts here, of that job; what lasts longer than so many ticks. */
void node_pmix_report(struct node_job *j);
void node_pmix_tick(struct node *n, unsigned ticks);

/* What other files have for it. A job that was held back is ready, or cannot start: */
void node_job_prepared(struct node_job *j);
void node_job_refused(struct node_job *j, const char *text);
/* what others say of the task, among what it writes as errors itself: 0, and it is answered when all has gone on its
 * way; or -ENOSPC, where too much waits. At the end of PMIx who waits has an answer, and the words are said yet; */
int task_stdio_say(struct task *t, struct pmix_up *u);
void node_words_answer(const struct node *n);
/* place_of is filled in: 0 or -ENOMEM. */
int node_find_places(struct node_job *j);

/* Between node_pmix*.c. */
void node_pmix_enter(struct node_pmix *p, struct pmix_up *u);
void node_pmix_check(struct node_pmix *p, struct span sig);
/* A member of this node that is gone: true where there is one, and it is said. */
bool node_pmix_say_gone(const struct node_pmix *p, struct span sig, bool or_out);
void node_pmix_given_up(struct node_pmix *p, const struct task *t);
void node_pmix_ask(struct node_pmix *p, struct pmix_up *u);
void node_pmix_got(struct node_pmix *p, struct pmix_up *u);
void node_pmix_event(struct node_pmix *p, struct pmix_up *u);
void node_pmix_events_drop(struct node_job *j);
void node_pmix_query(struct node_pmix *p, struct pmix_up *u);
void node_pmix_give_up(struct node_pmix *p);
void node_pmix_done(const struct node_pmix *p, struct pmix_up *u, int rc, struct span data);
struct node_job *node_pmix_job(const struct node *n, const char *nspace);
struct node_job *node_job_numbered(const struct node *n, uint64_t id);
extern const struct pmix_fence_ops node_pmix_fence_ops;

#endif

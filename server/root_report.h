/* SPDX-License-Identifier: BSD-3-Clause */
/* root_report.h - what the nodes have answered, between root_report.c, which asks, and root_say.c, which tells */
#ifndef SERVER_ROOT_REPORT_H
#define SERVER_ROOT_REPORT_H

#include "server/root_priv.h"

/* A barrier that lasts. */
struct wait {
    struct wait *next;
    const struct root_job *job;
    char text[BARRIER_TEXT_MAX];
    struct buf group;
    bool pmix;         /* the group is the name of what is awaited over PMIx */
    uint32_t node;     /* of group NODE: whose; else TREE_NONE */
    bool *in;          /* [size] */
    const bool *ended; /* [size]: which ranks had ended when it was asked; lent */
};

#define ASKED_JOBS_MAX 16 /* jobs asked about at once */

struct asked_job {
    const struct root_job *job;
    bool *ended;   /* [size], when it was asked: a signal on the heels of the question ends more */
    bool *stopped; /* [size]: a signal has stopped its process */
};

struct report {
    unsigned why; /* enum ask_why, several */
    int sig;      /* ASK_SIGNAL */
    struct wait *waits, **tail;
    unsigned wait_count, left_out;
    uint32_t answers, asked; /* messages */
    struct asked_job job[ASKED_JOBS_MAX];
    unsigned job_count;
    bool *answered;   /* [places]: about the job of the command line */
    uint64_t *queued; /* [places]: bytes */
    struct slow_barrier slow[SLOW_MAX];
    unsigned slow_count;
};

/* Tell all that r->asked is for. */
void root_say_report(struct root *r);
/* At the time limit: the phase, or the barrier, and who is awaited. */
void root_say_limit(struct root *r);
/* The hosts that have joined, as long as nobody can be asked. */
void root_say_start(const struct root *r);

#endif

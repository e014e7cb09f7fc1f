/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_team.h - all PMI sessions of this process, each going through the same plan at its own pace
 *
 * One thread. A single session is asked and waited for in a plain read(), so that what is measured is the server; many
 * are waited for together.
 */
#ifndef CLIENT_BENCH_TEAM_H
#define CLIENT_BENCH_TEAM_H

#include <stdbool.h>
#include <stdint.h>
#include "client/bench_plan.h"
#include "client/bench_stats.h"
#include "client/bench_talk.h"
#include "common/err.h"

struct seat; /* one session and where in the plan it is */

struct team {
    struct talk_job job;
    struct seat *seats;
    uint32_t count; /* of them, open */
    uint64_t timeout_ms;
    uint64_t faults; /* values that were not what they had to be, requests that failed; each was told of */
    int epoll;       /* -1: there is one session only */
    struct stats stats[MEASURES];
    uint64_t cpu_user_us, cpu_sys_us; /* of this process, while plans were run */
    char known[BENCH_VALUE_MAX];      /* PLAN_GET with a key: what it was at first */
    size_t known_len;
};

/* Open `sessions` of them. job.kind is set by the caller. After a failure only team_close() is of use. */
int team_open(struct team *t, const struct where *w, uint32_t sessions, uint64_t timeout_ms, struct err *err);

/* All sessions through the plan. A value that is wrong is told of on standard error and counted, and it goes on.
 * Negative: a connection is of no more use, or a wait was too long. */
int team_run(struct team *t, const struct plan *p, struct err *err);

/* The first session, for what is not measured. */
struct talk *team_first(struct team *t);

/* Finalize all sessions. */
int team_finalize(struct team *t, struct err *err);
void team_close(struct team *t);

/* "pmi-bench: rank 3: ..." on standard error, and counted in t->faults; the first few only are told. */
void team_fault(struct team *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

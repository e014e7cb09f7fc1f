/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn_job.h - from a task's request to a job: its commands, where its ranks go, its keys. Pure. */
#ifndef SERVER_SPAWN_JOB_H
#define SERVER_SPAWN_JOB_H

#include "bootstrap/plan.h"
#include "common/err.h"
#include "server/job.h"
#include "server/session_spawn.h"

struct spawn_base {
    const struct plan *plan;
    const struct job *first; /* whose directory, environment, limits and tree it takes over */
    const char *spawner;     /* kvsname of the job that asks */
    uint32_t number;         /* of the new job */
    uint32_t *next_node;     /* where the placing goes on: one rank a node in turn, unless `host` says otherwise */
};

/* Info keys that count: host, hosts (a list; host:N takes N of its command's ranks in a turn), wdir, path (where to
 * look for the program before PATH). Others are ignored, as MPI allows; `soft` too, since all are started or none. 0
 * and a fresh job; -EINVAL (a host that is none of the run's, a key or value that no KVS takes), -ENOMEM. */
int spawn_job_make(const struct spawn_base *base, const struct spawn_want *want, struct job **out, struct err *err);

#endif

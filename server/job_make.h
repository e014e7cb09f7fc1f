/* SPDX-License-Identifier: BSD-3-Clause */
/* job_make.h - the job message's content from configuration, plan and the launcher's own world */
#ifndef SERVER_JOB_MAKE_H
#define SERVER_JOB_MAKE_H

#include "bootstrap/plan.h"
#include "conf/conf.h"
#include "server/job.h"

struct job_world {
    char *const *envp;
    const struct task_limits *limits;
    bool input_is_terminal;
    uint16_t rows, cols; /* of that terminal, for --pty */
};

int job_make(const struct conf *conf, const struct plan *plan, const struct job_world *world, struct job **out,
             struct err *err);

/* --serve: the job of the ranks that come from elsewhere; `first` is COMMAND's. */
int job_make_served(const struct conf *conf, const struct job *first, struct job **out, struct err *err);

#endif

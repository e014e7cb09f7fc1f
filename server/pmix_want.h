/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_want.h - does a job have PMIx? Decided once, at the launcher */
#ifndef SERVER_PMIX_WANT_H
#define SERVER_PMIX_WANT_H

#include "bootstrap/plan.h"
#include "common/err.h"
#include "conf/conf.h"
#include "server/job.h"

/* --pmix=yes; with auto where one of the job's programs says in its ELF header that it needs Open MPI (libmpi.so.40),
 * OpenSHMEM or PMIx, and is not told to use PMI by FLUX_PMI_LIBRARY_PATH. Then the job gets its namespace and its
 * nodes' names. 0, -EINVAL (it is asked for, and cannot be) or -ENOMEM. */
int pmix_want(const struct conf *conf, const struct plan *plan, struct job *j, struct err *err);

/* For a job that a rank of `parent` has spawned: the same as its parent's. 0 or -ENOMEM. */
int pmix_want_spawned(const struct job *first, const struct job *parent, uint32_t rank, struct job *j);

#endif

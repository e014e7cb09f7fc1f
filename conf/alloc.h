/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc.h - the allocation of a resource manager that this program runs in. Inside conf/ only.
 *
 * It is known from the environment. What is there must be whole and fit together: half an allocation is an error that
 * names the variable, never a guess.
 */
#ifndef CONF_ALLOC_H
#define CONF_ALLOC_H

#include <stdbool.h>
#include "common/err.h"
#include "common/hostlist.h"
#include "common/span.h"
#include "conf/conf.h"

struct alloc {
    enum alloc_kind kind;   /* ALLOC_NONE: there is none */
    struct hostlist *hosts; /* in the manager's order, with slots; NULL with ALLOC_NONE */
    char *job;              /* the manager's name for the job */
    bool in_step;           /* we are a part of it that may have fewer CPUs than the whole */
};

/* Take conf->hosts from the allocation where none are given and they are to come from there; and see whether those
 * given are in it. 0, -ENOMEM, or -EINVAL where a manager's variables are half there or contradict each other, or where
 * --bootstrap asks for one that is not there. */
int alloc_decide(struct conf *conf, char *const *envp, struct err *err);
void alloc_done(struct alloc *a);

/* A variable's value; empty is as good as unset (NULL). */
const char *alloc_get(char *const *envp, const char *name);

/* Slurm's; 0 with ALLOC_NONE where no variable of it is set. */
int alloc_slurm(char *const *envp, struct alloc *out, struct err *err);
/* Slurm's "2(x3),1": the counts of `names` in order, each multiplied out; all of the text and all of the names must be
 * used up. They are divided by `per_slot` (at least 1), and none becomes less than 1. Adds to `out`. -EINVAL with what
 * is wrong of `text`, or -ENOMEM. */
int alloc_slurm_slots(const struct hostlist *names, struct span text, unsigned per_slot, struct hostlist *out,
                      struct err *err);

/* The others' likewise. */
int alloc_pbs(char *const *envp, struct alloc *out, struct err *err);
int alloc_lsf(char *const *envp, struct alloc *out, struct err *err);
int alloc_sge(char *const *envp, struct alloc *out, struct err *err);

/* Always ALLOC_NONE: the only task of a job of Flux's has this machine alone; one of several is refused. */
int alloc_flux(char *const *envp, struct alloc *out, struct err *err);
/* The instance of FLUX_URI, outside its jobs. Asks the command `flux` that is in PATH, for 10 s at most. */
int alloc_flux_instance(char *const *envp, struct alloc *out, struct err *err);

enum alloc_format {
    ALLOC_REPEATED, /* a host a line, once for each slot */
    ALLOC_PAIRS,    /* host N host N ... */
    ALLOC_QUEUES,   /* host N ..., a line each */
};
/* Add the hosts of `text`, each once, where it stands first, with all its slots. -EINVAL: not in this format, no host,
 * or more than SLOTS_MAX slots; -ENOMEM. On failure some may have been added. */
int alloc_hosts(struct span text, enum alloc_format format, struct hostlist *out, struct err *err);

#endif

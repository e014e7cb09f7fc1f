/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn.h - the spawn calls of both APIs, which differ in how they are given pairs of strings */
#ifndef CLIENT_SPAWN_H
#define CLIENT_SPAWN_H

#include <stddef.h>
#include "client/pm.h"

/* The i-th pair of what a caller gave as a run of pairs. */
typedef struct pm_pair (*spawn_pair_fn)(const void *pairs, size_t i);

struct spawn_args {
    int count;
    const char *const *cmds;
    const int *argcs;          /* NULL: an argv ends with NULL */
    const char **const *argvs; /* NULL, or an entry of it: no arguments */
    const int *maxprocs;
    const int *ninfo; /* NULL: no info */
    const void *const *info;
    int npreput;
    const void *preput;
    spawn_pair_fn info_at, preput_at;
};

/* Check all, take the lock, ask. `name` NULL or `room` 0: the new job's name is not wanted. One of the API's codes. */
int spawn_call(const struct spawn_args *a, char *name, int room, int *errors);

#endif

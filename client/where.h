/* SPDX-License-Identifier: BSD-3-Clause */
/* where.h - what a task's environment says about its PMI server
 *
 * PMI_FD is a descriptor that was inherited; PMI_PORT is "host:port" to connect to, as the one that PMI_ID names. Where
 * both are set PMI_FD wins, as with MPICH. A variable that is set but empty counts as not set.
 */
#ifndef CLIENT_WHERE_H
#define CLIENT_WHERE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/err.h"

struct where {
    int fd;           /* PMI_FD; -1: none */
    const char *port; /* PMI_PORT where there is no PMI_FD, lent by the environment; NULL: none */
    const char *job;  /* PMI_JOBID, lent; NULL: not said. Slurm wants it back in PMI-2's first request. */
    int64_t id;       /* PMI_ID, for `port` only, at most UINT32_MAX; -1: not said */
    int rank, size;   /* PMI_RANK, PMI_SIZE; -1: not said. With an `id` the server knows better. */
    bool spawned;     /* PMI_SPAWNED */
    int64_t map;      /* PMI_KVS_MAP, the inode of the one socket over which keys may be mapped; 0: none */
};

/* 1: `w` says where the server is, and who we are. 0: no PMI variable is set at all, which makes a singleton: `w` is
 * rank 0 of 1. -EINVAL: a number that is none, or the variables are set in part only, and the text says what is
 * missing; a program that was meant to be one of many must not run as many of one. PMI_DEBUG alone says nothing. */
int where_read(char *const *env, struct where *w, struct err *err);

#endif

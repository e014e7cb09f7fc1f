/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_seen.h - does a running process use an MPI that nobody serves? */
#ifndef SERVER_MPI_SEEN_H
#define SERVER_MPI_SEEN_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether `pid` or a process below it has loaded Open MPI's library and has no PMIx in its environment, so that it is
 * alone. `proc` is the proc file system ("/proc"). */
bool mpi_is_alone(const char *proc, pid_t pid);

#endif

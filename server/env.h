/* SPDX-License-Identifier: BSD-3-Clause */
/* env.h - a task's environment, in three steps: what goes along, what the user edits, what tells the rank who it is
 *
 * The first two happen once, at the launcher; the result travels with the job. The third happens on the task's node.
 * Pure: nothing is read from or written to this process's own environment.
 */
#ifndef SERVER_ENV_H
#define SERVER_ENV_H

#include <stdbool.h>
#include <stdint.h>
#include "common/span.h"
#include "conf/conf.h"

/* Does the variable name something of the launcher's own session, host or run, which no task may take for its own?
 *  - PMI_*, PMIX_*, HYDI_*, HYDRA_*: an outer launcher's;
 *  - of OMPI_*, what Open MPI's launcher says about one run and rank (OMPI_COMM_WORLD_*, OMPI_APP_CTX_*,
 * OMPI_MCA_orte_*,
 *    OMPI_MCA_ess*, OMPI_MCA_initial_wdir, ...). Tuning, such as OMPI_MCA_btl, stays;
 *  - of SLURM_*, what srun says about one step and task. What describes the allocation stays. SLURMD_NODENAME goes too;
 *  - DISPLAY, XAUTHORITY, SSH_*, DBUS_*, XDG_RUNTIME_DIR, XDG_SESSION_*, WINDOWID, HOSTNAME. */
bool env_is_local(struct span name);

/* The environment of one `:` part: `own` (the launcher's) without what env_is_local() names, or nothing with
 * --env-none; then its -E in order. -E NAME takes the value from `own` whatever the name; where it is not set there, it
 * is unset. Bytes and order are kept. 0 and a fresh array, or -ENOMEM. */
int env_for_app(char *const *own, const struct conf_app *app, char ***out);

struct env_rank {
    uint32_t rank, size;
    uint32_t local_rank, local_size;
    uint32_t node, nodes;
    bool pmi_fd;     /* descriptor 3 is its PMI socket */
    uint64_t map;    /* the number of that socket's inode, where keys may be mapped over it; 0: no */
    uint16_t port;   /* of its provider's PMI listener on loopback, or 0: none */
    bool spawned;    /* its job was spawned by another one */
    const char *dir; /* its working directory, for PWD */
};

/* Under --serve: COMMAND is no rank, and starts those that come to `port` ("ADDR:PORT"). 0 and a fresh array, or
 * -ENOMEM. */
int env_for_command(char *const *app, const char *port, uint32_t size, const char *dir, char ***out);

/* `app` (of env_for_app) and what one rank is told. 0 and a fresh array, or -ENOMEM. */
int env_for_rank(char *const *app, const struct env_rank *rank, char ***out);

#endif

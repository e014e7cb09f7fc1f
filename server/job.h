/* SPDX-License-Identifier: BSD-3-Clause */
/* job.h - what every node must know to run a job: the body of the job message
 *
 * Made at the root from configuration and plan, sent once down the tree, the same bytes to every node.
 */
#ifndef SERVER_JOB_H
#define SERVER_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/span.h"
#include "server/spawner.h"

#define JOB_APPS_MAX 1024
#define JOB_STRINGS_MAX (1u << 20) /* arguments or variables of one job */

struct job_app {
    char **argv;
    char **env;   /* the tasks' environment but for what differs from rank to rank */
    char *dir;    /* or NULL: the job's */
    char *search; /* where a program without '/' is looked for before PATH; or NULL */
    uint32_t ntasks;
};

struct job {
    uint32_t id;
    uint32_t size;  /* ranks */
    uint32_t nodes; /* nodes that run tasks, for PMI_NODES */
    uint32_t places;
    uint32_t *parent;  /* [places], see tree.h */
    uint32_t *node_at; /* [places] */
    /* Placement as runs in rank order: run i puts the next run_len[i] ranks on node run_node[i]. */
    uint32_t runs;
    uint32_t *run_node, *run_len;
    uint32_t app_count;
    struct job_app *app;
    char *dir;
    char *kvsname;
    char *spawner; /* kvsname of the job that spawned it, or NULL */
    char *mapping; /* PMI_process_mapping, or NULL: not defined */
    char **preput; /* key, value, key, value, ... */
    struct task_limits limits;
    int input; /* a rank, INPUT_NONE or INPUT_ALL of conf.h */
    bool pty;  /* the input rank has a terminal, of `rows` by `cols` at first */
    uint16_t rows, cols;
    bool input_handed; /* the input rank is the launcher's own and gets descriptor 0 itself */
    unsigned connect;  /* enum pmi_connect of conf.h */
    bool subversion2;  /* clients of PMI 1.x are answered 1.2 */
    bool trace;
    bool keep_going;
    uint64_t barrier_warn_ms; /* say which barrier lasts longer; 0: never */
    /* With PMIx; NULL: without, then the next three are empty. */
    char *nspace;
    char **hosts;        /* [nodes], each another name */
    char *parent_nspace; /* of the rank that spawned it, or NULL */
    uint32_t parent_rank;
    unsigned log_level; /* enum log_level that the providers keep to */
};

void job_free(struct job *j);

/* The message body; `out` is filled from its start. */
int job_pack(const struct job *j, struct buf *out);
/* Everything is checked: sizes agree, every rank has a node, every node a place. */
int job_unpack(struct span body, struct job **out, struct err *err);

/* Give a job of `size` ranks its placement: the runs, and the mapping, which is left out where it would be too long for
 * PMI clients. 0 or -ENOMEM. */
int job_place(struct job *j, const uint32_t *node_of);
/* Which node runs each rank, [size], fresh; or NULL. */
uint32_t *job_node_of(const struct job *j);
/* At which place each node is, [nodes], fresh; TREE_NONE of tree.h: at none. Or NULL. */
uint32_t *job_place_of_node(const struct job *j);
/* Where the tasks of `a` run, and what of: as program_find(). */
const char *job_app_dir(const struct job *j, const struct job_app *a);
int job_app_program(const struct job *j, const struct job_app *a, char **path, struct err *err);
/* Index of the `:` part that `rank` belongs to. */
uint32_t job_app_of(const struct job *j, uint32_t rank);

#endif

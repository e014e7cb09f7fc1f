/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_space.h - a job as the PMIx server of one node has to know it: namespace, maps of nodes and ranks. Pure. */
#ifndef SERVER_PMIX_SPACE_H
#define SERVER_PMIX_SPACE_H

#include <stdint.h>
#include "server/job.h"

/* Of a rank in a job of several programs. */
struct pmix_rank {
    uint32_t app, app_rank; /* its program, and which of that one's it is */
    uint32_t node, local;   /* its node among `nodes`, and which of that one's it is */
};

/* Owns its memory; all zero is empty. */
struct pmix_space {
    char *name;    /* of the namespace */
    char *host;    /* this node's name in `nodes` */
    char *nodes;   /* names of the nodes that run ranks, with commas */
    char *procs;   /* the ranks of each, with commas, and semicolons between nodes */
    char *mapping; /* PMI_process_mapping, or NULL */
    char *tmp;     /* a folder that is removed when all is over; NULL: none */
    char *parent;  /* namespace of the rank that spawned it, or NULL */
    uint32_t parent_rank;
    uint32_t node; /* ours */
    uint32_t size, apps;
    uint32_t *local; /* [local_size] ranks of this node, ascending */
    uint32_t local_size;
    struct pmix_rank *rank; /* [size]; NULL: there is one program, and all of this follows from the maps */
};

/* Of a job with PMIx; `node` is ours. 0 or -ENOMEM. */
int pmix_space_make(const struct job *j, uint32_t node, const char *tmp, struct pmix_space *out);
void pmix_space_done(struct pmix_space *s);

#endif

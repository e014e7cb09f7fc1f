/* SPDX-License-Identifier: BSD-3-Clause */
/* node_edge.h - a job's barrier messages and releases on the edges of this node, in pieces; for the files node*.c alone
 *
 * Pieces are made when there is room on the edge, not ahead of it: so a round with much data needs little memory
 * beyond the log, however many children there are. What has to wait keeps its turn.
 */
#ifndef SERVER_NODE_EDGE_H
#define SERVER_NODE_EDGE_H

#include "server/node_priv.h"

/* A barrier message or a release on one edge. */
struct barrier_out {
    const struct barrier_id *id; /* lent for the call */
    uint64_t round;
    uint32_t count; /* up */
    int rc;         /* down */
    unsigned edge;  /* of the kvs: 0 up, kid + 1 down */
    bool whole;     /* the last piece is marked so; else this is only a part of what is to come */
};

int node_edges_setup(struct node_job *j); /* 0 or -ENOMEM */
void node_edges_done(struct node_job *j);
/* All that this edge has not been sent by now, now or as there is room. */
void node_edge_send(struct node_job *j, const struct barrier_out *o);
/* There is room on the edge to the child at `place`, or LINKS_PARENT. */
void node_edges_drain(struct node *n, uint32_t place);
/* All that waits goes now. */
void node_edges_flush(struct node_job *j);

/* node_barrier.c: a message that there is no memory for. `type` 0: at the round's end. */
void node_barrier_no_memory(struct node_job *j, unsigned type, const struct barrier_id *id, uint64_t round);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* clique.h - which ranks share a node, from PMI_process_mapping */
#ifndef CLIENT_CLIQUE_H
#define CLIENT_CLIQUE_H

#include "common/span.h"

/* The ranks on the node of `rank` (0 .. size-1), ascending: `*ranks` is the caller's to free. An absent or empty text
 * is a launcher that does not know: `rank` alone. Where the text ends before `size` it goes on from its first block
 * that begins at node 0, as MPICH reads it, which Hydra relies on. -EINVAL: no such text. -ENOMEM. */
int clique_read(struct span mapping, int rank, int size, int **ranks, int *count);

#endif

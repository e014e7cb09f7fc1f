/* SPDX-License-Identifier: BSD-3-Clause */
/* mapping.h - PMI_process_mapping: which node each rank runs on, as MPICH's "(vector,(first,nodes,ranks),...)"
 *
 * Triplets only, covering every rank exactly once, no wrap-around: the one form that every reader of it understands.
 */
#ifndef COMMON_MAPPING_H
#define COMMON_MAPPING_H

#include <stddef.h>
#include <stdint.h>
#include "common/buf.h"
#include "common/span.h"

/* Add the text for `size` ranks, `node_of[rank]` each. Runs of equal length on neighbouring nodes are one triplet. 0,
 * -ENOMEM, -EINVAL (no ranks), or -E2BIG when the text would be longer than PMI_MAPPING_MAX bytes (then the key is not
 * defined). */
int mapping_write(const uint32_t *node_of, uint32_t size, struct buf *out);
/* The reverse, for tests and clients: fills node_of. -EINVAL: not such a text, or it does not cover `size` exactly;
 * then nothing is written. */
int mapping_read(struct span text, uint32_t *node_of, uint32_t size);
/* The same as MPICH reads it, for clients of other launchers: blocks beyond `size` are not looked at, and where ranks
 * remain the list goes on from its first block that begins at node 0 (from its first block where none does). */
int mapping_read_repeated(struct span text, uint32_t *node_of, uint32_t size);

#endif

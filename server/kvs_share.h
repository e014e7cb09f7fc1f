/* SPDX-License-Identifier: BSD-3-Clause */
/* kvs_share.h - the tables of a kvs in a file in memory, which the node's tasks may map and read (common/kvmap.h)
 *
 * The tables lie there instead of on the heap; nothing is there twice. Room for several times what they hold is set
 * aside, of which only what is used takes memory. When it is used up, all moves to a larger file, and when there can be
 * none, back to the heap. Readers cannot write to the file, shrink it or enlarge it: it is sealed, and the mapping that
 * this process has is the only one that can ever write.
 */
#ifndef SERVER_KVS_SHARE_H
#define SERVER_KVS_SHARE_H

#include <stdint.h>
#include "common/kvtab.h"

struct kvs_share;

/* Moves the tables: what is looked up first, and second. Both are lent. 0, or a negative errno and nothing changed:
 * -ENOSYS where the kernel cannot seal so. */
int kvs_share_new(struct kvs_share **out, struct kvtab *first, struct kvtab *second, uint32_t slots);
/* The tables must not be used any more. NULL is fine, also in all of the following, which do nothing then. */
void kvs_share_free(struct kvs_share *s);

/* To be handed out, lent until the tables change. -ENOMEM: there is none any more. */
int kvs_share_fd(const struct kvs_share *s);

/* Around every change of the index, and of entries that are in it. Not nested. */
void kvs_share_begin(struct kvs_share *s);
void kvs_share_end(struct kvs_share *s);

/* The task in `slot` has put a key of this hash that is only for itself to see; it has none such. */
void kvs_share_waits(struct kvs_share *s, uint32_t slot, uint32_t hash);
void kvs_share_waits_no_more(struct kvs_share *s, uint32_t slot);

#endif

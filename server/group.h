/* SPDX-License-Identifier: BSD-3-Clause */
/* group.h - a set of ranks, as a PMI-1.2 client lists it and as barriers are named by it
 *
 * A client lists ranks in any order, "4,0,2". The name has them ascending, each once, and runs of an even step folded:
 * "0-4/2". So two clients that mean the same ranks name the same barrier, and the node roots of a large job fit
 * BARRIER_NAME_MAX.
 */
#ifndef SERVER_GROUP_H
#define SERVER_GROUP_H

#include <stdbool.h>
#include <stdint.h>
#include "common/buf.h"
#include "common/span.h"

/* "7", "3-9" or "0-8/4" of a name: ranks first, first + step, ... last. */
struct group_part {
    uint32_t first, last, step; /* step >= 1, and last is one of them */
};

/* Put the name of the ranks in `list` at the end of `name`. 0; -EINVAL: no list of numbers; -ERANGE: a rank that is not
 * below `size`; -E2BIG: the name is longer than BARRIER_NAME_MAX; -ENOMEM. */
int group_name(struct span list, uint32_t size, struct buf *name);
/* Cut the next part off the front of a name. 1; 0: it is empty; -EPROTO: it is no name. Parts of a name that came from
 * a peer need not be in order. */
int group_next(struct span *rest, struct group_part *part);
bool group_has(struct span name, uint32_t rank);
/* "NODE:7" is group NODE with tag 7, unless `tag` (of tag=, or none) says another: cuts the tag off. False: it is no
 * number. `*out` is left alone where there is none. */
bool group_cut_tag(struct span *group, struct span tag, int64_t *out);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_pair.h - published keys and values as bytes of a message: who published, key, value, one behind the other. Pure.
 *
 * What a value's bytes mean only the layer that knows PMIx's types can tell.
 */
#ifndef SERVER_PMIX_PAIR_H
#define SERVER_PMIX_PAIR_H

#include <stdint.h>
#include "common/buf.h"
#include "common/span.h"

struct pmix_pair {
    uint32_t job, rank; /* who published it */
    struct span key, value;
};

/* 0, -ENOMEM or -E2BIG (over the cap of `out`); then nothing was added. */
int pmix_pair_add(struct buf *out, const struct pmix_pair *p);
/* Takes the first off `bytes`, which may be from a peer; what it points to stays theirs. 1, 0 (no more), -EPROTO. */
int pmix_pair_next(struct span *bytes, struct pmix_pair *p);

#endif

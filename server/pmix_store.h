/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_store.h - what ranks of a run publish over PMIx, and who waits for it. Pure: the owner has the clock.
 *
 * MPI_Comm_connect and accept of Open MPI 4 look up some six keys of each other before those are published, so that a
 * lookup that says so waits. Values are bytes; see pmix_pair.h.
 */
#ifndef SERVER_PMIX_STORE_H
#define SERVER_PMIX_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/span.h"

struct pmix_store;

/* Who asked: place of the node, and its own number for the question. */
struct pmix_asker {
    uint32_t place, req;
};

/* `pairs` is what was found; lent. rc: 0, -ENOENT or -ETIMEDOUT. Called inside publish, lookup and expire. */
typedef void (*pmix_store_answer_fn)(const struct pmix_asker *who, int rc, struct span pairs, void *arg);

struct pmix_store *pmix_store_new(pmix_store_answer_fn answer, void *arg); /* NULL: out of memory */
void pmix_store_free(struct pmix_store *s);                                /* who waits is not told */

/* All of `pairs` or none. `once`: each goes with its first lookup. What the same job has published under a key is
 * replaced, as MPI_Publish_name of Open MPI has it, unless one of the two is `once`. 0; -EEXIST: a key is another
 * job's, or one is `once`; -EPROTO; -ENOSPC: over PMIX_STORE_KEYS_MAX or PMIX_STORE_BYTES_MAX; -ENOMEM. */
int pmix_store_publish(struct pmix_store *s, struct span pairs, bool once);
/* Keys are those of `pairs`; none is told as none found. `wait`: until all are there, or, where `deadline` (ms) is not
 * 0, then. Answered, now or later, unless it fails: -EPROTO, -ENOSPC, -ENOMEM. */
int pmix_store_lookup(struct pmix_store *s, const struct pmix_asker *who, struct span pairs, bool wait,
                      uint64_t deadline);
/* Keys of `pairs` that a rank of the same job has published go; that there are none is no error. 0 or -EPROTO. */
int pmix_store_unpublish(struct pmix_store *s, struct span pairs);
/* Who has waited until `now` is told so. The next deadline, 0: none. */
uint64_t pmix_store_expire(struct pmix_store *s, uint64_t now);

#endif

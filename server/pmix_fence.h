/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_fence.h - one node's part of the run's PMIx collectives: who is in, and what they bring. Pure.
 *
 * A collective is known by its signature (pmix_sig.h). No number tells one from the next of the same signature: who is
 * in it enters the next one only when this one is over for it, and on every edge its end travels ahead of that.
 * What a node brings is bytes that are put one behind the other in any order; everybody gets all of them.
 */
#ifndef SERVER_PMIX_FENCE_H
#define SERVER_PMIX_FENCE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/buf.h"
#include "common/span.h"

struct pmix_fences;

struct pmix_fence_ops {
    /* Are there members here; at or below which of the children (kid[], all false)? 0 or a negative errno. */
    int (*need)(struct span sig, bool *here, bool *kid, void *arg);
    /* All members here and below are in, with all that they brought; lent. May release it at once. */
    void (*up)(struct span sig, struct span data, void *arg);
    /* It is over for a local entry: 0 and all that was brought, or a negative errno. */
    void (*done)(void *entry, int rc, struct span data, void *arg);
};

/* `ops` and `arg` are lent. NULL: out of memory. */
struct pmix_fences *pmix_fences_new(uint32_t kids, const struct pmix_fence_ops *ops, void *arg);
/* Entries that wait are not told: fail them first. */
void pmix_fences_free(struct pmix_fences *f);

/* 0; -EALREADY: this node is in already; -EPROTO: its members cannot be told, or it has none there; -ENOSPC: too many
 * at once; -E2BIG: more than PMIX_FENCE_BYTES_MAX; -ENOMEM. On failure `entry` is not kept. */
int pmix_fences_enter(struct pmix_fences *f, struct span sig, struct span data, void *entry);
/* A piece of what a child's subtree brings, the last one unless `more`. */
int pmix_fences_child(struct pmix_fences *f, struct span sig, uint32_t kid, struct span data, bool more);
/* A piece of the whole from above, the last one unless `more`. An unknown signature is over here, which is no error. */
int pmix_fences_release(struct pmix_fences *f, struct span sig, struct span data, bool more);
/* To which children a piece goes on; none where the signature is not known. */
void pmix_fences_kids(const struct pmix_fences *f, struct span sig, bool *kid);
/* Everybody who waits here is told `rc`, and it is forgotten who is in. */
void pmix_fences_fail(struct pmix_fences *f, int rc);
/* The signatures that local entries wait in; false ends it. */
void pmix_fences_each(const struct pmix_fences *f, bool (*each)(struct span sig, void *arg), void *arg);

#endif

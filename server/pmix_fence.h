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
 * at once; -E2BIG: more than PMIX_FENCE_BYTES_MAX; -EIO: it is broken; -ENOMEM. On failure `entry` is not kept. */
int pmix_fences_enter(struct pmix_fences *f, struct span sig, struct span data, void *entry);
/* A piece of what a child's subtree brings, the last one unless `more`. */
int pmix_fences_child(struct pmix_fences *f, struct span sig, uint32_t kid, struct span data, bool more);
/* A piece of the whole from above, the last one unless `more`. An unknown signature is over here, which is no error. */
int pmix_fences_release(struct pmix_fences *f, struct span sig, struct span data, bool more);
/* To which children a piece goes on; none where the signature is not known. */
void pmix_fences_kids(const struct pmix_fences *f, struct span sig, bool *kid);
/* Everybody who waits here is told `rc`, and it is forgotten who is in. */
void pmix_fences_fail(struct pmix_fences *f, int rc);

/* Who is awaited? A node waits where somebody here or below is in, and somebody else here or below is not. All of
 * these may be called from within their callbacks, but for the ones above. */
typedef void pmix_fences_fn(struct span sig, void *arg);
/* As pmix_fences_enter(), but a member of this node has gone, perhaps without having been in: it waits, and goes no
 * further. */
int pmix_fences_hold(struct pmix_fences *f, struct span sig, void *entry);
/* Those that local members are in. */
void pmix_fences_each_entered(const struct pmix_fences *f, pmix_fences_fn *fn, void *arg);
void pmix_fences_each_awaiting(const struct pmix_fences *f, pmix_fences_fn *fn, void *arg);
/* Somebody waits in it: keep that in mind. `kid`, all false: at or below which children somebody is awaited; none where
 * it has been in mind already. True: so are members here. */
bool pmix_fences_note(struct pmix_fences *f, struct span sig, bool *kid);
/* Those in mind whose members here are awaited. */
void pmix_fences_each_noted(const struct pmix_fences *f, pmix_fences_fn *fn, void *arg);
/* One more tick has gone by: those that wait here since `ticks` of them, each once. */
void pmix_fences_tick(struct pmix_fences *f, unsigned ticks, pmix_fences_fn *fn, void *arg);
/* It can never be complete: who is in, or enters later, is told `rc` or -EIO. */
void pmix_fences_break(struct pmix_fences *f, struct span sig, int rc);

#endif

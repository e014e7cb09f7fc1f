/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier.h - one node's part of the barriers of one job
 *
 * Several barriers can be under way at once, each known by (session set, group, tag); WORLD of set 0 is PMI-1.1's. A
 * node sends up once all entries it expects from its own tasks and from below are in; the lowest node that holds all
 * members releases it. Counts only: the key-value data travels beside it (kvs.h). No I/O, no loop, no clock.
 */
#ifndef SERVER_BARRIER_H
#define SERVER_BARRIER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/err.h"
#include "common/span.h"

#define BARRIER_NAME_MAX 4096 /* bytes of a group's name, see group.h */

struct barrier_id {
    uint32_t set;      /* session number: PMI_ID = rank + size x set */
    struct span group; /* "WORLD", or as the client named it; lent for the call */
    int64_t tag;
};

/* How many entries a round of this barrier needs, and from where. */
struct barrier_need {
    uint32_t local;       /* from this node's tasks */
    const uint32_t *kids; /* from each child's subtree, `nkids` of them; lent for the call */
    uint32_t total;       /* members in all; local + sum(kids) == total: this node releases */
};

/* A round that is over on this node. Lists are lent for the call. */
struct barrier_done {
    uint64_t round;
    int rc;                /* 0, or < 0: it can never be complete */
    const uint32_t *slots; /* local tasks that wait, in the order in which they entered */
    uint32_t nslots;
    const uint32_t *kids; /* children whose subtree waits, ascending: the owner tells them (id, round, rc) */
    uint32_t nkids;
};

struct barriers;

struct barrier_ops {
    /* Who is needed. Called when a round begins here. Negative errno: no such group; the entry is refused. */
    int (*need)(const struct barrier_id *id, struct barrier_need *need, void *arg);
    /* This node and all below are in: tell the parent. Inside barriers_enter()/barriers_child(). */
    void (*up)(const struct barrier_id *id, uint64_t round, uint32_t count, void *arg);
    /* The round is complete, or failed. May call barriers_enter() for the next round, not barriers_free(). */
    void (*release)(const struct barrier_id *id, const struct barrier_done *done, void *arg);
};

/* NULL: out of memory. */
struct barriers *barriers_new(uint32_t nlocal, uint32_t nkids, const struct barrier_ops *ops, void *arg);
void barriers_free(struct barriers *b);

/* Local task `slot`, a member (only counts are checked here), entered. 0, -EALREADY (it waits in this barrier already),
 * -ERANGE, -ENOENT (need() refused, or all local members are in), -ENOSPC, -ENOMEM; nothing changed on failure.
 * release() for this very slot may come before the call returns. */
int barriers_enter(struct barriers *b, const struct barrier_id *id, uint32_t slot, struct err *err);
/* Child `kid` (0-origin) has all of its subtree in. -EPROTO: wrong round or count, or twice; else as
 * barriers_enter(). */
int barriers_child(struct barriers *b, const struct barrier_id *id, uint32_t kid, uint64_t round, uint32_t count,
                   struct err *err);
/* The parent released (or failed) round `round`. -EPROTO: a round that this node has not sent up. */
int barriers_release(struct barriers *b, const struct barrier_id *id, uint64_t round, int rc, struct err *err);
/* From now on every barrier answers `rc` (< 0) at once, those that wait included (--keep-going and a rank is gone);
 * what comes from children or the parent is ignored, and nothing more is noted. Not from inside the ops. */
void barriers_break(struct barriers *b, int rc);
/* The same for one barrier alone. 0, or as barriers_enter() where it was never heard of. */
int barriers_break_one(struct barriers *b, const struct barrier_id *id, int rc);

/* Rounds completed of a barrier, 0 for one never heard of. */
uint64_t barriers_round(const struct barriers *b, const struct barrier_id *id);
/* Rounds that local task `slot`, a member, has entered of it. */
uint64_t barriers_entered(const struct barriers *b, const struct barrier_id *id, uint32_t slot);

/* Somebody waits in this round, wherever in the tree: keep that in mind. True the first time. */
bool barriers_note(struct barriers *b, const struct barrier_id *id, uint64_t round);
/* Enough has been said of this barrier: from now on no round of it is noted. */
void barriers_note_no_more(struct barriers *b, const struct barrier_id *id);
typedef void (*barriers_fn)(const struct barrier_id *id, uint64_t round, void *arg);
/* Each round in which this node or one below waits for others that are here or below. `fn` may do all but free. */
void barriers_each_awaiting(const struct barriers *b, barriers_fn fn, void *arg);
/* Each round under way here, whoever it waits for. */
void barriers_each_open(const struct barriers *b, barriers_fn fn, void *arg);
/* Called at an even pace: `fn` of each round that barriers_each_awaiting() has for the `ticks`-th time. */
void barriers_tick(struct barriers *b, unsigned ticks, barriers_fn fn, void *arg);
/* The last round noted of each barrier; likewise. */
void barriers_each_noted(const struct barriers *b, barriers_fn fn, void *arg);

/* Local slots that wait in it, ascending, the first `max`; returns how many wait. */
uint32_t barriers_waiting(const struct barriers *b, const struct barrier_id *id, uint32_t *slots, uint32_t max);
/* Children whose subtree has not come in this round although others have; same form. */
uint32_t barriers_awaited_kids(const struct barriers *b, const struct barrier_id *id, uint32_t *kids, uint32_t max);

#endif

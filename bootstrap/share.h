/* SPDX-License-Identifier: BSD-3-Clause */
/* share.h - one node's part of a tree of logins (--rsh-tree): which host it logs in to next, and what it hands to whom
 *
 * Hosts are numbers; a share is a few ranges of them. A node begins with what it was handed (the launcher: with all),
 * takes hosts from the front of it one by one, and deals from its end to those that have come up by its logins. How
 * much follows from two times: how long a login lasts until the host can log in to others itself (login_us), and how
 * long its caller is busy with it before it can begin another (gap_us). In the time that is left everybody can bring up
 * a number of hosts that these two decide; each is dealt in proportion to it. So all run out at about the same time,
 * which is N(t) = N(t - gap) + N(t - login), the best there is. The two are measured; a newcomer is told what its
 * parent knows.
 *
 * Pure: no clock (the owner says what time it is, in microseconds of any origin that never go back), no descriptor,
 * nobody is called. After each event the owner asks share_deal() and share_next() until both have nothing more:
 *
 *      while (share_deal(s, now, &child, &range)) ...send range to child, with share_times()
 *      while (share_next(s, now, &host)) ...start its login
 *      if (share_wants(s, now)) ...tell the parent, once
 */
#ifndef BOOTSTRAP_SHARE_H
#define BOOTSTRAP_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include "bootstrap/ranges.h"

struct share;

struct share_conf {
    uint32_t width;            /* children a node may have, 1 or more; more only where it has none to deal to */
    uint32_t logins;           /* at once, at most, 1 or more */
    uint64_t login_us, gap_us; /* what the parent measured; 0: not known */
    bool is_root;              /* nobody to ask for more, or to hand anything back to */
};

/* What has been measured, or 0, as share_conf has it: for newcomers. */
struct share_times {
    uint64_t login_us, gap_us;
};

struct share *share_new(const struct share_conf *conf); /* NULL: out of memory */
void share_free(struct share *s);                       /* NULL is fine */

/* More to log in to. 0 or -ENOMEM. */
int share_add(struct share *s, struct share_range range);
/* More, but for this node alone, however many it has: others could not. 0 or -ENOMEM. */
int share_keep(struct share *s, uint32_t host);
/* The login of *host is to be started now; it is under way from then on. */
bool share_next(struct share *s, uint64_t now_us, uint32_t *host);
/* A host whose login is under way has come up: it is a child now, without anything to do. 0, -ENOENT or -ENOMEM. */
int share_up(struct share *s, uint32_t host, uint64_t now_us);
/* A login has ended without that. The host is forgotten here: whoever is to try it again adds it. 0 or -ENOENT. */
int share_failed(struct share *s, uint32_t host);
/* `range` is `child`'s now. As long as this says so there is more to hand out. */
bool share_deal(struct share *s, uint64_t now_us, uint32_t *child, struct share_range *range);

/* A child has nothing left that nobody has begun with. 0 or -ENOENT. */
int share_wanted(struct share *s, uint32_t child);
/* A child hands back a part of what it was dealt. 0, -ENOENT (it has not all of that) or -ENOMEM. */
int share_back(struct share *s, uint32_t child, struct share_range range);
/* Logins fail there: nothing more for this child. 0 or -ENOENT. */
int share_close(struct share *s, uint32_t child);
/* `host` is `child`'s no more, but not to be logged in to from here either, as when the child could not. 0 or -ENOENT.
 */
int share_drop(struct share *s, uint32_t child, uint32_t host);
/* A child is lost, and all below it: what it was dealt, a range a call; that is nobody's then, and whoever is to try it
 * again adds it. False: that was all, and the child is forgotten. */
bool share_lost(struct share *s, uint32_t child, struct share_range *range);
/* Has `child` been dealt all of `range`, and still has it? */
bool share_dealt(const struct share *s, uint32_t child, struct share_range range);
/* Which child has been dealt `host`, or is it; -1: none. */
int64_t share_child_of(const struct share *s, uint32_t host);

/* Logins fail here: no more are started, and what nobody has begun with is handed back, a range a call; false: that was
 * all. */
bool share_give_up(struct share *s, struct share_range *range);
/* There is nothing left to begin with, although there could be. True once; again after the next share_add(). */
bool share_wants(struct share *s, uint64_t now_us);

struct share_times share_times(const struct share *s);
uint32_t share_left(const struct share *s);      /* that nobody has begun with */
uint32_t share_under_way(const struct share *s); /* logins */
uint32_t share_children(const struct share *s);

#endif

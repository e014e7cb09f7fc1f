/* SPDX-License-Identifier: BSD-3-Clause */
/* logins.h - one node's part of the tree of logins (--rsh-tree): what it does when hosts come up, fail or are lost
 *
 * The same at the launcher and at every provider. Places are the launcher's, 0, and from 1 the other nodes' in order.
 * The schedule is bootstrap/share's, the connections are brood's; starting a login is its owner's. What happens below
 * goes up in as few messages as it may: who has joined is gathered for a moment.
 *
 * A node hands back what it cannot do: a host that could not be logged in to from here goes to the launcher; where no
 * login works at all, what nobody has begun with goes back to the parent, who deals it to others. A
 * child that is lost before all are in leaves all that it was dealt, and is logged in to again.
 */
#ifndef SERVER_LOGINS_H
#define SERVER_LOGINS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/io/tls.h"
#include "server/brood.h"
#include "server/links.h"
#include "server/logins_msg.h"

struct logins;

struct logins_ops {
    /* Start the login of the host at `place`. What comes of it is told by logins_key() and logins_login_failed(). */
    int (*start)(uint32_t place, void *arg, struct err *err);
    /* Why it is not up yet, "STAGE: reason"; at a provider. */
    void (*why)(uint32_t place, struct buf *out, void *arg);
    /* It is given up: nothing more is to come of it. */
    void (*cancel)(uint32_t place, void *arg);
    /* It is up, by a login of this node. */
    void (*on_up)(uint32_t place, bool attached, void *arg);
    /* As one logs in to it; lent. */
    const char *(*host)(uint32_t place, void *arg);
    /* To the parent; NULL at the launcher, which has the others: */
    void (*send_up)(unsigned type, struct span body, void *arg);
    void (*on_joined)(uint32_t place, uint32_t parent, void *arg);
    /* Not any more. */
    void (*on_unjoined)(uint32_t place, void *arg);
    /* The launcher is about to log in to its `one` itself. */
    void (*on_failed_from)(const struct logins_note *failed, void *arg);
    /* Both: a child was lost too often; our own place: we cannot go on. */
    void (*on_lost)(uint32_t place, const struct err *why, void *arg);
    void (*on_stranger)(void *arg);
    void *arg;
};

struct logins_conf {
    const struct logins_how *how; /* lent, outlives us */
    uint32_t place;               /* 0: the launcher */
    struct brood_conf brood;
    struct share_times times; /* what the parent measured */
    uint64_t limit_ms;        /* of one login from a provider */
};

int logins_open(uv_loop_t *loop, const struct logins_conf *conf, const struct logins_ops *ops, struct logins **out,
                struct err *err);
uint16_t logins_port(const struct logins *l);

/* To be logged in to, from here or from below: at the launcher all of them, at a provider what its parent hands over.
 * 0, -EEXIST or -ENOMEM. */
int logins_add(struct logins *l, struct share_range range);
/* The child that has been handed `place`; -1: none. */
int64_t logins_child_of(const struct logins *l, uint32_t place);
/* A key came back over the login of `place`. */
int logins_key(struct logins *l, uint32_t place, const char *key);
/* The login of `place` has failed. At a provider; the launcher's bootstrap tries it again by itself. */
void logins_login_failed(struct logins *l, uint32_t place, const char *text);
/* No login can be done here at all. */
void logins_give_up(struct logins *l, const char *text);

/* Is it one of the messages that come up from child to child? */
bool logins_is_msg(unsigned type);
/* 0, or a negative errno and what is wrong with it. */
int logins_msg(struct logins *l, uint32_t child, unsigned type, struct span body, struct err *err);
/* The edge to a child has ended. False: all were in, so that it is a lost node like any other. */
bool logins_child_lost(struct logins *l, uint32_t child, const struct err *why);

/* All nodes of the run are in: how many strangers there were. */
struct strangers logins_all_in(struct logins *l);
void logins_close(struct logins *l); /* NULL is fine; memory goes with the loop */

#endif

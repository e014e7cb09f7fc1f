/* SPDX-License-Identifier: BSD-3-Clause */
/* logins_msg.h - what nodes tell each other while they log in to others (--rsh-tree). Pure */
#ifndef SERVER_LOGINS_MSG_H
#define SERVER_LOGINS_MSG_H

#include <stdbool.h>
#include <stdint.h>
#include "bootstrap/ranges.h"
#include "bootstrap/share.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/hostlist.h"
#include "common/msg.h"

/* What a newcomer has to know of how logins are done; the same for all nodes of a run. */
struct logins_how {
    uint32_t places; /* of the tree, the root's among them; 2 or more */
    uint32_t self;   /* the root's own node, or TREE_NONE: places are the other nodes, in order, from 1 */
    uint32_t width, logins;
    unsigned level;  /* enum log_level: of what a node says itself */
    unsigned attach; /* enum attach_mode */
    char *program;   /* pmi-start on the other hosts; owned */
    char *script;    /* a script of the user's own, or NULL; owned */
};

void logins_how_put(const struct logins_how *how, struct msg_out *m);
/* From a welcome. 0; -ENOENT: there is nothing of it; -EPROTO or -ENOMEM. */
int logins_how_get(const struct msg_in *m, struct logins_how *out, struct err *err);
void logins_how_done(struct logins_how *how);
/* Which node is at `place` (1 .. places - 1)? */
uint32_t logins_how_node(const struct logins_how *how, uint32_t place);

/* share (down) */
struct logins_share {
    struct share_range range; /* of places */
    struct share_times times;
    struct hostlist *hosts; /* as one logs in to them: range.count of them; owned */
};

int logins_share_get(struct span body, uint32_t places, struct logins_share *out, struct err *err);

/* joined, unjoined, back, login-failed (up). Which keys there are is different for each; arrays are owned. */
struct logins_note {
    uint32_t *place, *parent; /* joined: [count] */
    struct ranges ranges;     /* unjoined, back */
    uint32_t count;
    uint32_t one;  /* unjoined: who is lost; login-failed: who was to be logged in to */
    uint32_t from; /* login-failed: from where */
    uint32_t left; /* login-failed: how many that leaves to others, as none has worked there; 0: others do, or may */
    bool closed;   /* back: no more for this child */
    char *text;    /* unjoined, login-failed: why; owned */
};

/* 0 or -ENOMEM; what msg_out_done() finds comes on top of it. */
int logins_note_put(const struct logins_note *note, unsigned type, struct msg_out *m);
int logins_note_get(struct span body, unsigned type, uint32_t places, struct logins_note *out, struct err *err);
void logins_note_done(struct logins_note *note);

#endif

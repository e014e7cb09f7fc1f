/* SPDX-License-Identifier: BSD-3-Clause */
/* join_root_priv.h - what join_root.c (who comes) and join_seat.c (where they sit) share; for them alone */
#ifndef SERVER_JOIN_ROOT_PRIV_H
#define SERVER_JOIN_ROOT_PRIV_H

#include <netinet/in.h>
#include "common/limits.h"
#include "server/expected.h"
#include "server/join_root.h"

/* A connection that has no place among the links: not known yet, or on its way to its parent. */
struct guest {
    struct join_root *owner;
    struct conn *conn;
    struct guest *next;
    bool held;      /* said hello, waits for its key line */
    uint32_t place; /* 0: none yet */
    uint32_t run, index;
    uint64_t instance;      /* the same for all connections of one provider */
    bool attached, leaving; /* told good-bye; its end is no loss */
    int64_t node;           /* as it says itself, or -1; then also: */
    uint32_t nodes;         /* how many there are, as it says */
};

/* A place, from the moment it is given out. */
struct seat {
    uint32_t node;
    uint64_t instance;
    struct guest *guest; /* its first connection, until it is wired; NULL for children of the root */
    char **addrs;        /* where it listens for children, "ADDR:PORT"; NULL: not yet */
    bool wired, sent;    /* its place message went out */
};

/* What was said of whom: who is refused asks again and again, from another port each time. */
struct warned {
    char ip[INET6_ADDRSTRLEN + 2];
    int64_t what; /* a node's number, or why the connection has ended: negative errno */
};

struct join_root {
    const struct join_root_ops *ops; /* lent */
    void *arg;
    struct links *links; /* lent */
    struct tls_ctx *ctx; /* shared, counted */
    struct listener *listener;
    struct guest *guests;
    uint32_t count, taken, wired; /* places, root included */
    unsigned fanout;
    bool by_secret, closing;
    bool stopped;                            /* nobody is let in any more, and the key of the run is wiped */
    uint32_t nodes;                          /* of the run, our own included */
    const char *noun;                        /* what a node is called; static */
    struct warned warned[JOIN_WARNINGS_MAX]; /* words about those who could not join */
    unsigned warned_count;
    struct seat *seat;
    uint32_t *parent, *node, *node_of_index;
    bool *joined; /* [node] of the highest node + 1 */
    uint32_t node_max;
    struct expected expected;
    uint8_t run_key[TLS_PSK_MIN];
};

void join_guest_remove(struct guest *g);

/* The connection of the provider at its place becomes an edge of the root. */
void join_take_child(struct join_root *j, struct guest *g);
/* Tell the provider at `place` where its parent listens, if that is known. */
void join_send_place(struct join_root *j, uint32_t place);
/* MSG_LISTENING and MSG_PLACED. */
void join_seat_listens(struct join_root *j, uint32_t place, struct span body);
void join_seat_placed(struct guest *g, struct span body);

#endif

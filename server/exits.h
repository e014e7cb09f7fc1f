/* SPDX-License-Identifier: BSD-3-Clause */
/* exits.h - ends of tasks, in a list and in the message that tells them
 *
 * Each node gathers those of its own tasks and of all nodes below it, so that a run that ends brings the root a message
 * from each of its children, not one from each node. In the order in which they were added. Pure.
 */
#ifndef SERVER_EXITS_H
#define SERVER_EXITS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/err.h"
#include "common/msg.h"

struct exit_one {
    uint32_t rank, pid;
    uint32_t status; /* as wait() says it */
};

struct exits {
    struct exit_one *one; /* [count], room for cap */
    uint32_t count, cap;
    uint64_t told;  /* for the owner: how many have been in messages */
    bool has_apart; /* one of them never began PMIx, in a job that has it: */
    uint32_t apart; /* this rank */
};

void exits_done(struct exits *e);
/* Empty again. */
void exits_clear(struct exits *e);
/* 0 or -ENOMEM. */
int exits_add(struct exits *e, const struct exit_one *one);
/* Of a message; they come behind those that are there. 0; -EPROTO, -ENOENT, -ENOMEM: then none has been added. */
int exits_read(struct exits *e, const struct msg_in *m, struct err *err);
/* Into a message: 0 or -ENOMEM. */
int exits_put(const struct exits *e, struct msg_out *m);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier_msg.h - one round of a barrier, in messages between nodes and in those for people */
#ifndef SERVER_BARRIER_MSG_H
#define SERVER_BARRIER_MSG_H

#include "common/msg.h"
#include "server/barrier.h"

/* As `set`: no barrier but what ranks wait for over PMIx, and `group` is its name (pmix_sig.h). It has no rounds. */
#define BARRIER_SET_PMIX UINT32_MAX

/* `round` counts from 0 throughout. */
void barrier_put(struct msg_out *m, const struct barrier_id *id, uint64_t round);
/* `id` views into the body. 0 or -EPROTO, -ENOENT. */
int barrier_read(const struct msg_in *m, struct barrier_id *id, uint64_t *round, struct err *err);
/* "barrier 3", "barrier 1 of ranks 0-4/2 with tag 7 in session 1". */
void barrier_text(const struct barrier_id *id, uint64_t round, char *out, size_t size);

#endif

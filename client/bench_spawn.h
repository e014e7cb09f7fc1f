/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_spawn.h - jobs that a job starts: how long it takes until the server says so, and until the new tasks answer
 *
 * Rank 0 has copies of this program started, with a pair in their KVS that no other round has. Each copy publishes a
 * name made of it, by which rank 0 knows that the pair arrived and that the copy runs with the rank it should have.
 */
#ifndef CLIENT_BENCH_SPAWN_H
#define CLIENT_BENCH_SPAWN_H

#include "client/bench_opts.h"
#include "client/bench_team.h"

/* A collective call; the other ranks wait in barriers. -EOPNOTSUPP: the server refuses. */
int spawn_run(struct team *t, const struct bench_opts *o, struct err *err);

/* What a copy does. */
int spawned_run(struct team *t, struct err *err);

#endif

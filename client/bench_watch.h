/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_watch.h - a deadline for every wait, also for those inside of a library that is not ours
 *
 * A thread looks on from time to time; what is measured pays for it with a store or two. When a wait is over its limit
 * the thread says what was waited for, and ends the process with status 1: nothing better can be done while the other
 * thread sits in somebody's read().
 */
#ifndef CLIENT_BENCH_WATCH_H
#define CLIENT_BENCH_WATCH_H

#include <stdint.h>
#include "common/err.h"

int watch_start(uint64_t timeout_ms, struct err *err);

/* For the message; until then none is named. */
void watch_rank(int rank);

/* A wait begins at `now_ns` (monotonic). `what` is "the reply to get", say, and a constant; `key` more of it, or NULL,
 * and must stay readable until the wait ends. */
void watch_begin(const char *what, const char *key, uint32_t session, uint64_t now_ns);
void watch_end(void);

uint64_t now_ns(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* join_find.h - reach a launcher that is known by name: look the name up, dial what it has, and again
 *
 * The name may not be known yet, or lead somewhere else the next time, so it is looked up anew for each round of
 * dialling; rounds are short at first, and between them there are pauses that grow, with jitter. A peer that turns us
 * away, for it has another version or secret, or a run that has begun, ends it: at once, or, where names move, when
 * there has been such a one for 30 s; until then it may be the launcher of the run before, or somebody else's at an
 * address that was ours.
 */
#ifndef SERVER_JOIN_FIND_H
#define SERVER_JOIN_FIND_H

#include <uv.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/io/dialer.h"

struct join_find;

/* `conf` is as for a dialer, but that `addrs` is not used: `where`, "NAME:PORT" as conf_join_parse() reads it, is in
 * its place. `others_too` says that names move. */
int join_find_open(uv_loop_t *loop, const char *where, const struct dialer_conf *conf, struct join_find **out,
                   struct err *err);
/* For tests: how long it may be turned away; 0: as usual. */
void join_find_set_patience(uint64_t ms);
/* What came of it so far. */
void join_find_state(const struct join_find *f, struct buf *out);
/* No callback comes after it. Idempotent through NULL. The memory goes with the loop, which a look-up under way may
 * hold up for as long as the system's resolver takes. */
void join_find_close(struct join_find *f);

#endif

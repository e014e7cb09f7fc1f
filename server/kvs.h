/* SPDX-License-Identifier: BSD-3-Clause */
/* kvs.h - one job's keys on one node: what the tasks put, what came over the tree, what is readable
 *
 * An append-only log of entries (an arena of bytes, no pointers) with an index over it. A put waits in its rank's own
 * store, readable by that rank alone, until the rank enters a barrier: kvs_commit() then stamps the entries with (WORLD
 * rounds the rank has completed, rank, sequence) and appends them to the log. kvs_install() makes all that is in the
 * log readable; of entries with the same key the largest stamp wins, so that every node agrees. Keys that begin with
 * "local::" never enter the log and are readable on the node at once.
 * Each edge of the node (0: parent, 1..: children) has a mark: what it has been sent. What came in over an edge is not
 * sent back over it. Blocks are opaque runs of whole entries: a node hands them on without decoding. Pure: no I/O.
 * Overhead: at most 32 bytes a key. Superseded entries are squeezed out once they are the larger part, sent or not
 * (what superseded them is in the log as well), unless they are held; so 100,000 rounds over the same keys need no more
 * memory than a few.
 */
#ifndef SERVER_KVS_H
#define SERVER_KVS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/err.h"
#include "common/span.h"

struct kvs;

/* `edges` >= 1 (edge 0 is the parent, also at the root, where nothing is ever asked for it: pass has_parent false
 * and its mark does not hold back squeezing). Local ranks are numbered by slot 0..nlocal-1. NULL: out of memory. */
struct kvs *kvs_new(unsigned nlocal, unsigned edges, bool has_parent);
void kvs_free(struct kvs *k);

/* Copies. The caller has checked lengths (kvtab.h), and that neither holds NUL; newlines come with PMI-2. 0, -ENOMEM or
 * -ENOSPC (KVS_BYTES_MAX). */
int kvs_put(struct kvs *k, unsigned slot, struct span key, struct span value);
/* A pair given before any task starts (process mapping, --preput); readable at once, kept on the node. A task's put
 * of the same key hides it. -EINVAL: empty, too long, or with NUL or newline; else as kvs_put(). */
int kvs_preput(struct kvs *k, struct span key, struct span value);
/* What `slot` sees: its own waiting puts first, then what is installed, then what the node keeps. 0 or -ENOENT;
 * `*value` is lent until the next call. */
int kvs_get(struct kvs *k, unsigned slot, struct span key, struct span *value);

/* The rank in `slot` enters a barrier: its waiting puts go to the log; they stay readable by it meanwhile. 0,
 * -ENOMEM or -ENOSPC, and nothing changed. */
int kvs_commit(struct kvs *k, unsigned slot, uint32_t rank, uint64_t world_round);
/* A block came over `edge`. -EPROTO: not a run of whole entries with lawful lengths; -ENOMEM, -ENOSPC; nothing changed.
 * Not readable before kvs_install(). */
int kvs_append(struct kvs *k, unsigned edge, struct span block, struct err *err);
/* Where the log ends now: what it has up to here can be sent later, whatever comes behind it meanwhile. Holds until the
 * next kvs_install() that is not held back. */
uint32_t kvs_end(const struct kvs *k);
/* As long as there are more calls with true than with false nothing is squeezed out, and ends stay what they are. */
void kvs_hold(struct kvs *k, bool on);
/* The next run of entries before `end` that `edge` has not been sent, at most `max` bytes (>= 2048); an empty span when
 * there is none. Moves the mark. Lent until the next call. */
struct span kvs_unsent_to(struct kvs *k, unsigned edge, uint32_t end, size_t max);
/* The same before the end of the log. */
struct span kvs_unsent(struct kvs *k, unsigned edge, size_t max);
bool kvs_has_unsent(const struct kvs *k, unsigned edge, uint32_t end);
/* Make the log readable. 0 or -ENOMEM (may be tried again). */
int kvs_install(struct kvs *k);

/* A descriptor of a file in memory that has what is readable, as of now and from here on, for the node's tasks to map
 * and read (common/kvmap.h). Lent until the next call that changes anything. Made when it is first asked for; what is
 * in it is nowhere else. A negative errno: there is none to be had. */
int kvs_map(struct kvs *k);

struct kvs_stats {
    size_t keys;        /* readable by all: installed, and kept on the node */
    size_t live_bytes;  /* their keys and values alone */
    size_t arena_bytes; /* allocated, waiting puts included */
    size_t index_bytes;
};
struct kvs_stats kvs_stats(const struct kvs *k);

#endif

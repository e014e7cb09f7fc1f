/* SPDX-License-Identifier: BSD-3-Clause */
/* links.h - a node's edges of the tree: one connection to the parent, one to each child
 *
 * Owns the connections it is given. Knows nothing of what the messages mean.
 */
#ifndef SERVER_LINKS_H
#define SERVER_LINKS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/err.h"
#include "common/io/conn.h"
#include "common/span.h"

#define LINKS_PARENT UINT32_MAX /* the parent's place, where a call says "which edge" */

struct links;

struct links_ops {
    /* A message from the parent or from the child at `place`. */
    void (*on_msg)(uint32_t place, unsigned type, struct span body, void *arg);
    /* An edge ended although links_finish() was not called. The edge is already gone. */
    void (*on_lost)(uint32_t place, const struct err *why, void *arg);
    /* More may be sent on this edge after links_up_full() or links_is_busy(). */
    void (*on_drain)(uint32_t place, void *arg);
    /* After links_finish(): every edge has closed. */
    void (*on_closed)(void *arg);
};

struct links *links_new(const struct links_ops *ops, void *arg); /* NULL: out of memory */
/* All edges must have closed. */
void links_free(struct links *l);

/* The connection is trusted already; its messages come to on_msg from now on. -ENOMEM: it closes, and nobody hears of
 * it any more. */
int links_add(struct links *l, uint32_t place, struct conn *c);

uint32_t links_child_count(const struct links *l);
uint32_t links_child_place(const struct links *l, uint32_t i);
bool links_has(const struct links *l, uint32_t place);

/* Where `place` is LINKS_PARENT: up. An edge that is not there: -ENOENT. */
int links_send(struct links *l, uint32_t place, unsigned type, struct span body, bool data);
/* To every child. */
void links_send_down(struct links *l, unsigned type, struct span body, bool data);
/* Bytes that wait to be sent, on all edges. */
size_t links_queued(const struct links *l);
/* Data should not be sent up for now. */
bool links_up_full(const struct links *l);

/* What went over all edges so far, those included that have closed: whole messages, and bytes as they are on the wire,
 * from the beginning of each connection. */
struct links_stats {
    uint64_t msgs_in, msgs_out, bytes_in, bytes_out;
    uint32_t children; /* the most at a time */
};
struct links_stats links_stats(const struct links *l);

/* What can wait should not be sent on this edge for now. No such edge: false. */
bool links_is_busy(const struct links *l, uint32_t place);

/* Deadlines of silence off (and on again). */
void links_pause(struct links *l, bool paused);
/* Close every edge; `flush`: what is queued is sent first. Where there is no edge, on_closed comes at once.
 * NULL is fine. */
void links_finish(struct links *l, bool flush);

#endif

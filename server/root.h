/* SPDX-License-Identifier: BSD-3-Clause */
/* root.h - the launcher's view of the run: from "all are in" to the exit status
 *
 * Sends the job, waits until every node is ready, lets it go; keeps account of the ranks; decides by blame.h what the
 * cause of a failure is; ends the run (TERM, grace, KILL) and says when it is over. It talks to the tree through one
 * function each way: what it sends goes to its own node, which hands it on.
 */
#ifndef SERVER_ROOT_H
#define SERVER_ROOT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "bootstrap/plan.h"
#include "common/err.h"
#include "common/span.h"
#include "conf/conf.h"
#include "server/job.h"

/* Exit statuses of the launcher's own; see the manual. */
#define EXIT_USAGE 2
#define EXIT_HOST 69
#define EXIT_TIMEOUT 124
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127
#define EXIT_CLOSED_OUTPUT 141

struct root;
struct terminal;

struct root_ops {
    /* A message to every node, this one included. */
    void (*send)(unsigned type, struct span body, bool data, void *arg);
    /* The run is over on every node and all output is written: close everything, then exit with `status`. Once. */
    void (*on_done)(int status, void *arg);
    /* Hosts that have not joined, folded, for messages during the start. */
    void (*waiting)(struct buf *names, uint32_t *joined, uint32_t *total, void *arg);
    /* The node at a place that was given out before all were in; -1: none. */
    int64_t (*node_at)(uint32_t place, void *arg);
    /* Nothing more will be started: close the bootstrap and the listener (a failure before all are in, or all are in).
     * */
    void (*start_over)(void *arg);
    /* What the launcher has received and sent over its links so far, in words. */
    void (*traffic)(struct buf *out, void *arg);
};

struct root_conf {
    const struct conf *conf; /* lent */
    const struct plan *plan; /* lent */
    struct job *job;         /* owned from here on, also on failure; its parent/node_at are filled by root_wired() */
    bool input_handed;
    struct terminal *terminal; /* lent; NULL: no --pty */
};

int root_open(uv_loop_t *loop, struct root_conf *conf, const struct root_ops *ops, void *arg, struct root **out,
              struct err *err);
void root_close(struct root *r);

/* Every provider is in its place. */
void root_wired(struct root *r, const uint32_t *parents, const uint32_t *nodes, uint32_t places);
/* One line for all of them: so many connections of strangers were dropped. */
void root_tell_strangers(uint64_t count);
/* The start failed; `text` is one line or several. */
void root_start_failed(struct root *r, const char *text);
/* A node went away before it was wired. */
void root_node_lost(struct root *r, uint32_t node, const char *text);
/* From the tree. */
void root_up(struct root *r, unsigned type, struct span body);
/* The root's own node and all below have finished. */
void root_finished(struct root *r);
/* A signal to the launcher that ends the run (INT, TERM, HUP) or is handed on (the others). */
void root_signal(struct root *r, int sig);
/* --pty: the terminal's size has changed; it is to be raw again (if there is somebody for it), or not. */
void root_window(struct root *r);
void root_terminal(struct root *r, bool raw);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* keeper_wire.h - what worker and keeper say to each other over their socketpair
 *
 * Both are the same binary on one host, so numbers are in its own byte order and the format is nobody else's business.
 * A message is a struct keeper_head and a body. Descriptors (SCM_RIGHTS) go with the first byte of the message that
 * needs them.
 */
#ifndef SERVER_KEEPER_WIRE_H
#define SERVER_KEEPER_WIRE_H

#include <stdint.h>
#include <sys/types.h>
#include "common/buf.h"
#include "common/span.h"
#include "server/task_exec.h"

enum keeper_type {
    KEEPER_SPAWN = 1, /* to the keeper: a struct spawn_req */
    KEEPER_KILL,      /* to the keeper: note {id, signal} */
    KEEPER_STARTED,   /* to the worker: note {id, pid} */
    KEEPER_FAILED,    /* to the worker: note {id, stage, errno} */
    KEEPER_EXITED     /* to the worker: note {id, pid, wait status} */
};

struct keeper_head {
    uint32_t len;  /* of the body */
    uint16_t type; /* enum keeper_type */
    uint16_t nfds; /* descriptors that came with it */
};

/* The body of everything but KEEPER_SPAWN. */
struct keeper_note {
    uint32_t id;
    int32_t a, b;
};

#define KEEPER_FDS_MAX 4 /* of one message */

/* Append a message. 0, -ENOMEM or -E2BIG; nothing changed on failure. */
int keeper_note_add(struct buf *out, enum keeper_type type, const struct keeper_note *note);
/* `fds` (KEEPER_FDS_MAX long) gets the descriptors of `req` that have to go along, in order; `*nfds` how many. */
int keeper_spawn_add(struct buf *out, const struct spawn_req *req, int *fds, unsigned *nfds);

/* The first message in `in`. Its length in all; 0: not all there yet; -EPROTO or -E2BIG. `body` is lent. */
ssize_t keeper_wire_next(struct span in, struct keeper_head *head, struct span *body);

/* -EPROTO where the body is not one. */
int keeper_note_parse(struct span body, struct keeper_note *note);
/* `fds[0..nfds-1]` came with it. Strings of `req` lie in `body`, `limits` backs `req->limits`; release with
 * keeper_spawn_done(). -EPROTO or -ENOMEM. */
int keeper_spawn_parse(struct span body, const int *fds, unsigned nfds, struct spawn_req *req,
                       struct task_limits *limits);
void keeper_spawn_done(struct spawn_req *req);

/* One sendmsg(), with descriptors if nfds > 0. Never raises SIGPIPE, never waits. Bytes sent or negative errno. */
ssize_t keeper_wire_send(int sock, struct span bytes, const int *fds, unsigned nfds);
/* One recvmsg(). Adds to `fds` (close-on-exec; room for KEEPER_FDS_MAX more) and `*nfds`. Bytes, 0: the other side is
 * gone, or negative errno; -EMFILE: a descriptor was lost on the way. */
ssize_t keeper_wire_recv(int sock, void *p, size_t len, int *fds, unsigned *nfds);

#endif

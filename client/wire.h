/* SPDX-License-Identifier: BSD-3-Clause */
/* wire.h - a blocking connection to a PMI server: lines (PMI-1) and frames (PMI-2), out and in
 *
 * No loop, no lock, no state of the protocol. A process may have many of these; each is used by one thread at a time.
 * All calls retry on EINTR, wait where the descriptor is non-blocking, and never let SIGPIPE through. After a failure
 * the connection is of no more use, and every later call says so (-ENOTCONN). What is received is lent until the next
 * call on the same connection.
 */
#ifndef CLIENT_WIRE_H
#define CLIENT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "client/where.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/pmi1.h"
#include "common/span.h"

/* A server answers its first question at once. One that does not, is none, or stands still for good; what is asked
 * later may rightly take any time, as a barrier does. */
#define WIRE_FIRST_MS 60000

struct wire {
    int fd;         /* -1: not open */
    int fd_flags;   /* what an inherited descriptor had for F_GETFD */
    bool is_own;    /* we opened it, so we close it */
    bool is_socket; /* MSG_NOSIGNAL can be used */
    bool is_broken;
    int first_ms;  /* how long the first bytes may take; 0: they have come */
    int *passed;   /* where a descriptor goes that comes along; NULL: none is expected, and it is dropped */
    struct buf in; /* received */
    size_t used;   /* of it, bytes that were given out */
};

/* Any later call is safe on it. */
#define WIRE_CLOSED ((struct wire){.fd = -1})

/* Take an inherited descriptor, which is not closed by wire_close(): the next user in this process may begin anew on
 * it. While it is open here it is closed on exec: a program started meanwhile, which would find PMI_FD in its
 * environment, must not speak in between. -EBADF: there is no such descriptor. */
int wire_open_fd(struct wire *w, int fd, struct err *err);

/* Connect to "host:port"; an IPv6 address in brackets. Tries every address of the name. */
int wire_connect(struct wire *w, const char *host_port, struct err *err);

/* One of the above. */
int wire_open(struct wire *w, const struct where *where, struct err *err);

/* Also fine on a closed one. */
void wire_close(struct wire *w);

/* Write all of it. */
int wire_send(struct wire *w, struct span bytes, struct err *err);

/* One line without its newline, of any length up to WIRE_LINE_MAX (-E2BIG). */
int wire_line(struct wire *w, struct span *line, struct err *err);

/* The body of one PMI-2 frame. -EPROTO: what stands before it is no length. */
int wire_frame(struct wire *w, struct span *body, struct err *err);

/* Read one PMI-1 reply and cut it. -EPROTO, and the connection is broken, where it is not "cmd=`reply` ..." with an rc
 * that is a number. `*rc` is that number, 0 where there is none. */
int wire_reply(struct wire *w, const char *reply, struct pmi_line *line, int *rc, struct err *err);

/* Send `request` (whole lines, newlines included) and read its one reply. */
int wire_ask(struct wire *w, struct span request, const char *reply, struct pmi_line *line, int *rc, struct err *err);

/* The first exchange of PMI-1 over PMI_PORT: which rank of how many is `id`. -EACCES: the server does not know it. */
int wire_initack(struct wire *w, uint32_t id, int *rank, int *size, struct err *err);

/* Begin PMI-1. -EPROTONOSUPPORT: the server does not speak it (the connection is still good). */
int wire_init1(struct wire *w, struct err *err);

#endif

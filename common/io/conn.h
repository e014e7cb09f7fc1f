/* SPDX-License-Identifier: BSD-3-Clause */
/* conn.h - one link between two nodes: TCP, a version prologue, TLS, messages
 *
 * Each side first sends 16 bytes in the clear: magic "pmistart", 2 bytes lowest and 2 bytes highest protocol version, 4
 * bytes, of which the first is 1 where nobody is let in any more, and the others are zero. Then TLS, then frames. Until
 * conn_trust() the peer has 10 s and 4 KiB in all. Control messages go ahead of data messages; each kind keeps its
 * order. Pings keep an idle link alive, and one that is silent for LINK_LOST_MS is closed with -ETIMEDOUT. All calls
 * are legal inside callbacks; after on_close the conn is gone.
 */
#ifndef COMMON_IO_CONN_H
#define COMMON_IO_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/err.h"
#include "common/io/tls.h"
#include "common/span.h"

/* Tests build a program of another version. */
#ifndef PROTO_VERSION_MIN
#define PROTO_VERSION_MIN 1
#define PROTO_VERSION_MAX 1
#endif

struct conn;

struct conn_ops {
    /* TLS is up (a TLS 1.3 client is up before the server has judged it: only an answered hello counts). */
    void (*on_up)(struct conn *c, void *arg);
    /* A whole message; `body` is lent for the call. */
    void (*on_msg)(struct conn *c, unsigned type, struct span body, void *arg);
    /* A queue has fallen below its low mark after conn_is_full() or conn_is_busy(). May be NULL. */
    void (*on_drain)(struct conn *c, void *arg);
    /* Exactly once, last, never from inside conn_close(): it comes from the loop. why->code 0: closed by us. */
    void (*on_close)(struct conn *c, const struct err *why, void *arg);
};

/* `fd`: a connected or connecting non-blocking TCP socket; owned from here on, also on failure. `server`: it was
 * accepted. `ctx` is referenced. `arg` and `ops` are lent and must outlive the conn. NULL: out of memory. */
struct conn *conn_new(uv_loop_t *loop, int fd, bool server, struct tls_ctx *ctx, const struct conn_ops *ops, void *arg);

/* Of one that was just accepted: the peer is only told, in the clear, that nobody is let in any more. Both ends close
 * with -ESHUTDOWN. */
void conn_turn_away(struct conn *c);
/* A new owner (dialer -> overlay). */
void conn_set_ops(struct conn *c, const struct conn_ops *ops, void *arg);
bool conn_has_ops(const struct conn *c, const struct conn_ops *ops);
void *conn_arg(const struct conn *c);

/* The hello was accepted: lift the limits for strangers, start pings. */
void conn_trust(struct conn *c);

/* For the listener that counts strangers: called once, just before on_close. */
void conn_set_gone(struct conn *c, void (*gone)(struct conn *c, void *arg), void *arg);
/* Why it ends, which on_close will say; code 0 while it does not. */
const struct err *conn_why(const struct conn *c);
/* How far has a stranger come? */
enum conn_progress {
    CONN_SILENT,   /* has not said what a peer begins with */
    CONN_BEGUN,    /* it has */
    CONN_ANSWERED, /* its TLS has begun and was answered */
    CONN_SECURED,  /* TLS is up */
};
enum conn_progress conn_progress(const struct conn *c);

/* Queue a message of any length up to MESSAGE_MAX; `data`: behind control messages. Copies. 0, -ENOMEM (and it closes:
 * no message is left out), -EPIPE (closing). */
int conn_send(struct conn *c, unsigned type, struct span body, bool data);
/* Bytes of messages that wait to be sent. */
size_t conn_queued(const struct conn *c);
/* The data queue is over its high mark: stop producing data until on_drain. */
bool conn_is_full(const struct conn *c);
/* The same of the queue of control messages, for those of them that can wait. */
bool conn_is_busy(const struct conn *c);

/* Send what is queued, then close; idempotent. No message is delivered any more. `conn_close` drops what is queued. */
void conn_finish(struct conn *c);
void conn_close(struct conn *c);
/* Close it at once for what the peer did: on_close gets -EPROTO and `text`. */
void conn_reject(struct conn *c, const char *text);
/* Close it at once for want of memory: on_close gets -ENOMEM. */
void conn_out_of_memory(struct conn *c);

/* Deadlines off while the run is stopped by TSTP (see design). */
void conn_pause_deadline(struct conn *c, bool paused);

/* "10.0.0.1:3344" or "[fd00::1]:3344"; lent. */
const char *conn_peer(const struct conn *c);
/* Local end, same form; lent. */
const char *conn_local(const struct conn *c);
const char *conn_peer_key(const struct conn *c);
/* Frames and bytes so far, for counters. */
struct conn_stats {
    uint64_t bytes_in, bytes_out;
};
struct conn_stats conn_stats(const struct conn *c);

/* Other times than those of limits.h, for tests; NULL: those again. Copied; for conns made from now on. */
struct conn_times {
    uint64_t preauth_ms, ping_idle_ms, link_lost_ms, linger_ms;
};
void conn_set_times(const struct conn_times *times);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* conn_priv.h - what conn.c (life, time, the owner's calls) and conn_stream.c (bytes in and out) share; for them alone
 * */
#ifndef COMMON_IO_CONN_PRIV_H
#define COMMON_IO_CONN_PRIV_H

#include "common/io/conn.h"
#include "common/io/sockname.h"
#include "common/outq.h"
#include "common/reasm.h"

#define CONN_MAGIC 0x636f6e6eu
#define CONN_PROLOGUE_LEN 16
#define CONN_PROLOGUE_FULL 12 /* the byte that says that nobody is let in any more */

enum conn_state {
    CONN_CONNECTING,
    CONN_PROLOGUE,  /* the peer's 16 bytes are not all here */
    CONN_HANDSHAKE, /* TLS is not up */
    CONN_UP,
    CONN_LINGER, /* our last byte is in `wire` or sent; what comes in is thrown away until end of file */
    CONN_CLOSED, /* the handles are closing */
};

struct conn {
    uint32_t magic;
    enum conn_state state;
    bool turned_away;
    bool server, trusted, finishing, paused, shut, full, busy;
    int fd;
    int poll_events;  /* what `poll` is started for */
    unsigned handles; /* not closed yet */
    uv_poll_t poll;
    uv_timer_t timer;
    /* Started while there is something to send: so a turn of the loop makes one write of it. It is no uv_prepare_t, as
     * nothing would wake the loop for one that the flush of another connection starts. */
    uv_idle_t flush;
    struct conn_times times;
    uint64_t born, last_in, last_out, shut_at, due;
    const struct conn_ops *ops; /* lent */
    void *arg;                  /* lent */
    void (*gone)(struct conn *c, void *arg);
    void *gone_arg; /* lent */
    struct tls *tls;
    unsigned char prologue[CONN_PROLOGUE_LEN];
    size_t prologue_len;
    struct reasm in;
    size_t plain_in; /* bytes of messages handed out before conn_trust() */
    struct outq out;
    struct buf wire;
    size_t wire_off;
    struct conn_stats stats;
    struct err why;
    char peer[SOCKNAME_TEXT], local[SOCKNAME_TEXT];
};

/* Close at once and say `why`, unless something was said before or the end was asked for. */
void conn_fail(struct conn *c, const struct err *why);
void conn_fail_errno(struct conn *c, int code);
/* Drop what is queued and close; on_close comes from the loop. Idempotent. */
void conn_shut_down(struct conn *c);
/* Set the timer for what is due next. */
void conn_arm(struct conn *c);

/* The end of a socket as text; false where it is not connected. */
bool conn_name_of(int fd, bool peer, char out[SOCKNAME_TEXT]);
/* The socket is connected. */
void conn_begin(struct conn *c);
/* There is something to send: do it at the end of this turn of the loop. */
void conn_schedule(struct conn *c);
/* Watch for what is wanted now. */
void conn_update_poll(struct conn *c);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* dialer.h - reach one peer at one of several addresses: all are tried, 250 ms apart, the first answered hello wins
 *
 * A peer that turns us away ends it: one of another version, one that lets nobody in any more. Dropped or refused
 * connections are tried again with jitter (100 ms .. 2 s, growing) until the deadline. What failed, on which address
 * and local interface, is kept for the message.
 */
#ifndef COMMON_IO_DIALER_H
#define COMMON_IO_DIALER_H

#include <uv.h>
#include "common/err.h"
#include "common/io/conn.h"

struct dialer;

struct dialer_conf {
    char *const *addrs;  /* "ADDR:PORT" numeric, IPv6 without brackets; lent for the open call */
    struct tls_ctx *ctx; /* referenced */
    unsigned hello_type;
    struct span hello;    /* copied */
    uint64_t deadline_ms; /* from now */
    bool key_is_final;    /* a peer with another pre-shared key turns us away: -EKEYREJECTED */
    bool others_too;      /* who turns us away may be somebody else: it ends only when all addresses have done so */
    bool is_round; /* one of several: at the deadline a hello that may be answered yet is waited for, as conn does */
    /* Exactly one of these, once. The conn is the callee's, which must call conn_set_ops(); `type` and `body` are the
     * peer's first message. The dialer is still to be closed by its owner. */
    void (*on_won)(struct conn *c, unsigned type, struct span body, void *arg);
    void (*on_failed)(const struct err *why, void *arg);
    void *arg;
};

int dialer_open(uv_loop_t *loop, const struct dialer_conf *conf, struct dialer **out, struct err *err);
/* What came of each address so far: "ADDR:PORT (INTERFACE): REASON; ...". */
void dialer_state(const struct dialer *d, struct buf *out);
/* Has an address turned us away? Then why the first of them did. */
bool dialer_turned_away(const struct dialer *d, struct err *why);
/* Gives up what is under way; no callback comes after it. Idempotent through NULL; the memory goes with the loop. */
void dialer_close(struct dialer *d);

#endif

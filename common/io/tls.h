/* SPDX-License-Identifier: BSD-3-Clause */
/* tls.h - TLS 1.3 as a filter: cipher bytes in, plain bytes out, and back; no socket, no loop
 *
 * Two ways to know the peer: self-signed P-256 certificates pinned by fingerprint (towards the root), or an external
 * pre-shared key (between providers, and with --secret-file). Certificate dates are ignored: clocks are wrong
 * somewhere.
 */
#ifndef COMMON_IO_TLS_H
#define COMMON_IO_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/span.h"

#define TLS_KEY_TEXT 64  /* SHA-256 of the certificate in lower-case hex */
#define TLS_PSK_MIN 32   /* bytes */
#define TLS_PSK_MAX 4096 /* bytes of a secret; longer than the hash it is hashed down to 32 */

struct tls_ctx; /* shared, counted by the connections that use it */

/* A key pair made now, for this run; `pin`: the only peer accepted, in hex, or NULL: any certificate is accepted here
 * and the caller judges by tls_peer_key(). */
int tls_ctx_new_cert(struct tls_ctx **out, const char *pin, struct err *err);
/* psk_dhe_ke, TLS_AES_128_GCM_SHA256 alone, no tickets. The key is copied. */
int tls_ctx_new_psk(struct tls_ctx **out, const uint8_t *key, size_t len, struct err *err);
/* Nobody will be let in any more, by us or with us: wipe the private key and the pre-shared one. Connections that are
 * up go on, a handshake under way with a pre-shared key fails, and tls_new() gives NULL where there was a certificate.
 */
void tls_ctx_forget(struct tls_ctx *ctx);
void tls_ctx_unref(struct tls_ctx *ctx); /* forgets with the last; NULL is fine */
struct tls_ctx *tls_ctx_ref(struct tls_ctx *ctx);
const char *tls_ctx_key(const struct tls_ctx *ctx); /* our own fingerprint, lent; "" for a psk context */

struct tls;

struct tls *tls_new(struct tls_ctx *ctx, bool server); /* NULL: out of memory, or the key is forgotten */
void tls_free(struct tls *t);

/* Give it bytes from the wire. Plain bytes that come out are appended to `plain`, bytes for the wire to `wire`.
 * 0, -EPROTO (alert, bad record, wrong peer: err says which), -EKEYREJECTED (another pre-shared key), -ENOMEM,
 * -ECONNRESET (clean close_notify). */
int tls_feed(struct tls *t, struct span in, struct buf *plain, struct buf *wire, struct err *err);
/* Encrypt. Before the handshake is done: -EAGAIN. */
int tls_send(struct tls *t, struct span plain, struct buf *wire, struct err *err);
/* The client's first flight (a server's is empty). */
int tls_start(struct tls *t, struct buf *wire, struct err *err);
/* The last record: nothing follows from us. Nothing to do before the handshake is done. */
int tls_finish(struct tls *t, struct buf *wire);
bool tls_is_up(const struct tls *t);
const char *tls_peer_key(const struct tls *t); /* hex, lent; "" before the handshake or with a psk */

/* 32 random bytes and the like; aborts the process if the system cannot give any. */
void tls_random(void *out, size_t len);
void tls_wipe(void *p, size_t len);

#endif

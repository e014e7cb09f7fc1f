/* SPDX-License-Identifier: BSD-3-Clause */
/* keypair.h - a key pair that lives as long as its process may still be spoken to by a stranger, and its certificate
 *
 * Self-signed, P-256; names and dates in it mean nothing, as it is known by its fingerprint.
 */
#ifndef COMMON_IO_KEYPAIR_H
#define COMMON_IO_KEYPAIR_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include "common/io/tls.h"

#define KEYPAIR_HASH (TLS_KEY_TEXT / 2) /* bytes of SHA-256 */
#define KEYPAIR_NAME "pmi-start"

/* Zeroed: there is none. */
struct keypair {
    X509 *cert;
    EVP_PKEY *pkey;
};

/* On failure, OpenSSL's queue of errors says why, and keypair_done() is still to be called. */
bool keypair_make(struct keypair *k);
/* Wipes what it frees; a connection that has the key yet keeps it until it drops it itself. Idempotent. */
void keypair_done(struct keypair *k);
/* Give it to a connection. */
bool keypair_use(const struct keypair *k, SSL *ssl);

/* SHA-256 of a certificate in lower-case hex. 0 or -EIO. */
int keypair_fingerprint(const X509 *cert, char out[TLS_KEY_TEXT + 1]);

#endif

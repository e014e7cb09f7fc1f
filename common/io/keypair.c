/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/keypair.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdint.h>

int keypair_fingerprint(const X509 *cert, char out[TLS_KEY_TEXT + 1])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    if (!X509_digest(cert, EVP_sha256(), hash, &len) || len != KEYPAIR_HASH)
        return -EIO;
    for (unsigned i = 0; i < len; i++) {
        out[2 * i] = "0123456789abcdef"[hash[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
    }
    out[TLS_KEY_TEXT] = '\0';
    return 0;
}

static X509 *self_sign(EVP_PKEY *key)
{
    X509 *x = X509_new();
    X509_NAME *name = x ? X509_get_subject_name(x) : NULL;
    uint32_t serial;

    tls_random(&serial, sizeof(serial));
    if (name != NULL && X509_set_version(x, X509_VERSION_3) &&
        ASN1_INTEGER_set(X509_get_serialNumber(x), (long)(serial >> 1)) &&
        ASN1_TIME_set_string(X509_getm_notBefore(x), "20000101000000Z") &&
        ASN1_TIME_set_string(X509_getm_notAfter(x), "20991231235959Z") &&
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)KEYPAIR_NAME, -1, -1, 0) &&
        X509_set_issuer_name(x, name) && X509_set_pubkey(x, key) && X509_sign(x, key, EVP_sha256()))
        return x;
    X509_free(x);
    return NULL;
}

bool keypair_make(struct keypair *k)
{
    k->pkey = EVP_EC_gen("P-256");
    k->cert = k->pkey != NULL ? self_sign(k->pkey) : NULL;
    return k->cert != NULL;
}

void keypair_done(struct keypair *k)
{
    X509_free(k->cert);
    EVP_PKEY_free(k->pkey);
    *k = (struct keypair){0};
}

bool keypair_use(const struct keypair *k, SSL *ssl)
{
    return k->pkey != NULL && SSL_use_certificate(ssl, k->cert) && SSL_use_PrivateKey(ssl, k->pkey);
}

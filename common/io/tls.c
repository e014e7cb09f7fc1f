/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/tls.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include "common/io/keypair.h"
#include "common/util.h"

#define HASH_BYTES KEYPAIR_HASH
#define RECORD_MAX 16384
/* A handshake of OpenSSL 3.0 goes 6.5 KiB deep; a signal on top of it saves up to 11 KiB of registers. */
#define STACK_USED 24576
#define RECORD_EXTRA 64 /* header, tag and content type of a record, generously */

static const unsigned char psk_suite[2] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
static const char psk_identity[] = KEYPAIR_NAME;

struct tls_ctx {
    unsigned refs;
    SSL_CTX *ssl_ctx;
    BIO_METHOD *method;
    struct keypair pair; /* given to each connection, which drops it when its handshake is over */
    char key[TLS_KEY_TEXT + 1];
    char pin[TLS_KEY_TEXT + 1]; /* "": any certificate */
    bool is_psk;
    bool forgotten;
    uint8_t psk[HASH_BYTES];
};

struct tls {
    struct tls_ctx *ctx; /* shared, counted */
    SSL *ssl;
    struct span in;   /* lent for a call: what OpenSSL has not taken yet */
    struct buf *wire; /* lent for a call */
    bool up;          /* stays set: a message after the handshake may put OpenSSL back into it for a moment */
    bool oom;
    bool wrong_key;
    char peer_key[TLS_KEY_TEXT + 1];
};

/* The BIO: reads from the span of the current call, writes to its buffer. So no byte is copied twice, and nothing is
 * held between calls. */

static int bio_read(BIO *bio, char *out, size_t len, size_t *got)
{
    struct tls *t = BIO_get_data(bio);
    size_t n = MIN(len, t->in.n);

    BIO_clear_retry_flags(bio);
    if (n == 0) {
        BIO_set_retry_read(bio);
        return 0;
    }
    memcpy(out, t->in.p, n);
    t->in = (struct span){t->in.p + n, t->in.n - n};
    *got = n;
    return 1;
}

static int bio_write(BIO *bio, const char *data, size_t len, size_t *put)
{
    struct tls *t = BIO_get_data(bio);

    if (t->wire == NULL || buf_add(t->wire, data, len) < 0) {
        t->oom = true;
        return 0;
    }
    *put = len;
    return 1;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method_new(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "span");

    if (m != NULL && BIO_meth_set_read_ex(m, bio_read) && BIO_meth_set_write_ex(m, bio_write) &&
        BIO_meth_set_ctrl(m, bio_ctrl))
        return m;
    BIO_meth_free(m);
    return NULL;
}

static int openssl_failed(struct err *err, const char *what)
{
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    bool memory = false;
    unsigned long code;

    while ((code = ERR_get_error()) != 0) /* of what failed in the end it need not be the reason */
        memory = memory || ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE;
    if (memory)
        return err_set(err, -ENOMEM, "%s: out of memory", what);
    return err_set(err, -EIO, "%s: %s", what, why ? why : "OpenSSL gives no reason");
}

/* Stands for all of OpenSSL's chain checks: a key is known by its fingerprint or not at all. */
static int on_cert(X509_STORE_CTX *store, void *arg)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    const X509 *cert = X509_STORE_CTX_get0_cert(store);
    struct tls *t = SSL_get_app_data(ssl);

    (void)arg;
    if (!t->ctx->is_psk && cert != NULL && keypair_fingerprint(cert, t->peer_key) == 0 &&
        (t->ctx->pin[0] == '\0' || strcmp(t->ctx->pin, t->peer_key) == 0))
        return 1;
    t->wrong_key = true;
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED); /* the peer sees the alert "bad certificate" */
    return 0;
}

static SSL_SESSION *psk_session(SSL *ssl)
{
    const struct tls *t = SSL_get_app_data(ssl);
    SSL_SESSION *s = t->ctx->forgotten ? NULL : SSL_SESSION_new();

    if (s != NULL && SSL_SESSION_set1_master_key(s, t->ctx->psk, sizeof(t->ctx->psk)) &&
        SSL_SESSION_set_cipher(s, SSL_CIPHER_find(ssl, psk_suite)) &&
        SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION) &&
        SSL_SESSION_set1_id_context(s, (const unsigned char *)psk_identity, sizeof(psk_identity) - 1))
        return s;
    SSL_SESSION_free(s);
    return NULL;
}

static int on_psk_use(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len, SSL_SESSION **out)
{
    (void)md; /* one suite, one hash */
    *out = psk_session(ssl);
    *id = (const unsigned char *)psk_identity;
    *id_len = sizeof(psk_identity) - 1;
    return *out != NULL;
}

static int on_psk_find(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **out)
{
    *out = NULL;
    if (!span_is((struct span){(const char *)id, id_len}, psk_identity))
        return 1;
    *out = psk_session(ssl);
    return *out != NULL;
}

/* What both kinds of context share. */
static int ctx_setup(struct tls_ctx *ctx)
{
    SSL_CTX *s;

    /* TLS fetches what it uses by itself. The tables of all ciphers and digests by name would be a sixth of OpenSSL's
     * time at a start, on every node. */
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ADD_ALL_CIPHERS | OPENSSL_INIT_NO_ADD_ALL_DIGESTS, NULL);
    s = ctx->ssl_ctx = SSL_CTX_new(TLS_method());
    ctx->method = method_new();
    if (s == NULL || ctx->method == NULL)
        return -ENOMEM;
    SSL_CTX_set_mode(s, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(s, SSL_OP_NO_TICKET | SSL_OP_CLEANSE_PLAINTEXT); /* the run key comes in as plaintext */
    SSL_CTX_set_session_cache_mode(s, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_verify(s, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(s, on_cert, NULL);
    if (!SSL_CTX_set_min_proto_version(s, TLS1_3_VERSION) || !SSL_CTX_set_max_proto_version(s, TLS1_3_VERSION) ||
        !SSL_CTX_set_num_tickets(s, 0) || !SSL_CTX_set1_groups_list(s, "X25519:P-256") ||
        !SSL_CTX_set_session_id_context(s, (const unsigned char *)psk_identity, sizeof(psk_identity) - 1) ||
        !SSL_CTX_set_ciphersuites(s, ctx->is_psk ? "TLS_AES_128_GCM_SHA256"
                                                 : "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384"))
        return -EIO;
    return 0;
}

static struct tls_ctx *ctx_alloc(bool is_psk, struct err *err)
{
    struct tls_ctx *ctx = calloc(1, sizeof(*ctx));

    if (ctx == NULL) {
        err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    ctx->refs = 1;
    ctx->is_psk = is_psk;
    if (ctx_setup(ctx) == 0)
        return ctx;
    openssl_failed(err, "cannot set up TLS");
    tls_ctx_unref(ctx);
    return NULL;
}

/* Copies of a key are left where functions that had it kept their variables, and where registers were saved: by the
 * dynamic linker when it looked up a function, or for a signal. Done as soon as a key is in its place, since larger
 * frames may come to lie around such copies later, and again when it is wiped. */
static __attribute__((noinline)) void wipe_stack(void)
{
    uint8_t below[STACK_USED];

    tls_wipe(below, sizeof(below));
}

int tls_ctx_new_cert(struct tls_ctx **out, const char *pin, struct err *err)
{
    struct tls_ctx *ctx;
    int rc = 0;

    if (pin != NULL && (strlen(pin) != TLS_KEY_TEXT || strspn(pin, "0123456789abcdef") != TLS_KEY_TEXT))
        return err_set(err, -EINVAL, "'%.80s' is not a key: %d digits in lower-case hex", pin, TLS_KEY_TEXT);
    ctx = ctx_alloc(false, err);
    if (ctx == NULL)
        return -ENOMEM;
    if (pin != NULL)
        memcpy(ctx->pin, pin, TLS_KEY_TEXT);
    if (!keypair_make(&ctx->pair) || keypair_fingerprint(ctx->pair.cert, ctx->key) < 0)
        rc = openssl_failed(err, "cannot make a key pair");
    if (rc < 0)
        tls_ctx_unref(ctx);
    else
        *out = ctx;
    wipe_stack();
    return rc;
}

int tls_ctx_new_psk(struct tls_ctx **out, const uint8_t *key, size_t len, struct err *err)
{
    struct tls_ctx *ctx;

    if (len < TLS_PSK_MIN || len > TLS_PSK_MAX)
        return err_set(err, -EINVAL, "a secret of %zu bytes; it must have %d to %d", len, TLS_PSK_MIN, TLS_PSK_MAX);
    ctx = ctx_alloc(true, err);
    if (ctx == NULL)
        return -ENOMEM;
    if (len == HASH_BYTES) {
        memcpy(ctx->psk, key, len);
    } else if (!EVP_Digest(key, len, ctx->psk, NULL, EVP_sha256(), NULL)) {
        tls_ctx_unref(ctx);
        return openssl_failed(err, "cannot hash the secret");
    }
    SSL_CTX_set_psk_use_session_callback(ctx->ssl_ctx, on_psk_use);
    SSL_CTX_set_psk_find_session_callback(ctx->ssl_ctx, on_psk_find);
    *out = ctx;
    wipe_stack();
    return 0;
}

struct tls_ctx *tls_ctx_ref(struct tls_ctx *ctx)
{
    ctx->refs++;
    return ctx;
}

void tls_ctx_unref(struct tls_ctx *ctx)
{
    if (ctx == NULL || --ctx->refs > 0)
        return;
    tls_ctx_forget(ctx);
    SSL_CTX_free(ctx->ssl_ctx);
    BIO_meth_free(ctx->method);
    tls_wipe(ctx, sizeof(*ctx));
    free(ctx);
}

void tls_ctx_forget(struct tls_ctx *ctx)
{
    ctx->forgotten = true;
    tls_wipe(ctx->psk, sizeof(ctx->psk));
    keypair_done(&ctx->pair);
    wipe_stack();
}

const char *tls_ctx_key(const struct tls_ctx *ctx)
{
    return ctx->key;
}

struct tls *tls_new(struct tls_ctx *ctx, bool server)
{
    struct tls *t = calloc(1, sizeof(*t));
    BIO *bio;

    if (t == NULL)
        return NULL;
    t->ssl = SSL_new(ctx->ssl_ctx);
    bio = t->ssl && (ctx->is_psk || keypair_use(&ctx->pair, t->ssl)) ? BIO_new(ctx->method) : NULL;
    if (bio == NULL) {
        SSL_free(t->ssl);
        ERR_clear_error();
        free(t);
        return NULL;
    }
    t->ctx = tls_ctx_ref(ctx);
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_app_data(t->ssl, t);
    if (server)
        SSL_set_accept_state(t->ssl);
    else
        SSL_set_connect_state(t->ssl);
    return t;
}

void tls_free(struct tls *t)
{
    if (t == NULL)
        return;
    SSL_free(t->ssl);
    tls_ctx_unref(t->ctx);
    free(t);
}

/* Alerts by which the other side says that it does not take our key. */
static bool is_key_alert(int reason)
{
    return reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE || reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR ||
           reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA || reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER ||
           reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED || reason == SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE;
}

static int peer_failed(struct tls *t, struct err *err)
{
    unsigned long code = ERR_peek_error();
    const char *why = ERR_reason_error_string(code);
    int reason = ERR_GET_REASON(code);

    ERR_clear_error();
    if (t->wrong_key && t->ctx->pin[0] != '\0')
        return err_set(err, -EPROTO, "wrong key: expected %s, it has %s", t->ctx->pin, t->peer_key);
    if (t->wrong_key || reason == SSL_R_BINDER_DOES_NOT_VERIFY)
        return err_set(err, -EKEYREJECTED, "wrong key: it does not have the shared secret");
    if (is_key_alert(reason))
        return err_set(err, t->ctx->is_psk ? -EKEYREJECTED : -EPROTO, "wrong key: it does not accept ours (%s)",
                       why ? why : "alert");
    return err_set(err, -EPROTO, "TLS: %s", why ? why : "broken stream");
}

/* The outcome of an SSL call that returned `rc`: 0 where it only wants more bytes. */
static int outcome(struct tls *t, int rc, struct err *err)
{
    int what = SSL_get_error(t->ssl, rc);

    if (t->oom)
        return err_set(err, -ENOMEM, "out of memory");
    if (what == SSL_ERROR_WANT_READ)
        return 0;
    if (what == SSL_ERROR_ZERO_RETURN)
        return err_set(err, -ECONNRESET, "closed by the peer");
    return peer_failed(t, err);
}

static void enter(struct tls *t, struct span in, struct buf *wire)
{
    ERR_clear_error();
    t->in = in;
    t->wire = wire;
    t->oom = false;
}

static int leave(struct tls *t, int rc)
{
    t->in = SPAN_NONE;
    t->wire = NULL;
    return rc;
}

/* What only the handshake needed. What OpenSSL has derived from it stays until SSL_free(). */
static void drop_key(SSL *ssl)
{
    static const unsigned char nothing[HASH_BYTES];
    SSL_SESSION *s = SSL_get_session(ssl);

    SSL_certs_clear(ssl);
    if (s != NULL)
        (void)SSL_SESSION_set1_master_key(s, nothing, sizeof(nothing)); /* TLS 1.3 keeps the pre-shared key there */
}

static int read_all(struct tls *t, struct buf *plain, struct err *err)
{
    for (;;) {
        size_t got = 0;
        int rc = buf_reserve(plain, MIN(t->in.n + RECORD_EXTRA, (size_t)RECORD_MAX));

        if (rc < 0)
            return err_set(err, rc, rc == -ENOMEM ? "out of memory" : "no room for what came in");
        rc = SSL_read_ex(t->ssl, plain->p + plain->len, plain->cap - plain->len, &got);
        if (rc <= 0)
            return outcome(t, rc, err);
        plain->len += got;
    }
}

int tls_feed(struct tls *t, struct span in, struct buf *plain, struct buf *wire, struct err *err)
{
    int rc;

    enter(t, in, wire);
    if (!t->up) {
        rc = SSL_do_handshake(t->ssl);
        if (rc != 1)
            return leave(t, outcome(t, rc, err));
        t->up = !t->ctx->is_psk || SSL_session_reused(t->ssl);
        drop_key(t->ssl);
        if (!t->up)
            return leave(t, err_set(err, -EKEYREJECTED, "wrong key: it does not use the shared secret"));
    }
    return leave(t, read_all(t, plain, err));
}

int tls_send(struct tls *t, struct span plain, struct buf *wire, struct err *err)
{
    size_t put = 0;
    int rc;

    if (!tls_is_up(t))
        return err_set(err, -EAGAIN, "the TLS handshake is not done");
    if (plain.n == 0)
        return 0;
    rc = buf_reserve(wire, plain.n + (plain.n / RECORD_MAX + 1) * RECORD_EXTRA);
    if (rc < 0)
        return err_set(err, rc, "out of memory");
    enter(t, SPAN_NONE, wire);
    rc = SSL_write_ex(t->ssl, plain.p, plain.n, &put);
    assert(rc != 1 || put == plain.n);
    if (rc == 1)
        return leave(t, 0);
    rc = outcome(t, rc, err);
    return leave(t, rc < 0 ? rc : err_set(err, -EPROTO, "TLS: cannot send"));
}

int tls_start(struct tls *t, struct buf *wire, struct err *err)
{
    if (SSL_is_server(t->ssl))
        return 0;
    enter(t, SPAN_NONE, wire);
    return leave(t, outcome(t, SSL_do_handshake(t->ssl), err));
}

int tls_finish(struct tls *t, struct buf *wire)
{
    int rc;

    if (!tls_is_up(t))
        return 0;
    enter(t, SPAN_NONE, wire);
    rc = SSL_shutdown(t->ssl);
    ERR_clear_error();
    return leave(t, rc < 0 ? -EIO : 0);
}

bool tls_is_up(const struct tls *t)
{
    return t->up;
}

const char *tls_peer_key(const struct tls *t)
{
    return t->peer_key;
}

void tls_random(void *out, size_t len)
{
    assert(len <= INT32_MAX);
    if (RAND_priv_bytes(out, (int)len) != 1)
        abort();
    wipe_stack();
}

void tls_wipe(void *p, size_t len)
{
    OPENSSL_cleanse(p, len);
}

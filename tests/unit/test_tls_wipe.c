/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys that are not needed any more are nowhere in the memory of the process. It is searched as a whole, but for what
 * the search itself needs; so the key is kept here in a disguise alone. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/tls_pair.h"

#define KEY 32
#define DISGUISE 0x5a
#define PIECE (1u << 20)
#define REGION_MAX (1ul << 30) /* larger ones are the sanitizers' own */

static uint8_t kept[KEY]; /* the key, each byte with DISGUISE */

static void keep(const uint8_t *key)
{
    for (int i = 0; i < KEY; i++)
        kept[i] = key[i] ^ DISGUISE;
}

/* OpenSSL keeps the number as words, the lowest first; written out, the highest byte is first. */
static bool is_key(const uint8_t *p)
{
    bool forward = true, backward = true;

    for (int i = 0; i < KEY && (forward || backward); i++) {
        forward = forward && (p[i] ^ DISGUISE) == kept[i];
        backward = backward && (p[i] ^ DISGUISE) == kept[KEY - 1 - i];
    }
    return forward || backward;
}

static unsigned count_in(int mem, unsigned long begin, unsigned long end, uint8_t *room)
{
    unsigned found = 0;

    for (unsigned long at = begin; at < end; at += PIECE) { /* with the beginning of the next piece */
        size_t want = end - at < PIECE + KEY - 1 ? end - at : PIECE + KEY - 1;
        ssize_t n = pread(mem, room, want, (off_t)at);

        for (ssize_t i = 0; i + KEY <= n && (size_t)i < PIECE; i++)
            found += is_key(room + i);
    }
    return found;
}

/* How often is the key in what this process may write? */
static unsigned copies(void)
{
    uint8_t *room = mmap(NULL, PIECE + KEY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long begin, end;
    char line[512], rights[5];
    unsigned found = 0;

    cr_assert(room != MAP_FAILED && mem >= 0 && maps != NULL);
    while (fgets(line, sizeof(line), maps) != NULL)
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, rights) == 3 && rights[0] == 'r' && rights[1] == 'w' &&
            rights[3] == 'p' && end - begin < REGION_MAX)
            found += count_in(mem, begin, end, room);
    fclose(maps);
    close(mem);
    munmap(room, PIECE + KEY);
    return found;
}

/* The private key is seen as it is given to a connection. Takes the place of OpenSSL's function in this program. */
int SSL_use_PrivateKey(SSL *ssl, EVP_PKEY *pkey);
int SSL_use_PrivateKey(SSL *ssl, EVP_PKEY *pkey)
{
    int (*real)(SSL *, EVP_PKEY *);
    uint8_t key[KEY];
    BIGNUM *n = NULL;

    *(void **)&real = dlsym(RTLD_NEXT, "SSL_use_PrivateKey");
    cr_assert(EVP_PKEY_get_bn_param(pkey, OSSL_PKEY_PARAM_PRIV_KEY, &n) && BN_bn2binpad(n, key, KEY) == KEY);
    keep(key);
    BN_clear_free(n);
    explicit_bzero(key, sizeof(key));
    return real(ssl, pkey);
}

/* Whose key is looked for is the one that is given last: the server's. */
Test(tls_wipe, private_key)
{
    struct side c = {0}, s = {0};

    pinned_pair(&c, &s);
    expect_works(&c, &s, 1000000);
    cr_expect_gt(copies(), 0, "this test can find nothing");
    tls_ctx_forget(s.ctx);
    cr_expect_eq(copies(), 0, "%u copies", copies());
    talk(&c, &s, 100, 1000000);
    cr_expect_null(tls_new(s.ctx, true));
    pair_done(&c, &s);
}

/* A connection whose handshake is not over ends well. */
Test(tls_wipe, private_key_of_a_handshake_under_way)
{
    struct side c = {0}, s = {0};

    pinned_pair(&c, &s);
    pair_open(&c, &s);
    tls_ctx_forget(s.ctx);
    tls_ctx_forget(c.ctx);
    cr_expect_gt(copies(), 0);
    cr_expect_eq(handshake(&c, &s, 1000000), 0, "%s %s", c.err.text, s.err.text);
    cr_expect_eq(copies(), 0, "%u copies", copies());
    talk(&s, &c, 100, 1000000);
    pair_done(&c, &s);
}

static void psk(struct side *x)
{
    uint8_t key[KEY];

    for (int i = 0; i < KEY; i++)
        key[i] = kept[i] ^ DISGUISE;
    cr_assert_eq(tls_ctx_new_psk(&x->ctx, key, KEY, &x->err), 0);
    explicit_bzero(key, sizeof(key));
}

Test(tls_wipe, pre_shared_key)
{
    struct side c = {0}, s = {0}, late_c = {0}, late_s = {0};

    tls_random(kept, sizeof(kept));
    psk(&c);
    psk(&s);
    expect_works(&c, &s, 1000000);
    cr_expect_gt(copies(), 0, "this test can find nothing");
    late_c.ctx = tls_ctx_ref(c.ctx);
    late_s.ctx = tls_ctx_ref(s.ctx);
    pair_open(&late_c, &late_s);
    tls_ctx_forget(c.ctx);
    tls_ctx_forget(s.ctx);
    cr_expect_eq(copies(), 0, "%u copies", copies());
    talk(&c, &s, 100, 1000000);
    cr_expect_lt(handshake(&late_c, &late_s, 1000000), 0);
    cr_expect_eq(copies(), 0, "%u copies", copies());
    pair_done(&late_c, &late_s);
    pair_done(&c, &s);
}

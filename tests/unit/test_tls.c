/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "tests/unit/tls_pair.h"

static void psk_ctx(struct side *x, char fill, size_t len)
{
    uint8_t key[200];

    memset(key, fill, sizeof(key));
    cr_assert_eq(tls_ctx_new_psk(&x->ctx, key, len, &x->err), 0, "%s", x->err.text);
}

Test(tls, pinned_certificate)
{
    struct side c = {0}, s = {0};

    pinned_pair(&c, &s);
    expect_works(&c, &s, 1000000);
    cr_expect_str_eq(tls_peer_key(c.tls), tls_ctx_key(s.ctx));
    cr_expect_str_eq(tls_peer_key(s.tls), tls_ctx_key(c.ctx));
    cr_expect_eq(strlen(tls_ctx_key(s.ctx)), TLS_KEY_TEXT);
    pair_done(&c, &s);
}

Test(tls, byte_by_byte)
{
    struct side c = {0}, s = {0};

    pinned_pair(&c, &s);
    expect_works(&c, &s, 1);
    pair_done(&c, &s);
}

Test(tls, wrong_pin_fails_and_both_sides_say_so)
{
    struct side c = {0}, s = {0}, other = {0};

    cr_assert_eq(tls_ctx_new_cert(&s.ctx, NULL, NULL), 0);
    cr_assert_eq(tls_ctx_new_cert(&other.ctx, NULL, NULL), 0);
    cr_assert_eq(tls_ctx_new_cert(&c.ctx, tls_ctx_key(other.ctx), NULL), 0);
    pair_open(&c, &s);
    cr_expect_eq(handshake(&c, &s, 1000000), -EPROTO);
    cr_expect(strstr(c.err.text, "wrong key") != NULL, "%s", c.err.text);
    cr_expect(strstr(c.err.text, tls_ctx_key(s.ctx)) != NULL, "%s", c.err.text);
    cr_expect(strstr(s.err.text, "wrong key") != NULL, "%s", s.err.text);
    cr_expect_not(tls_is_up(c.tls) || tls_is_up(s.tls));
    pair_done(&c, &s);
    tls_ctx_unref(other.ctx);
}

Test(tls, psk)
{
    for (size_t piece = 1; piece < 2000000; piece += 1000000) {
        struct side c = {0}, s = {0};

        psk_ctx(&c, 'k', 32);
        psk_ctx(&s, 'k', 32);
        expect_works(&c, &s, piece);
        cr_expect_str_eq(tls_peer_key(c.tls), "");
        cr_expect_str_eq(tls_ctx_key(s.ctx), "");
        pair_done(&c, &s);
    }
}

Test(tls, long_secret_is_hashed_whole)
{
    struct side c = {0}, s = {0};

    psk_ctx(&c, 'k', 200);
    psk_ctx(&s, 'k', 200);
    expect_works(&c, &s, 1000000);
    pair_done(&c, &s);
    c = (struct side){0};
    s = (struct side){0};
    psk_ctx(&c, 'k', 200);
    psk_ctx(&s, 'k', 199);
    pair_open(&c, &s);
    cr_expect_eq(handshake(&c, &s, 1000000), -EKEYREJECTED);
    pair_done(&c, &s);
}

Test(tls, wrong_psk_fails_and_both_sides_say_so)
{
    struct side c = {0}, s = {0};

    psk_ctx(&c, 'k', 32);
    psk_ctx(&s, 'j', 32);
    pair_open(&c, &s);
    cr_expect_eq(handshake(&c, &s, 1000000), -EKEYREJECTED);
    cr_expect(strstr(s.err.text, "wrong key") != NULL, "%s", s.err.text);
    cr_expect(strstr(c.err.text, "wrong key") != NULL, "%s", c.err.text);
    pair_done(&c, &s);
}

Test(tls, certificate_and_psk_do_not_mix)
{
    struct side c = {0}, s = {0};

    cr_assert_eq(tls_ctx_new_cert(&c.ctx, NULL, NULL), 0);
    psk_ctx(&s, 'k', 32);
    pair_open(&c, &s);
    cr_expect_eq(handshake(&c, &s, 1000000), -EPROTO);
    cr_expect_not(tls_is_up(s.tls));
    pair_done(&c, &s);

    c = (struct side){0};
    s = (struct side){0};
    psk_ctx(&c, 'k', 32);
    cr_assert_eq(tls_ctx_new_cert(&s.ctx, NULL, NULL), 0);
    pair_open(&c, &s);
    cr_expect_eq(handshake(&c, &s, 1000000), -EKEYREJECTED);
    cr_expect(strstr(c.err.text, "wrong key") != NULL, "%s", c.err.text);
    cr_expect_not(tls_is_up(c.tls));
    pair_done(&c, &s);
}

Test(tls, plain_bytes_are_refused)
{
    struct side c = {0}, s = {0};

    pinned_pair(&c, &s);
    pair_open(&c, &s);
    cr_assert_eq(buf_add_str(&c.wire, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
    cr_expect_eq(carry(&c, &s, 1000000), -EPROTO);
    cr_expect(strstr(s.err.text, "TLS") != NULL, "%s", s.err.text);
    pair_done(&c, &s);
}

Test(tls, changed_record_is_refused)
{
    struct side c = {0}, s = {0};

    pinned_pair(&c, &s);
    expect_works(&c, &s, 1000000);
    cr_assert_eq(tls_send(c.tls, span_of("hello"), &c.wire, NULL), 0);
    c.wire.p[c.wire.len - 1] = (char)(c.wire.p[c.wire.len - 1] ^ 1);
    cr_expect_eq(carry(&c, &s, 1000000), -EPROTO);
    cr_expect_eq(s.plain.len, 0);
    pair_done(&c, &s);
}

Test(tls, clean_end_is_told_from_a_broken_one)
{
    struct side c = {0}, s = {0};

    pinned_pair(&c, &s);
    expect_works(&c, &s, 1000000);
    cr_assert_eq(tls_send(c.tls, span_of("bye"), &c.wire, NULL), 0);
    cr_assert_eq(tls_finish(c.tls, &c.wire), 0);
    cr_expect_eq(carry(&c, &s, 1000000), -ECONNRESET);
    cr_expect(span_is(buf_span(&s.plain), "bye"));
    pair_done(&c, &s);
}

Test(tls, bad_keys_are_refused_and_early_sends_too)
{
    struct tls_ctx *ctx = NULL;
    struct side c = {0}, s = {0};
    uint8_t key[TLS_PSK_MAX + 1] = {0};
    struct err err = {0};

    cr_expect_eq(tls_ctx_new_cert(&ctx, "abc", &err), -EINVAL);
    cr_expect(strstr(err.text, "'abc'") != NULL);
    cr_expect_eq(tls_ctx_new_psk(&ctx, key, 31, &err), -EINVAL);
    cr_expect_eq(tls_ctx_new_psk(&ctx, key, sizeof(key), &err), -EINVAL);
    cr_expect_null(ctx);
    pinned_pair(&c, &s);
    pair_open(&c, &s);
    cr_expect_eq(tls_send(c.tls, span_of("x"), &c.wire, NULL), -EAGAIN);
    pair_done(&c, &s);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/tls_pair.h"

#include <criterion/criterion.h>
#include <stdlib.h>

void pair_open(struct side *c, struct side *s)
{
    c->tls = tls_new(c->ctx, false);
    s->tls = tls_new(s->ctx, true);
    cr_assert(c->tls != NULL && s->tls != NULL);
}

void pair_done(struct side *c, struct side *s)
{
    struct side *both[] = {c, s};

    for (int i = 0; i < 2; i++) {
        tls_free(both[i]->tls);
        tls_ctx_unref(both[i]->ctx);
        buf_done(&both[i]->plain);
        buf_done(&both[i]->wire);
    }
}

int carry(struct side *from, struct side *to, size_t piece)
{
    int rc = 0;

    while (from->wire.len > 0 && rc == 0) {
        size_t n = from->wire.len < piece ? from->wire.len : piece;

        rc = tls_feed(to->tls, (struct span){from->wire.p, n}, &to->plain, &to->wire, &to->err);
        buf_drop(&from->wire, n);
    }
    return rc;
}

int handshake(struct side *c, struct side *s, size_t piece)
{
    int rc = tls_start(c->tls, &c->wire, &c->err);

    while (rc == 0 && (c->wire.len > 0 || s->wire.len > 0)) {
        rc = carry(c, s, piece);
        if (rc == 0)
            rc = carry(s, c, piece);
    }
    carry(c, s, piece);
    carry(s, c, piece);
    return rc;
}

void talk(struct side *from, struct side *to, size_t len, size_t piece)
{
    char *text = malloc(len + 1);

    memset(text, 'x', len);
    cr_assert_eq(tls_send(from->tls, (struct span){text, len}, &from->wire, &from->err), 0, "%s", from->err.text);
    cr_assert_eq(carry(from, to, piece), 0, "%s", to->err.text);
    cr_assert_eq(to->plain.len, len);
    cr_assert(len == 0 || memcmp(to->plain.p, text, len) == 0);
    buf_done(&to->plain);
    free(text);
}

void expect_works(struct side *c, struct side *s, size_t piece)
{
    pair_open(c, s);
    cr_assert_eq(handshake(c, s, piece), 0, "client: %s; server: %s", c->err.text, s->err.text);
    cr_expect(tls_is_up(c->tls) && tls_is_up(s->tls));
    talk(c, s, 1, piece);
    talk(s, c, 0, piece);
    talk(s, c, 100000, piece);
    talk(c, s, 40000, piece);
}

void pinned_pair(struct side *c, struct side *s)
{
    cr_assert_eq(tls_ctx_new_cert(&s->ctx, NULL, NULL), 0);
    cr_assert_eq(tls_ctx_new_cert(&c->ctx, tls_ctx_key(s->ctx), NULL), 0);
}

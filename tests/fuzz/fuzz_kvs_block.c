/* SPDX-License-Identifier: BSD-3-Clause */
/* A block from a child: refused without a trace, or all of it readable, handed on byte for byte, and the same on the
 * node that gets it from here. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include "common/buf.h"
#include "common/kvtab.h"
#include "server/kvs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(struct kvs *a, struct kvs *b, struct span block)
{
    struct kvtab t = {0};

    if (kvtab_add_block(&t, block) < 0)
        abort();
    for (uint32_t at = KVTAB_BASE; at < t.used; at += kvtab_at(&t, at).len) {
        struct span key = kvtab_at(&t, at).key, x, y;

        assert(kvs_get(a, 0, key, &x) == 0 && kvs_get(b, 0, key, &y) == 0 && span_eq(x, y));
    }
    kvtab_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kvs *a = kvs_new(1, 3, true), *b = kvs_new(1, 2, true);
    struct span block = {(const char *)data, size}, s;
    struct buf up = {0};
    struct err err = {0};

    if (a == NULL || b == NULL)
        abort();
    if (kvs_append(a, 1, block, &err) < 0) {
        assert(err.code == -EPROTO && kvs_unsent(a, 0, 2048).n == 0);
        assert(kvs_install(a) == 0 && kvs_stats(a).keys == 0);
    } else {
        while ((s = kvs_unsent(a, 0, 2048)).n > 0) {
            assert(s.n <= 2048 && kvtab_check(s) == 0 && kvs_append(b, 0, s, NULL) == 0);
            buf_add(&up, s.p, s.n);
        }
        assert(span_eq(buf_span(&up), block));
        assert(kvs_unsent(a, 1, 2048).n == 0);
        assert(kvs_install(a) == 0 && kvs_install(b) == 0);
        assert(kvs_stats(a).keys == kvs_stats(b).keys);
        check_same(a, b, block);
    }
    buf_done(&up);
    kvs_free(a);
    kvs_free(b);
    return 0;
}

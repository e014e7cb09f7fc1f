/* SPDX-License-Identifier: BSD-3-Clause */
/* A payload taken apart: every field lies in it, and what was understood, put together again and read again, is the
 * same. Any bytes as a value come back as they went. */
#include <assert.h>
#include <stdint.h>
#include "common/pmi2.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(struct span part, struct span whole)
{
    return part.p >= whole.p && part.p + part.n <= whole.p + whole.n;
}

static void walk(struct span payload)
{
    struct span rest = payload, plain;
    struct pmi2_field f;

    while (pmi2_next(&rest, &f) > 0) {
        struct buf room = {0};

        assert(f.key.n > 0 && is_inside(f.key, payload) && is_inside(rest, payload));
        assert(memchr(f.key.p, '=', f.key.n) == NULL);
        if (f.raw.p == NULL)
            continue;
        assert(is_inside(f.raw, payload) && f.raw.p == f.key.p + f.key.n + 1);
        assert(pmi2_plain(f.raw, &room, &plain) == 0 && plain.n <= f.raw.n);
        buf_done(&room);
    }
}

static void back_again(struct span value)
{
    struct buf out = {0}, room = {0};
    struct span payload, name, plain;
    size_t len;

    if (value.n > 65536 || memchr(value.p, '\0', value.n) != NULL)
        return;
    assert(pmi2_begin(&out, span_of("x")) == 0 && pmi2_add(&out, "v", value) == 0 && pmi2_add_int(&out, "rc", 7) == 0);
    assert(pmi2_end(&out) == 0 && pmi2_header(out.p, &len) == 0 && len == out.len - PMI2_HEADER);
    payload = (struct span){out.p + PMI2_HEADER, len};
    assert(pmi2_check(payload, &name) == 0 && span_is(name, "x"));
    assert(span_is(pmi2_get(payload, "rc"), "7"));
    assert(pmi2_plain(pmi2_get(payload, "v"), &room, &plain) == 0 && span_eq(plain, value));
    buf_done(&out);
    buf_done(&room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span all = {(const char *)data, size}, name;
    size_t len;

    if (size == 0)
        return 0;
    if (size >= PMI2_HEADER && pmi2_header((const char *)data, &len) == 0)
        assert(len > 0 && len <= PMI2_PAYLOAD_MAX);
    if (pmi2_check(all, &name) == 0)
        assert(name.n > 0 && is_inside(name, all) && span_eq(pmi2_get(all, "cmd"), name));
    walk(all);
    back_again(all);
    return 0;
}

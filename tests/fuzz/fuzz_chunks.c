/* SPDX-License-Identifier: BSD-3-Clause */
/* The same bytes whole and cut into pieces must give the same messages and the same end. The first two bytes of the
 * input say how to cut. */
#include <assert.h>
#include <stdint.h>
#include "common/reasm.h"
#include "common/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All that came out, one after the other: type, length, body. */
struct seen {
    struct buf bytes;
    int rc;
    bool midway;
};

static void take_all(struct reasm *r, struct seen *s)
{
    struct span body;
    unsigned type;

    while ((s->rc = reasm_next(r, &type, &body, NULL)) > 0) {
        assert(body.p != NULL);
        assert(buf_add(&s->bytes, &type, sizeof(type)) == 0 && buf_add(&s->bytes, &body.n, sizeof(body.n)) == 0);
        assert(buf_add(&s->bytes, body.p, body.n) == 0);
    }
}

/* Pieces of `a` and `b` bytes in turn; 0 stands for all the rest. */
static void feed(struct seen *s, struct span in, size_t a, size_t b)
{
    struct reasm r;

    reasm_init(&r, FRAME_BODY_MAX);
    *s = (struct seen){0};
    for (bool first = true; in.n > 0 && s->rc == 0; first = !first) {
        size_t want = first ? a : b, n = want == 0 ? in.n : MIN(want, in.n);

        assert(buf_add(&r.bytes, in.p, n) == 0);
        in = (struct span){in.p + n, in.n - n};
        take_all(&r, s);
    }
    s->midway = s->rc == 0 && reasm_is_midway(&r);
    reasm_done(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole, cut;

    if (size < 2)
        return 0;
    feed(&whole, (struct span){(const char *)data + 2, size - 2}, 0, 0);
    feed(&cut, (struct span){(const char *)data + 2, size - 2}, data[0], data[1]);
    assert(whole.rc == cut.rc && whole.midway == cut.midway);
    assert(span_eq(buf_span(&whole.bytes), buf_span(&cut.bytes)));
    buf_done(&whole.bytes);
    buf_done(&cut.bytes);
    return 0;
}

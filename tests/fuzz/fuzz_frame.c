/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from anybody: what is taken lies inside the bytes given, and written again it is the same. */
#include <assert.h>
#include <stdint.h>
#include "common/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span in = {(const char *)data, size};
    char head[FRAME_HEADER];
    struct frame f;
    struct err err = {0};
    int rc;

    while ((rc = frame_take(in, FRAME_BODY_MAX, &f, &err)) > 0) {
        assert((size_t)rc == FRAME_HEADER + f.body.n && (size_t)rc <= in.n);
        assert(f.body.p == in.p + FRAME_HEADER && f.body.n <= FRAME_BODY_MAX);
        frame_put_header(head, f.type, f.flags, (uint32_t)f.body.n);
        assert(memcmp(head, in.p, FRAME_HEADER) == 0);
        in = (struct span){in.p + rc, in.n - (size_t)rc};
    }
    assert(rc == 0 || (rc == -EPROTO && err.code == rc && in.n >= FRAME_HEADER));
    return 0;
}

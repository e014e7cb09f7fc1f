/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/frame.h"

#define FLAGS_KNOWN (FRAME_MORE | FRAME_DATA)

void frame_put_header(char out[FRAME_HEADER], uint16_t type, uint16_t flags, uint32_t len)
{
    const unsigned char b[FRAME_HEADER] = {(unsigned char)(len >> 24),  (unsigned char)(len >> 16),
                                           (unsigned char)(len >> 8),   (unsigned char)len,
                                           (unsigned char)(type >> 8),  (unsigned char)type,
                                           (unsigned char)(flags >> 8), (unsigned char)(flags & 0xff)};

    memcpy(out, b, sizeof(b));
}

int frame_take(struct span in, uint32_t body_max, struct frame *out, struct err *err)
{
    const unsigned char *b = (const unsigned char *)in.p;
    uint32_t len;
    unsigned type, flags;

    if (in.n < FRAME_HEADER)
        return 0;
    len = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
    type = (unsigned)b[4] << 8 | b[5];
    flags = (unsigned)b[6] << 8 | b[7];
    if (len > body_max)
        return err_set(err, -EPROTO, "a frame of %lu bytes where at most %lu are allowed", (unsigned long)len,
                       (unsigned long)body_max);
    if (flags & ~FLAGS_KNOWN)
        return err_set(err, -EPROTO, "a frame with unknown flags 0x%04x", flags);
    if (in.n - FRAME_HEADER < len)
        return 0;
    *out = (struct frame){(uint16_t)type, (uint16_t)flags, {in.p + FRAME_HEADER, len}};
    return (int)(FRAME_HEADER + len);
}

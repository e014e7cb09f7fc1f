/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.h - the unit on a link between nodes: 4-byte body length, 2-byte type, 2-byte flags (big endian), body
 *
 * Pure: bytes in, frames out. A message longer than one frame is cut into frames of the same type, all but the last
 * with FRAME_MORE.
 */
#ifndef COMMON_FRAME_H
#define COMMON_FRAME_H

#include <stdint.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/limits.h"
#include "common/span.h"

#define FRAME_HEADER 8
#define FRAME_MORE 0x0001u /* the message goes on in the next frame of the same type */
#define FRAME_DATA 0x0002u /* waits behind control frames in every queue; kept in order with other data */

struct frame {
    uint16_t type;
    uint16_t flags;
    struct span body; /* view into the bytes given to frame_take() */
};

void frame_put_header(char out[FRAME_HEADER], uint16_t type, uint16_t flags, uint32_t len);

/* The first frame of `in`. Returns the bytes it takes (header and body), 0 when more bytes are needed, -EPROTO for a
 * body length over `body_max` or unknown flags (found from the header alone). */
int frame_take(struct span in, uint32_t body_max, struct frame *out, struct err *err);

#endif

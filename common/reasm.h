/* SPDX-License-Identifier: BSD-3-Clause */
/* reasm.h - messages out of a stream of frames
 *
 * Pure: the owner appends bytes to `bytes` and takes messages out until there are no more. Control and data frames are
 * put together separately, because control frames may stand between those of a long data message.
 */
#ifndef COMMON_REASM_H
#define COMMON_REASM_H

#include "common/frame.h"

struct reasm {
    struct buf bytes;  /* the owner appends here, between calls of reasm_next() */
    size_t off;        /* what of it is used up */
    uint32_t body_max; /* a longer frame is refused; FRAME_BODY_MAX, or less for a stranger */
    struct {
        struct buf body; /* the frames so far of a message that goes on */
        uint16_t type;
        bool open; /* the next frame of this kind goes on with it */
    } part[2];     /* control, data */
    unsigned done; /* 1 + the part that was handed out last and is to be released; 0: none */
};

void reasm_init(struct reasm *r, uint32_t body_max);
void reasm_done(struct reasm *r);

/* What comes in may hold a key, as it may from the beginning on: see struct buf. */
void reasm_set_secret(struct reasm *r, bool secret);

/* 1: a message, `body` is lent until the next call on `r`; 0: more bytes are needed; -EPROTO: not such a stream, or a
 * message over MESSAGE_MAX; -ENOMEM. */
int reasm_next(struct reasm *r, unsigned *type, struct span *body, struct err *err);

/* Is there the beginning of a frame or message? */
bool reasm_is_midway(const struct reasm *r);

#endif

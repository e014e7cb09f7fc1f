/* SPDX-License-Identifier: BSD-3-Clause */
/* outq.h - messages that wait to be sent, as frames: control ahead of data, between the frames of a long data message
 * too
 *
 * Pure. A zeroed struct is not valid: outq_init().
 */
#ifndef COMMON_OUTQ_H
#define COMMON_OUTQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/span.h"

struct out_msg;

struct outq {
    struct {
        struct out_msg *head, **tail;
        size_t bytes; /* memory of what waits */
    } kind[2];        /* control, data */
    unsigned cur;     /* the kind whose frame is under way */
    bool in_frame;
    size_t frame_left; /* body bytes of that frame still to come */
};

void outq_init(struct outq *q);
void outq_done(struct outq *q); /* drops all; valid and empty afterwards */

/* Copies. 0 or -ENOMEM. */
int outq_add(struct outq *q, uint16_t type, struct span body, bool data);
/* Move up to `room` bytes of frames to `out`; returns how many. 0 with room for a header: the queue is empty. */
size_t outq_fill(struct outq *q, char *out, size_t room);
bool outq_is_empty(const struct outq *q);
/* Memory of the messages of a kind. */
size_t outq_bytes(const struct outq *q, bool data);

#endif

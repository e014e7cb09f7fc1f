/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/outq.h"

#include <errno.h>
#include <stdlib.h>
#include "common/frame.h"
#include "common/limits.h"
#include "common/util.h"

struct out_msg {
    struct out_msg *next;
    size_t len, off;
    uint16_t type;
    char body[];
};

void outq_init(struct outq *q)
{
    *q = (struct outq){0};
    for (int i = 0; i < 2; i++)
        q->kind[i].tail = &q->kind[i].head;
}

static void pop(struct outq *q, unsigned i)
{
    struct out_msg *m = q->kind[i].head;

    q->kind[i].head = m->next;
    if (m->next == NULL)
        q->kind[i].tail = &q->kind[i].head;
    q->kind[i].bytes -= sizeof(*m) + m->len;
    explicit_bzero(m, sizeof(*m) + m->len); /* it may have been the key of the run; costs less than encrypting it did */
    free(m);
}

void outq_done(struct outq *q)
{
    for (unsigned i = 0; i < 2; i++)
        while (q->kind[i].head != NULL)
            pop(q, i);
    outq_init(q);
}

int outq_add(struct outq *q, uint16_t type, struct span body, bool data)
{
    struct out_msg *m = malloc(sizeof(*m) + body.n);

    if (m == NULL)
        return -ENOMEM;
    *m = (struct out_msg){.len = body.n, .type = type};
    if (body.n > 0)
        memcpy(m->body, body.p, body.n);
    *q->kind[data].tail = m;
    q->kind[data].tail = &m->next;
    q->kind[data].bytes += sizeof(*m) + m->len;
    return 0;
}

static void begin_frame(struct outq *q, char *out)
{
    const struct out_msg *m;
    unsigned flags;

    q->cur = q->kind[0].head == NULL;
    m = q->kind[q->cur].head;
    q->frame_left = MIN(m->len - m->off, (size_t)FRAME_BODY_MAX);
    flags = (q->cur ? FRAME_DATA : 0) | (m->off + q->frame_left < m->len ? FRAME_MORE : 0);
    frame_put_header(out, m->type, (uint16_t)flags, (uint32_t)q->frame_left);
    q->in_frame = true;
}

size_t outq_fill(struct outq *q, char *out, size_t room)
{
    size_t used = 0;

    while (!outq_is_empty(q) && room - used >= (q->in_frame ? 1 : FRAME_HEADER)) {
        struct out_msg *m;
        size_t n;

        if (!q->in_frame) {
            begin_frame(q, out + used);
            used += FRAME_HEADER;
        }
        m = q->kind[q->cur].head;
        n = MIN(room - used, q->frame_left);
        memcpy(out + used, m->body + m->off, n);
        used += n;
        m->off += n;
        q->frame_left -= n;
        if (q->frame_left > 0)
            continue;
        q->in_frame = false;
        if (m->off == m->len)
            pop(q, q->cur);
    }
    return used;
}

bool outq_is_empty(const struct outq *q)
{
    return q->kind[0].head == NULL && q->kind[1].head == NULL;
}

size_t outq_bytes(const struct outq *q, bool data)
{
    return q->kind[data].bytes;
}

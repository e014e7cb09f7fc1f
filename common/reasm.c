/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/reasm.h"

void reasm_init(struct reasm *r, uint32_t body_max)
{
    *r = (struct reasm){.body_max = body_max};
    buf_init(&r->part[0].body, MESSAGE_MAX);
    buf_init(&r->part[1].body, MESSAGE_MAX);
    reasm_set_secret(r, true);
}

void reasm_set_secret(struct reasm *r, bool secret)
{
    r->bytes.secret = r->part[0].body.secret = r->part[1].body.secret = secret;
}

void reasm_done(struct reasm *r)
{
    buf_done(&r->bytes);
    buf_done(&r->part[0].body);
    buf_done(&r->part[1].body);
    r->off = 0;
}

/* Bytes that are used up go away in one move when no whole frame is left, not frame by frame; an idle link holds no
 * memory. */
static void compact(struct reasm *r)
{
    if (r->off == r->bytes.len)
        buf_done(&r->bytes);
    else
        buf_drop(&r->bytes, r->off);
    r->off = 0;
}

/* A frame of a message that goes on or ends here. 1 when it is whole. */
static int join(struct reasm *r, const struct frame *f, unsigned i, struct err *err)
{
    struct buf *b = &r->part[i].body;
    int rc;

    if (r->part[i].open && r->part[i].type != f->type)
        return err_set(err, -EPROTO, "a frame of type %u inside a message of type %u", f->type, r->part[i].type);
    rc = buf_add(b, f->body.p, f->body.n);
    if (rc == -E2BIG)
        return err_set(err, -EPROTO, "a message of type %u over %u bytes", f->type, MESSAGE_MAX);
    if (rc < 0)
        return err_set(err, rc, "out of memory");
    r->part[i].type = f->type;
    r->part[i].open = (f->flags & FRAME_MORE) != 0;
    return !r->part[i].open;
}

int reasm_next(struct reasm *r, unsigned *type, struct span *body, struct err *err)
{
    struct frame f;
    int rc;

    if (r->done > 0) {
        buf_done(&r->part[r->done - 1].body);
        r->done = 0;
    }
    for (;;) {
        unsigned i;

        struct span all = buf_span(&r->bytes);

        rc = frame_take((struct span){all.p + r->off, all.n - r->off}, r->body_max, &f, err);
        if (rc <= 0)
            break;
        r->off += (size_t)rc;
        i = (f.flags & FRAME_DATA) != 0;
        if (!r->part[i].open && !(f.flags & FRAME_MORE)) {
            *type = f.type;
            *body = f.body;
            return 1;
        }
        rc = join(r, &f, i, err);
        if (rc < 0)
            return rc;
        if (rc > 0) {
            r->done = i + 1;
            *type = f.type;
            *body = buf_span(&r->part[i].body);
            return 1;
        }
    }
    if (rc == 0)
        compact(r);
    return rc;
}

bool reasm_is_midway(const struct reasm *r)
{
    return r->bytes.len > r->off || r->part[0].open || r->part[1].open;
}

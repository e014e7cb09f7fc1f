/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2.h - PMI-2 frames: taken apart, put together
 *
 * A frame is 6 characters, the decimal length of what follows, and that payload: "cmd=NAME;key=value;...;". A semicolon
 * within a value is doubled. Newest MPICH aligns the length right, MPICH 4.0.2 and Slurm's libpmi2 align it left. Pure;
 * used by server and clients. Values taken from a payload are *raw* until pmi2_plain() made doubled semicolons single.
 */
#ifndef COMMON_PMI2_H
#define COMMON_PMI2_H

#include <stdint.h>
#include "common/buf.h"
#include "common/limits.h"
#include "common/span.h"

#define PMI2_HEADER 6

struct pmi2_field {
    struct span key, raw; /* views into the payload; raw.p NULL: there was no '=' */
};

/* The payload's length, 1..PMI2_PAYLOAD_MAX, from the first PMI2_HEADER bytes of a frame: digits with blanks before or
 * behind. -EPROTO: something else, or 0. */
int pmi2_header(const char header[PMI2_HEADER], size_t *len);

/* Cut the next field off the front of `*rest`. 1; 0: `*rest` is empty; -EPROTO: a NUL, no key, or no semicolon at the
 * end. */
int pmi2_next(struct span *rest, struct pmi2_field *f);
/* 0: the payload is a run of whole fields, the first of them cmd=NAME with a name of visible characters; or -EPROTO. */
int pmi2_check(struct span payload, struct span *name);
/* The raw value of the first field whose whole key is `key`; SPAN_NONE: none. "key=;" is empty, not none. Fields behind
 * a malformed one are not seen. */
struct span pmi2_get(struct span payload, const char *key);
/* `*plain` is the value as it was meant: `raw` itself where nothing is doubled, else in `room`, at whose end it is put.
 * A later call may move `room`, unless raw.n bytes were reserved for each. 0, -ENOMEM, -E2BIG. */
int pmi2_plain(struct span raw, struct buf *room, struct span *plain);

/* A frame is built in `out`, which it has for itself: begin, fields, end. Semicolons in values are doubled. 0, -ENOMEM,
 * and pmi2_end() -E2BIG for a payload over PMI2_PAYLOAD_MAX. */
int pmi2_begin(struct buf *out, struct span cmd);
int pmi2_add(struct buf *out, const char *key, struct span value);
int pmi2_add_str(struct buf *out, const char *key, const char *value);
int pmi2_add_int(struct buf *out, const char *key, int64_t value);
/* A value as pmi2_get() gave it: to send it back as it came. */
int pmi2_add_raw(struct buf *out, const char *key, struct span raw);
int pmi2_end(struct buf *out);

#endif

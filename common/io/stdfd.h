/* SPDX-License-Identifier: BSD-3-Clause */
/* stdfd.h - descriptors 0 to 2 as they were inherited, in a loop, without touching their flags
 *
 * Others share the open file, so O_NONBLOCK is never set: the descriptor is watched through an epoll set of its own
 * (whose descriptor goes into the loop), read when readable, and written in pieces of at most PIPE_BUF when writable.
 * Regular files, which epoll refuses, are read and written in pieces, one an iteration of the loop. The descriptors are
 * lent: they stay open. No callback comes from inside a call here, none after close, and every call, close too, is
 * legal in a callback; the memory goes with the loop. SIGPIPE must be ignored.
 */
#ifndef COMMON_IO_STDFD_H
#define COMMON_IO_STDFD_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>
#include "common/err.h"
#include "common/span.h"

struct stdfd_in;
/* n > 0: bytes (lent for the call); n == 0: end of file; n < 0: negative errno; after these two nothing comes. */
typedef void (*stdfd_in_fn)(ssize_t n, const char *data, void *arg);
/* Reading starts at once. -EBADF and the like: `fd` is not usable. */
int stdfd_in_open(uv_loop_t *loop, int fd, stdfd_in_fn fn, void *arg, struct stdfd_in **out, struct err *err);
/* While paused no callback comes, and nothing is read. A terminal is read only while this process is in its foreground
 * group; otherwise it is tried again every 200 ms. */
void stdfd_in_pause(struct stdfd_in *in, bool paused);
void stdfd_in_close(struct stdfd_in *in); /* NULL is fine; idempotent */

struct stdfd_out;
/* Called when `n` more queued bytes have been written, or, once, with a negative errno (EPIPE, EIO, ENOSPC): after it
 * the rest is dropped, and that and every later write count as written. So the sum of all n > 0 reaches what was
 * queued. */
typedef void (*stdfd_out_fn)(ssize_t n, void *arg);
int stdfd_out_open(uv_loop_t *loop, int fd, stdfd_out_fn fn, void *arg, struct stdfd_out **out, struct err *err);
int stdfd_out_write(struct stdfd_out *o, struct span data); /* copies; 0 or -ENOMEM */
size_t stdfd_out_queued(const struct stdfd_out *o);         /* bytes not reported as written yet */
void stdfd_out_close(struct stdfd_out *o);                  /* drops what is queued; NULL is fine; idempotent */

#endif

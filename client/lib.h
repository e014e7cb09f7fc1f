/* SPDX-License-Identifier: BSD-3-Clause */
/* lib.h - what libpmi and libpmi2 have in common: the one connection of the process, and who may use it when
 *
 * One mutex; a process that was forked from the one that is connected gets an error, never the connection. Nothing
 * here outlives the library's being unloaded. Texts go to standard error, a line each: why an init failed, that the
 * server is lost (once), and with PMI_DEBUG set, why any call failed. */
#ifndef CLIENT_LIB_H
#define CLIENT_LIB_H

#include "client/pm.h"

/* Each library has one of these. */
extern const char lib_name[];

/* Connect; fine where it is connected already. */
int lib_init(bool pmi2, struct pm **pm);
bool lib_is_initialized(void);

/* Take the lock, with the connection. PM_INIT: there is none; PM_FAIL: it is another process's. Each success is
 * followed by one lib_leave(). */
int lib_enter(struct pm **pm);
/* Give the lock back. Returns `rc`; where that is no PM_OK and `err` is not NULL, the text is told as said above. */
int lib_leave(int rc, const struct err *err);

int lib_finalize(void);

/* Say it, tell the server, and exit with `code`. From any thread at any time, also uninitialized. `call` for the line.
 */
void lib_abort(const char *call, int code, const char *text) __attribute__((noreturn));

/* Copy text with its terminator into `out`, which has `room` bytes. PM_OK, or PM_INVALID_LENGTH where it is too small.
 */
int lib_copy(struct span text, char *out, int room, struct err *err);

#endif

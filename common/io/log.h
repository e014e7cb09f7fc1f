/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - the program's own words: one line each on standard error, "pmi-start: ..."
 *
 * error: the job fails. warn: we go on, and say so. info: state steps, a handful a job (-v). debug: wire and tree
 * (-vv). Bytes from a peer are passed through log_escape() first. A provider hands its lines to a sink instead, so that
 * they reach the launcher's standard error.
 */
#ifndef COMMON_IO_LOG_H
#define COMMON_IO_LOG_H

#include <stdbool.h>
#include "common/span.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above `level` are dropped. */
void log_set_level(enum log_level level);

/* Lines go to `sink` (without prefix and newline) instead of standard error; NULL: back to standard error. */
typedef void (*log_sink_fn)(enum log_level level, const char *line, void *arg);
void log_set_sink(log_sink_fn sink, void *arg);

/* End each line by CR and LF, as a terminal in raw mode needs it. */
void log_set_raw(bool raw);

/* Lines that standard error had no room for are kept and written later; at the end of the program, here, or never. */
void log_flush(void);

void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* `s` made printable in one of four static buffers, cut at 200 bytes; for use as an argument of the calls above. */
const char *log_escape(struct span s);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - hosts that could not be started, one line for each distinct reason
 *
 * Reasons that differ only in the host's own name or address count as one. Pure.
 */
#ifndef BOOTSTRAP_REPORT_H
#define BOOTSTRAP_REPORT_H

#include "common/buf.h"

#define REPORT_LINES_MAX 32  /* distinct reasons; the hosts with further ones are counted */
#define REPORT_HOSTS_MAX 400 /* bytes of a folded list of hosts */

struct report;

struct report *report_new(void); /* NULL: out of memory */
void report_free(struct report *r);

/* `host` as the user wrote it, lent until report_free(); `reason` is "STAGE: reason", copied. NULL: out of memory,
 * counted. */
void report_add(struct report *r, const char *host, const char *reason);

/* "hosta,hostb[0-3]: reason" lines joined by newlines. 0 or -ENOMEM. */
int report_text(const struct report *r, struct buf *out);

#endif

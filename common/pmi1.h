/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi1.h - PMI-1 lines: a request cut into its attributes, a reply put together
 *
 * A line is "cmd=NAME key=value key=value"; blanks separate, nothing is quoted (RFC 13). Pure; used by server and
 * clients.
 */
#ifndef COMMON_PMI1_H
#define COMMON_PMI1_H

#include <stdint.h>
#include "common/buf.h"
#include "common/limits.h"
#include "common/span.h"

struct pmi_attr {
    struct span key, val; /* val.p NULL: there was no '=' */
};

struct pmi_line {
    unsigned count;
    struct pmi_attr attr[PMI_LINE_FIELDS_MAX];
};

/* Cut one line (without its newline) into attributes whose spans point into `text`; nothing is copied or written.
 * Words are split at the first '='. `value`, `message` and `error_msg` run to the end of the line, blanks included,
 * because PMI-1 does not quote. Any blanks between words. 0, -EPROTO (a NUL, or a word that begins with '='), -E2BIG
 * (too many words). */
int pmi_line_split(struct pmi_line *line, struct span text);
/* The first attribute whose whole name is `key`; SPAN_NONE: absent. "key=" is an empty span that is not absent. */
struct span pmi_line_get(const struct pmi_line *line, const char *key);

/* Replies, built at the end of `out`: "cmd=NAME rc=RC" first, since Flux takes the first "rc=" it sees anywhere. All
 * return 0 or -ENOMEM. */
int pmi_reply_begin(struct buf *out, struct span cmd, int rc);
/* " key=word". `word` must be one visible word. */
int pmi_reply_word(struct buf *out, const char *key, const char *word);
int pmi_reply_int(struct buf *out, const char *key, int64_t v);
/* " value=..." byte for byte; nothing may follow but the end. */
int pmi_reply_value(struct buf *out, struct span value);
int pmi_reply_end(struct buf *out);

#endif

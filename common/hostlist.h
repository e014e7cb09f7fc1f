/* SPDX-License-Identifier: BSD-3-Clause */
/* hostlist.h - host lists as pdsh and Flux read them (RFC 29), expanded, in order, duplicates kept
 *
 * Pure: no file is opened here (a `^FILE` item is reported to the caller through a callback).
 */
#ifndef COMMON_HOSTLIST_H
#define COMMON_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/span.h"

struct hostlist;

struct host {
    const char *name; /* as the user wrote it, with "user@" if any, IPv6 without brackets; lent by the list */
    unsigned slots;   /* 0: not said */
};

struct hostlist *hostlist_new(void); /* NULL: out of memory */
void hostlist_free(struct hostlist *hl);

/* Called for an item `^FILE`: add what the file holds to `hl`. 0 or negative errno with `err`. */
typedef int (*hostlist_file_fn)(struct hostlist *hl, const char *path, void *arg, struct err *err);

/* Append the hosts of `text`: items separated by commas or blanks, ends of lines among them; at least one. `file` NULL:
 * ^FILE is refused. -EINVAL (the text and the position are in err), -E2BIG (over HOSTS_MAX, found before anything is
 * allocated for it), -ENOMEM. On failure `hl` is unchanged. */
int hostlist_add(struct hostlist *hl, struct span text, hostlist_file_fn file, void *arg, struct err *err);

/* Append one line of a host file: `host`, `host:N`, `host slots=N`; `host` may be a list in brackets, or several with
 * commas. Comments (#), blank lines, CR, trailing blanks are fine. `lineno` is for the message. */
int hostlist_add_line(struct hostlist *hl, struct span line, unsigned lineno, struct err *err);

/* Append one host by name, IPv6 with or without brackets. `slots` 0: not said. 0, -EINVAL (not one name, or slots over
 * SLOTS_MAX), -E2BIG or -ENOMEM. */
int hostlist_add_host(struct hostlist *hl, struct span name, unsigned slots);

size_t hostlist_count(const struct hostlist *hl);
struct host hostlist_get(const struct hostlist *hl,
                         size_t i); /* i < count; the name never moves while the list lives */

/* Remove every host whose name is in `gone`, there with the same user or with none. Returns how many. */
size_t hostlist_exclude(struct hostlist *hl, const struct hostlist *gone);
/* Keep the first `count`. */
void hostlist_truncate(struct hostlist *hl, size_t count);

/* Fold back into one line that hostlist_add() expands to the same list, in order; without slots. One pair of brackets a
 * name at most, of a size that pdsh takes. `brackets_v6`: IPv6 literals in brackets. Added to `out`; on failure
 * (-ENOMEM, or -E2BIG by the cap of `out`) nothing is. */
int hostlist_fold(const struct hostlist *hl, bool brackets_v6, struct buf *out);
/* The same for a plain array of names; for messages: about `max` bytes, then ",... (N hosts)"; max 0: no limit. What is
 * there is always whole names. */
int hostnames_fold(const char *const *names, size_t count, size_t max, struct buf *out);
/* "0-3,7" of ascending numbers; after `max` bytes ",... (N in all)". */
int numbers_fold(const uint32_t *v, size_t count, size_t max, struct buf *out);

#endif

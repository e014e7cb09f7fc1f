/* SPDX-License-Identifier: BSD-3-Clause */
/* attrs.h - the node attributes of one job on one node: PMI-2's info-putnodeattr and info-getnodeattr
 *
 * What a task puts here is readable at once by the job's tasks of this node, and by them alone. A reader may wait for a
 * key that nobody has put yet. Pure.
 */
#ifndef SERVER_ATTRS_H
#define SERVER_ATTRS_H

#include <stdbool.h>
#include "common/span.h"

struct attrs;

/* A key that was waited for is there; `value` is lent for the call, p NULL: it will not come. It may not call back into
 * the store. */
typedef void (*attrs_got_fn)(struct span value, void *arg);

struct attrs *attrs_new(void); /* NULL: out of memory */
void attrs_free(struct attrs *a);

/* Copies; a key put again is replaced. Key 1..PMI_KEY_MAX-1 bytes, value below PMI_VALUE_MAX, which the caller has
 * checked. Tells those who wait for it, first come first. 0, -ENOMEM, -ENOSPC (ATTRS_MAX keys). */
int attrs_put(struct attrs *a, struct span key, struct span value);
/* 0 or -ENOENT; `*value` is lent until the next put. */
int attrs_get(const struct attrs *a, struct span key, struct span *value);
/* Call `got` once, when `key` is put. 0 or -ENOMEM. How many wait is the caller's to limit. */
int attrs_wait(struct attrs *a, struct span key, attrs_got_fn got, void *arg);
/* Does anybody wait? */
bool attrs_is_awaited(const struct attrs *a);
/* Nobody can put anything any more: tells all who wait. */
void attrs_give_up(struct attrs *a);
/* Forget the waits with this `arg`. */
void attrs_withdraw(struct attrs *a, const void *arg);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* descendants.h - find and end every process below this one, in whatever session
 *
 * Complete only for a child subreaper (prctl PR_SET_CHILD_SUBREAPER): there an orphan comes back as a child.
 */
#ifndef SERVER_DESCENDANTS_H
#define SERVER_DESCENDANTS_H

#include <stddef.h>
#include <sys/types.h>

struct descendant {
    pid_t pid;
    pid_t pgrp; /* 0: not known */
};

/* A zeroed struct is a valid empty list. */
struct descendants {
    struct descendant *p;
    size_t count, cap;
};
void descendants_done(struct descendants *list);

/* A snapshot of what lives below `root`, nearest first, zombies included; without the processes `keep[0..nkeep-1]` and
 * what is below them. It may miss what is forked meanwhile. `proc` is the proc file system ("/proc"). Replaces the
 * list's content. 0 or negative errno. */
int descendants_list(struct descendants *list, const char *proc, pid_t root, const pid_t *keep, size_t nkeep);

/* The same by one look at every process of the host: needs no kernel with CONFIG_PROC_CHILDREN, and tells process
 * groups. descendants_list() uses it where it has to. */
int descendants_scan(struct descendants *list, const char *proc, pid_t root, const pid_t *keep, size_t nkeep);

/* Kill -9 every descendant of this process until none is left, at most `ms`; reaps all children, whoever forked them.
 * Used by the keeper, and by a worker whose keeper was killed. Blocks. Returns how many it could not end. */
unsigned descendants_kill_all(unsigned ms);

#endif

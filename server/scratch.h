/* SPDX-License-Identifier: BSD-3-Clause */
/* scratch.h - folders of this node and run that are gone when the run is, however it ends
 *
 * Their paths lie in a page that worker and keeper share, so that the keeper removes them where the worker was killed.
 */
#ifndef SERVER_SCRATCH_H
#define SERVER_SCRATCH_H

enum scratch_kind { SCRATCH_TMP, SCRATCH_SHM, SCRATCH_KINDS };

/* Before the keeper is forked. Without the page, if there is no memory, there will be no folders. */
void scratch_share(void);
/* Make one below `base`, for this user alone; where none can be made there in /tmp, and that is said. Its path, or
 * NULL; lent until it is removed. */
const char *scratch_make(enum scratch_kind kind, const char *base);
const char *scratch_path(enum scratch_kind kind); /* NULL: there is none */
/* All of them, with all that is in them. Whoever comes second finds nothing to do. */
void scratch_remove(void);

#endif

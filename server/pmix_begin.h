/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_begin.h - the library's server with its first namespace, and further ones: all of it calls that block */
#ifndef SERVER_PMIX_BEGIN_H
#define SERVER_PMIX_BEGIN_H

#include <stdbool.h>
#include "common/buf.h"
#include "server/pmix_lib.h"
#include "server/pmix_space.h"

/* What an outer launcher has told this process is not for its own server. PMIX_MCA_* is the user's tuning. */
void pmix_begin_clean(void);
/* "PMIX_MCA_a=x, PMIX_MCA_b=y": the user's tuning, without the variable `but`, which may be NULL. 0 or, where not all
 * of it is there, a negative errno. */
int pmix_begin_settings(const char *but, struct buf *out);
/* Begin the server, unless it is `*started`, and make the namespace and its local ranks known. `*what` is which step
 * has failed. */
pmix_status_t pmix_begin(const struct pmix_lib *lib, const struct pmix_space *s, bool *started, const char **what);
/* Into a pmix_nspace_t, cut where it is too long. */
void pmix_begin_name(char *out, const char *name);

#endif

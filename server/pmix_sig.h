/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_sig.h - the name of a PMIx collective: what it is and who takes part, in one spelling. Pure.
 *
 * "f0.*" is a fence of all of job 0, "c0.0-3,0.7-7,2.*" a connect of five of its ranks and all of job 2, "g0.1-2/me"
 * what makes those two a group of that name.
 */
#ifndef SERVER_PMIX_SIG_H
#define SERVER_PMIX_SIG_H

#include <stdint.h>
#include "common/buf.h"
#include "common/span.h"

#define PMIX_SIG_ALL UINT32_MAX /* as `last`: the whole job, whatever its size */

enum pmix_sig_kind {
    PMIX_SIG_FENCE = 'f',
    PMIX_SIG_CONNECT = 'c',
    PMIX_SIG_DISCONNECT = 'd',
    PMIX_SIG_GROUP = 'g',   /* a group comes to be, */
    PMIX_SIG_UNGROUP = 'u', /* and goes */
    PMIX_SIG_KEYS = 'k',    /* no collective: somebody waits for the keys of a rank */
    PMIX_SIG_LOOKUP = 'l'   /* nor is this: that rank waits for what another is to publish */
};

/* Ranks first to last of a job. */
struct pmix_member {
    uint32_t job, first, last;
};

/* Sorts `v` and joins what overlaps or adjoins; the text is added to `out`. 0, -EINVAL (nobody), -ENOMEM or -E2BIG. */
int pmix_sig_make(enum pmix_sig_kind kind, struct pmix_member *v, size_t count, struct buf *out);

/* Behind the members: what the group is called. 0, -EINVAL (longer than PMIX_GROUP_NAME_MAX), -ENOMEM or -E2BIG. */
int pmix_sig_add_name(struct buf *sig, const char *name);

/* "PMIx fence", "PMIx fence of ranks 0-3,7", "PMIx group 'me' of ranks 1-2", "PMIx get of rank 3's keys",
 * "PMIx look-up of 'name' by rank 0". */
void pmix_sig_text(struct span sig, char *out, size_t size);

/* Takes the first member off `sig`, which may be from a peer. 1, 0 (there is no more) or -EPROTO. */
int pmix_sig_next(struct span *sig, struct pmix_member *m);

#endif

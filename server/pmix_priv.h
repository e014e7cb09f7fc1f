/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_priv.h - what pmix_host.c and pmix_up.c share */
#ifndef SERVER_PMIX_PRIV_H
#define SERVER_PMIX_PRIV_H

#include <pmix_server.h>
#include "server/pmix_host.h"

/* From any thread: to the loop. Takes `u` over; where nobody listens any more it is answered at once. */
void pmix_host_post(struct pmix_up *u);

/* The table of upcalls. A library may copy more of it than we know: the room behind it is zero. */
union pmix_module {
    pmix_server_module_t m;
    char room[1024];
};
extern union pmix_module pmix_up_module;

/* The answer of pmix_host_get() from the library. */
void pmix_up_got(pmix_status_t status, char *data, size_t n, void *arg);

/* Library names, which may lack their terminator. */
int pmix_up_copy_id(const pmix_proc_t *p, struct pmix_id *out);

#endif

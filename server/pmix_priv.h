/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_priv.h - what pmix_host.c and pmix_up*.c share */
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

/* Of pmix_up.c, for all upcalls. `who` NULL: nobody in particular. NULL: out of memory, which all the others take. */
struct pmix_up *pmix_up_new(enum pmix_up_kind kind, const pmix_proc_t *who);
int pmix_up_members(struct pmix_up *u, const pmix_proc_t *procs, size_t n);
/* Did a member of this node drop out of a collective that is told as complete here? */
void pmix_up_look_partial(struct pmix_up *u, const pmix_info_t info[], size_t n);
/* Answered by a status alone. */
void pmix_up_set_op(struct pmix_up *u, pmix_op_cbfunc_t cb, void *arg);
/* A key, and its value unless `v` is NULL. -ENOSYS: of a type that is for its process alone; then nothing was added. */
int pmix_up_pair(struct buf *out, const char *key, size_t key_max, const pmix_value_t *v);
/* To the loop, or, where `rc` says that it is not whole, back to the library. */
pmix_status_t pmix_up_post(struct pmix_up *u, int rc);

/* pmix_up_event.c */
pmix_status_t pmix_up_register(pmix_status_t *codes, size_t ncodes, const pmix_info_t info[], size_t n,
                               pmix_op_cbfunc_t cb, void *arg);
pmix_status_t pmix_up_deregister(pmix_status_t *codes, size_t ncodes, pmix_op_cbfunc_t cb, void *arg);
pmix_status_t pmix_up_notify(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range, pmix_info_t info[],
                             size_t n, pmix_op_cbfunc_t cb, void *arg);
void pmix_up_event_over(const struct pmix_up *u); /* it is about to be freed */

/* pmix_up_info.c */
pmix_status_t pmix_up_group(pmix_group_operation_t op, char name[], const pmix_proc_t procs[], size_t n,
                            const pmix_info_t info[], size_t ninfo, pmix_info_cbfunc_t cb, void *arg);
pmix_status_t pmix_up_query(pmix_proc_t *who, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cb, void *arg);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_lib.h - the functions of libpmix that are used, found at run time. Included by pmix_*.c alone
 *
 * Only what libraries from 3.2 on have: later ones' helpers for info and values are macros in 3.2, so that those are
 * filled in by hand.
 */
#ifndef SERVER_PMIX_LIB_H
#define SERVER_PMIX_LIB_H

#include <pmix_server.h>
#include "common/err.h"

struct pmix_lib {
    pmix_status_t (*server_init)(pmix_server_module_t *module, pmix_info_t info[], size_t ninfo);
    pmix_status_t (*server_finalize)(void);
    pmix_status_t (*register_nspace)(const pmix_nspace_t nspace, int nlocal, pmix_info_t info[], size_t ninfo,
                                     pmix_op_cbfunc_t cb, void *arg);
    void (*deregister_nspace)(const pmix_nspace_t nspace, pmix_op_cbfunc_t cb, void *arg);
    pmix_status_t (*register_client)(const pmix_proc_t *proc, uid_t uid, gid_t gid, void *object, pmix_op_cbfunc_t cb,
                                     void *arg);
    pmix_status_t (*setup_fork)(const pmix_proc_t *proc, char ***env);
    pmix_status_t (*dmodex_request)(const pmix_proc_t *proc, pmix_dmodex_response_fn_t cb, void *arg);
    pmix_status_t (*notify_event)(pmix_status_t status, const pmix_proc_t *source, pmix_data_range_t range,
                                  const pmix_info_t info[], size_t ninfo, pmix_op_cbfunc_t cb, void *arg);
    pmix_status_t (*generate_regex)(const char *input, char **out);
    pmix_status_t (*generate_ppn)(const char *input, char **out);
    const char *(*error_string)(pmix_status_t status);
    const char *(*get_version)(void);
    char version[64]; /* "OpenPMIx 4.2.2rc2", without what is in parentheses behind it */
    unsigned major;
};

/* 0 or -ENOENT with a text that says what to install. The library stays loaded: it may have threads. */
int pmix_lib_open(struct pmix_lib *lib, struct err *err);
/* A negative errno of ours as a status, and back. */
pmix_status_t pmix_lib_status(int rc);
int pmix_lib_rc(pmix_status_t status);

#endif

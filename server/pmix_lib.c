/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"
#ifdef HAVE_PMIX
#include "server/pmix_lib.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "common/util.h"

#define LIBRARY "libpmix.so.2"

#ifndef PMIX_ERR_DUPLICATE_KEY /* since 4 */
#define PMIX_ERR_DUPLICATE_KEY PMIX_ERR_BAD_PARAM
#endif

/* "OpenPMIx 4.2.2rc2 (PMIx Standard: ...)" or "3.2.5a1". */
static void set_version(struct pmix_lib *lib)
{
    const char *text = lib->get_version(), *digit;
    size_t n = strcspn(text, "(,\n");

    while (n > 0 && text[n - 1] == ' ')
        n--;
    if (n >= sizeof(lib->version))
        n = sizeof(lib->version) - 1;
    memcpy(lib->version, text, n);
    lib->version[n] = '\0';
    digit = strpbrk(lib->version, "0123456789");
    lib->major = digit == NULL ? 0 : (unsigned)strtoul(digit, NULL, 10);
}

int pmix_lib_open(struct pmix_lib *lib, struct err *err)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const struct {
        const char *name;
        void *at;
    } symbols[] = {
        {"PMIx_server_init", &lib->server_init},
        {"PMIx_server_finalize", &lib->server_finalize},
        {"PMIx_server_register_nspace", &lib->register_nspace},
        {"PMIx_server_deregister_nspace", &lib->deregister_nspace},
        {"PMIx_server_register_client", &lib->register_client},
        {"PMIx_server_setup_fork", &lib->setup_fork},
        {"PMIx_server_dmodex_request", &lib->dmodex_request},
        {"PMIx_Notify_event", &lib->notify_event},
        {"PMIx_generate_regex", &lib->generate_regex},
        {"PMIx_generate_ppn", &lib->generate_ppn},
        {"PMIx_Error_string", &lib->error_string},
        {"PMIx_Get_version", &lib->get_version},
    };

    if (handle == NULL)
        return err_set(err, -ENOENT, "PMIx: %s; install libpmix there (Debian: libpmix2), or say --pmix=no", dlerror());
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *p = dlsym(handle, symbols[i].name);

        if (p == NULL)
            return err_set(err, -ENOENT, "PMIx: %s is too old, it has no %s: 3.2 or later is needed, or --pmix=no",
                           LIBRARY, symbols[i].name);
        memcpy(symbols[i].at, &p, sizeof(p)); /* as dlopen(3) would have it, but without a cast */
    }
    set_version(lib);
    return 0;
}

static const struct {
    int rc;
    pmix_status_t status;
} statuses[] = {
    {0, PMIX_SUCCESS},
    {0, PMIX_OPERATION_SUCCEEDED},
    {-ENOENT, PMIX_ERR_NOT_FOUND},
    {-ETIMEDOUT, PMIX_ERR_TIMEOUT},
    {-ENOMEM, PMIX_ERR_NOMEM},
    {-ENOSYS, PMIX_ERR_NOT_SUPPORTED},
    {-EEXIST, PMIX_ERR_DUPLICATE_KEY},
    {-EINVAL, PMIX_ERR_BAD_PARAM},
    {-ENOSPC, PMIX_ERR_OUT_OF_RESOURCE},
    {-E2BIG, PMIX_ERR_OUT_OF_RESOURCE},
};

pmix_status_t pmix_lib_status(int rc)
{
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (statuses[i].rc == rc)
            return statuses[i].status;
    return PMIX_ERROR;
}

int pmix_lib_rc(pmix_status_t status)
{
    for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].rc;
    return -EIO;
}
#endif

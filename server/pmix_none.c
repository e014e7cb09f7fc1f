/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_none.c - in the place of pmix_host.c and pmix_up.c where there were no headers of PMIx: nothing can be opened */
#include "config.h"
#ifndef HAVE_PMIX
#include "server/pmix_host.h"

bool pmix_host_is_built(void)
{
    return false;
}

bool pmix_host_is_left(void)
{
    return false;
}

int pmix_host_open(uv_loop_t *loop, const struct pmix_host_ops *ops, void *arg, struct pmix_host **out, struct err *err)
{
    (void)loop;
    (void)ops;
    (void)arg;
    (void)out;
    return err_set(err, -ENOSYS, "PMIx: this pmi-start was built without it (libpmix-dev was not there)");
}

const char *pmix_host_version(const struct pmix_host *h)
{
    (void)h;
    return "";
}

const char *pmix_host_overruled(const struct pmix_host *h)
{
    (void)h;
    return NULL;
}

int pmix_host_add(struct pmix_host *h, struct pmix_space *s)
{
    (void)h;
    pmix_space_done(s);
    return -ENOSYS;
}

void pmix_host_remove(struct pmix_host *h, const char *nspace)
{
    (void)h;
    (void)nspace;
}

int pmix_host_env(struct pmix_host *h, const char *nspace, uint32_t rank, char ***env)
{
    (void)h;
    (void)nspace;
    (void)rank;
    (void)env;
    return -ENOSYS;
}

void pmix_host_get(struct pmix_host *h, const char *nspace, uint32_t rank, uint64_t ticket)
{
    (void)h;
    (void)nspace;
    (void)rank;
    (void)ticket;
}

int pmix_host_notify(struct pmix_host *h, const struct pmix_id *source, int status, unsigned range, struct span pairs)
{
    (void)h;
    (void)source;
    (void)status;
    (void)range;
    (void)pairs;
    return -ENOSYS;
}

void pmix_host_drain(struct pmix_host *h)
{
    (void)h;
}

void pmix_host_close(struct pmix_host *h, bool clean, void (*closed)(void *arg))
{
    (void)h;
    (void)clean;
    (void)closed;
}

void pmix_up_done(struct pmix_up *u, int rc, struct span data)
{
    (void)u;
    (void)rc;
    (void)data;
}
#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/names.h"

#include <errno.h>
#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>
#include "common/limits.h"

struct name {
    UT_hash_handle hh;
    size_t service_len, port_len;
    char bytes[]; /* the service, the port */
};

struct names {
    struct name *all;
};

struct names *names_new(void)
{
    return calloc(1, sizeof(struct names));
}

void names_free(struct names *n)
{
    struct name *x, *next;

    if (n == NULL)
        return;
    HASH_ITER(hh, n->all, x, next)
    {
        HASH_DELETE(hh, n->all, x);
        free(x);
    }
    free(n);
}

static struct name *find(const struct names *n, struct span service)
{
    struct name *x = NULL;

    if (service.n > 0)
        HASH_FIND(hh, n->all, service.p, service.n, x);
    return x;
}

static bool is_lawful(struct span s, size_t max)
{
    return s.n > 0 && s.n <= max;
}

int names_publish(struct names *n, struct span service, struct span port)
{
    struct name *x;

    if (!is_lawful(service, NAME_SERVICE_MAX) || !is_lawful(port, NAME_PORT_MAX))
        return -EINVAL;
    if (find(n, service) != NULL)
        return -EEXIST;
    if (HASH_COUNT(n->all) >= NAMES_MAX)
        return -ENOSPC;
    x = calloc(1, sizeof(*x) + service.n + port.n);
    if (x == NULL)
        return -ENOMEM;
    x->service_len = service.n;
    x->port_len = port.n;
    memcpy(x->bytes, service.p, service.n);
    memcpy(x->bytes + service.n, port.p, port.n);
    HASH_ADD_KEYPTR(hh, n->all, x->bytes, x->service_len, x);
    if (x->hh.tbl == NULL) {
        free(x);
        return -ENOMEM;
    }
    return 0;
}

int names_lookup(const struct names *n, struct span service, struct span *port)
{
    const struct name *x = find(n, service);

    if (x == NULL)
        return -ENOENT;
    *port = (struct span){x->bytes + x->service_len, x->port_len};
    return 0;
}

int names_unpublish(struct names *n, struct span service)
{
    struct name *x = find(n, service);

    if (x == NULL)
        return -ENOENT;
    HASH_DELETE(hh, n->all, x);
    free(x);
    return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* names.h - the run's published names: service to port. Kept at the root, for all jobs and both PMI wires. Pure. */
#ifndef SERVER_NAMES_H
#define SERVER_NAMES_H

#include "common/span.h"

#define NAMES_MAX 65536 /* published at once */

struct names;

struct names *names_new(void); /* NULL: out of memory */
void names_free(struct names *n);

/* Copies. A service has 1 to NAME_SERVICE_MAX bytes, a port 1 to NAME_PORT_MAX. 0, -EEXIST, -EINVAL (a
 * length), -ENOSPC (NAMES_MAX), -ENOMEM. */
int names_publish(struct names *n, struct span service, struct span port);
/* 0 or -ENOENT; `*port` is lent until the name goes. */
int names_lookup(const struct names *n, struct span service, struct span *port);
/* 0 or -ENOENT. */
int names_unpublish(struct names *n, struct span service);

#endif

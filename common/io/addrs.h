/* SPDX-License-Identifier: BSD-3-Clause */
/* addrs.h - this machine's addresses, and which of them to give out */
#ifndef COMMON_IO_ADDRS_H
#define COMMON_IO_ADDRS_H

#include <stdbool.h>
#include <stddef.h>
#include "common/err.h"
#include "common/hostlist.h"

/* Global addresses of interfaces that are up, as text, NULL-terminated (strv_free). Those first that routes to `hosts`
 * would use as source (up to 16 of them that resolve here within 2 s in all are asked; hosts may be NULL); at most
 * ADDRS_MAX; never loopback or link-local. `interface` (NAME, ADDR, CIDR or NULL) restricts them; nothing left:
 * -EINVAL, and err lists the choices. Blocks up to 2 s, so only for the start, before the loop runs. */
int addrs_to_give(const char *interface, const struct hostlist *hosts, char ***out, struct err *err);

/* Does `name` (user@ is ignored) mean this machine: its host name short or full, localhost, or one of its addresses as
 * a number? No DNS. */
bool addrs_is_self(const char *name);

/* Is it a number, IPv6 with or without brackets, that is a loopback address or one of this machine's? */
bool addrs_is_local(const char *number);

/* The interface that carries local address `addr` (text, no port), or "?"; static buffer. */
const char *addrs_interface_of(const char *addr);
/* Are all of these ("ADDR:PORT") loopback ones? Then everybody is on this machine. */
bool addrs_all_loopback(char *const *addrs);

#endif

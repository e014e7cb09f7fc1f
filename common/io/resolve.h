/* SPDX-License-Identifier: BSD-3-Clause */
/* resolve.h - addresses of a few host names within a time limit, before there is a loop
 *
 * One detached thread a name: getaddrinfo() cannot be interrupted, so a thread that is late is left behind, and frees
 * what is shared when it is the last to need it. A dead DNS server thus costs the time limit, once, and nothing else.
 */
#ifndef COMMON_IO_RESOLVE_H
#define COMMON_IO_RESOLVE_H

#include <netdb.h>
#include <stddef.h>
#include <stdint.h>

#define RESOLVE_MAX 16 /* names at once */

/* `i`: index of the name; `ai`: what it has, lent for the call. */
typedef void (*resolve_fn)(size_t i, const struct addrinfo *ai, void *arg);

/* Calls `fn`, in the order of the names, for each that was resolved within `limit_ms`. At most RESOLVE_MAX names. */
void resolve_names(char *const *names, size_t count, uint64_t limit_ms, resolve_fn fn, void *arg);

#endif

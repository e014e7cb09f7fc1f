/* SPDX-License-Identifier: BSD-3-Clause */
/* sockname.h - an IPv4 or IPv6 address with a port, as numbers, as text and as what it is compared by */
#ifndef COMMON_IO_SOCKNAME_H
#define COMMON_IO_SOCKNAME_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "common/span.h"

union sockname {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Room for "[ADDRESS]:PORT". */
#define SOCKNAME_TEXT (INET6_ADDRSTRLEN + 10)

/* `number` is an address, IPv6 with or without brackets, but without a zone. The length for bind() and connect(); 0: it
 * is no such number. */
socklen_t sockname_set(union sockname *out, struct span number, uint16_t port);
bool sockname_is_number(struct span text);

/* Of a socket's own end, or of its peer; false where there is none (errno), or none of IPv4 and IPv6. */
bool sockname_of(int fd, bool peer, union sockname *out);
uint16_t sockname_port(const union sockname *a);
void sockname_text(const union sockname *a, char out[SOCKNAME_TEXT]);

/* An address without its port as 16 bytes, IPv4 mapped into IPv6, so that there is one kind to compare. False: it is of
 * another family. */
bool sockname_bytes(const struct sockaddr *sa, uint8_t out[16]);

#endif

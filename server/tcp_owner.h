/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_owner.h - which user holds the other end of a TCP connection over loopback, as the kernel says */
#ifndef SERVER_TCP_OWNER_H
#define SERVER_TCP_OWNER_H

#include <sys/types.h>
#include "common/err.h"

/* The owner of the socket at the other end of `fd`, an accepted IPv4 connection from this host. 0; -ENOENT: the kernel
 * knows no such socket, or it is not established or has been closed (such a one shows user 0, which proves nothing);
 * other negative errno: the kernel cannot tell (no inet_diag, say), err has the reason. */
int tcp_owner(int fd, uid_t *uid, struct err *err);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* listen_socket.h - one listening TCP socket */
#ifndef COMMON_IO_LISTEN_SOCKET_H
#define COMMON_IO_LISTEN_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

/* `addr` is a number, IPv6 without brackets; port 0: any. Non-blocking, close-on-exec; or negative errno. */
int listen_socket(const char *addr, uint16_t port);
/* 0: it cannot be told. */
uint16_t listen_socket_port(int fd);
/* Does this errno say that there is no such address here? No IPv6, say. */
bool listen_socket_absent(int rc);
/* After an accept4() that failed: does errno say that there is no room for one more connection (descriptors, memory)?
 * `told`: has it been said of this socket? That is done here, once. The connection still waits, so who polls the socket
 * is told of it for ever: look again after LISTEN_PAUSE_MS. */
bool listen_socket_no_room(int fd, bool *told);
#define LISTEN_PAUSE_MS 100

#endif

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

#endif

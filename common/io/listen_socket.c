/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/listen_socket.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/io/sockname.h"

int listen_socket(const char *addr, uint16_t port)
{
    union sockname a;
    socklen_t len = sockname_set(&a, span_of(addr), port);
    int one = 1, rc = 0, fd;

    assert(len > 0);
    fd = socket(a.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        (a.sa.sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) ||
        bind(fd, &a.sa, len) < 0 || listen(fd, SOMAXCONN) < 0)
        rc = -errno;
    if (rc == 0)
        return fd;
    close(fd);
    return rc;
}

uint16_t listen_socket_port(int fd)
{
    union sockname a;

    return sockname_of(fd, false, &a) ? sockname_port(&a) : 0;
}

bool listen_socket_no_room(int fd, bool *told)
{
    int why = errno;

    if (why != EMFILE && why != ENFILE && why != ENOBUFS && why != ENOMEM)
        return false;
    if (!*told)
        log_warn("a connection to port %u cannot be taken: %s%s", listen_socket_port(fd), strerror(why),
                 why == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
    *told = true;
    return true;
}

bool listen_socket_absent(int rc)
{
    return rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL || rc == -EPROTONOSUPPORT;
}

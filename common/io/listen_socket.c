/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/listen_socket.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/log.h"

union addr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t parse(const char *text, uint16_t port, union addr *out)
{
    *out = (union addr){0};
    if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        return sizeof(out->v4);
    }
    if (inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(port);
        return sizeof(out->v6);
    }
    return 0;
}

int listen_socket(const char *addr, uint16_t port)
{
    union addr a;
    socklen_t len = parse(addr, port, &a);
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
    union addr a = {0};
    socklen_t len = sizeof(a);

    if (getsockname(fd, &a.sa, &len) < 0)
        return 0;
    return ntohs(a.sa.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
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

/* SPDX-License-Identifier: BSD-3-Clause */
/* wire_start.c - how a connection to a PMI server begins: connect, initack, init */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "client/wire.h"
#include "common/limits.h"
#include "common/num.h"
#include "common/util.h"

/* "host:port" or "[address]:port" into parts, of which `host` is a copy in `text`. */
static int split(const char *host_port, char text[HOST_NAME_MAX_LEN + 1], const char **port, struct err *err)
{
    const char *colon = strrchr(host_port, ':'), *host = host_port;
    size_t n = colon != NULL ? (size_t)(colon - host_port) : 0;
    uint64_t number;

    if (n >= 2 && host[0] == '[' && host[n - 1] == ']') {
        host++;
        n -= 2;
    }
    if (n == 0 || n > HOST_NAME_MAX_LEN || num_u64(span_of(colon + 1), 1, 65535, &number) < 0)
        return err_set(err, -EINVAL, "PMI_PORT=%.200s: not host:port", host_port);
    memcpy(text, host, n);
    text[n] = '\0';
    *port = colon + 1;
    return 0;
}

/* An interrupted connect() goes on by itself; to call it again would be wrong. */
static int wait_connected(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    socklen_t len = sizeof(int);
    int why = 0;

    while (poll(&p, 1, -1) < 0)
        if (errno != EINTR)
            return -errno;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &len) < 0 ? -errno : -why;
}

static int connect_one(const struct addrinfo *a)
{
    static const int on = 1;
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol), rc = 0;

    if (fd < 0)
        return -errno;
    if (connect(fd, a->ai_addr, a->ai_addrlen) < 0)
        rc = errno == EINTR ? wait_connected(fd) : -errno;
    if (rc < 0) {
        close(fd);
        return rc;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

int wire_connect(struct wire *w, const char *host_port, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char host[HOST_NAME_MAX_LEN + 1];
    const char *port = NULL;
    int rc = split(host_port, host, &port, err), fd = -EADDRNOTAVAIL;

    if (rc < 0)
        return rc;
    rc = getaddrinfo(host, port, &hints, &list);
    if (rc != 0)
        return err_set(err, -EHOSTUNREACH, "PMI_PORT=%.200s: %s", host_port, gai_strerror(rc));
    for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next)
        fd = connect_one(a);
    freeaddrinfo(list);
    if (fd < 0)
        return err_set(err, fd, "cannot connect to the PMI server at %.200s: %s", host_port, strerror(-fd));
    *w = (struct wire){.fd = fd, .is_own = true, .is_socket = true, .first_ms = WIRE_FIRST_MS};
    buf_init(&w->in, WIRE_LINE_MAX);
    return 0;
}

static bool take_number(const struct pmi_line *line, const char *key, int64_t min, int *out)
{
    int64_t v;

    if (num_i64(pmi_line_get(line, key), min, INT_MAX, &v) < 0)
        return false;
    *out = (int)v;
    return true;
}

int wire_initack(struct wire *w, uint32_t id, int *rank, int *size, struct err *err)
{
    static const char *const keys[] = {"size", "rank", "debug"};
    int v[ARRAY_SIZE(keys)], answer, rc;
    struct pmi_line line;
    char request[48];
    int n = snprintf(request, sizeof(request), "cmd=initack pmiid=%" PRIu32 "\n", id);

    rc = wire_ask(w, (struct span){request, (size_t)n}, "initack", &line, &answer, err);
    if (rc == 0 && answer != 0) {
        w->is_broken = true;
        rc = err_set(err, -EACCES, "the PMI server refuses PMI_ID=%" PRIu32 " (rc=%d)", id, answer);
    }
    for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(keys); i++) {
        rc = wire_reply(w, "set", &line, &answer, err);
        if (rc == 0 && !take_number(&line, keys[i], i == 0 ? 1 : 0, &v[i])) {
            w->is_broken = true;
            rc = err_set(err, -EPROTO, "the PMI server does not say a %s after initack", keys[i]);
        }
    }
    if (rc < 0)
        return rc;
    *size = v[0];
    *rank = v[1];
    return 0;
}

int wire_init1(struct wire *w, struct err *err)
{
    struct span version;
    struct pmi_line line;
    int answer, rc;

    rc = wire_ask(w, span_of("cmd=init pmi_version=1 pmi_subversion=1\n"), "response_to_init", &line, &answer, err);
    if (rc < 0)
        return rc;
    version = pmi_line_get(&line, "pmi_version");
    if (answer != 0 || (version.p != NULL && !span_is(version, "1")))
        return err_set(err, -EPROTONOSUPPORT, "the PMI server does not speak PMI-1 (rc=%d, version %.*s)", answer,
                       (int)(version.n < 16 ? version.n : 16), version.p != NULL ? version.p : "");
    return 0;
}

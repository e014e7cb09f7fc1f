/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_conn2.c - the other ways to a server: over PMI_PORT, and PMI-2's frames */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/progs/pmi_conn.h"

/* --- PMI_PORT --------------------------------------------------------------------------------------------------- */

/* A server of another host that is gone without a word, or has forgotten us, is noticed: then we end. */
static void keep_alive(int fd)
{
    const int on = 1, every = 5, times = 8;

    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &every, sizeof(every));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof(times));
}

static int connect_to(const struct pmi *p, const char *where)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const char *colon = strrchr(where, ':');
    char addr[64];

    if (fd < 0 || colon == NULL)
        pmi_die(p, 2, "PMI_PORT '%s': %s", where, strerror(errno));
    snprintf(addr, sizeof(addr), "%.*s", (int)(colon - where), where);
    at.sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10));
    if (inet_pton(AF_INET, addr, &at.sin_addr) != 1 || connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
        pmi_die(p, STATUS_LOST, "cannot connect to %s: %s", where, strerror(errno));
    keep_alive(fd);
    return fd;
}

/* The answer of four lines says who we are. */
static void initack(struct pmi *p)
{
    char line[64];

    snprintf(line, sizeof(line), "cmd=initack pmiid=%d\n", p->id);
    pmi_send(p, line, strlen(line));
    for (int i = 0; i < 4; i++) {
        pmi_read_line(p);
        (void)sscanf(p->line, "cmd=set size=%d", &p->size);
        (void)sscanf(p->line, "cmd=set rank=%d", &p->rank);
    }
}

void pmi_dial(struct pmi *p)
{
    const char *where = getenv("PMI_PORT");

    if (where == NULL || p->id < 0 || (p->fd >= 0 && p->id % 2 == 0))
        return;
    p->fd = connect_to(p, where);
    if (!p->two)
        initack(p);
}

void pmi_hold(struct pmi *p, int ms)
{
    struct pollfd one = {.fd = p->fd, .events = POLLIN};

    if (poll(&one, 1, ms) > 0)
        pmi_die(p, STATUS_LOST, "the server closed the connection, or says what nobody has asked");
}

/* --- PMI-2 ------------------------------------------------------------------------------------------------------ */

static void read_all(struct pmi *p, char *to, size_t len)
{
    while (len > 0) {
        ssize_t n = read(p->fd, to, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            pmi_die(p, STATUS_LOST, "the server closed the connection");
        to += n;
        len -= (size_t)n;
    }
}

void pmi2_raw(struct pmi *p, const char *body)
{
    char head[24], *end;
    long len;

    snprintf(head, sizeof(head), "%6zu", strlen(body));
    pmi_send(p, head, 6);
    pmi_send(p, body, strlen(body));
    read_all(p, head, 6);
    head[6] = '\0';
    len = strtol(head, &end, 10);
    if (len <= 0 || len >= READER_LINE_MAX || *end != '\0')
        pmi_die(p, STATUS_REFUSED, "a frame of length '%s'", head);
    read_all(p, p->line, (size_t)len);
    p->line[len] = '\0';
}

int pmi2_ask(struct pmi *p, const char *name, const char *fmt, ...)
{
    char body[READER_LINE_MAX], reply[64];
    int used = snprintf(body, sizeof(body), "cmd=%s;", name);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(body + used, sizeof(body) - (size_t)used, fmt, ap);
    va_end(ap);
    pmi2_raw(p, body);
    snprintf(reply, sizeof(reply), "cmd=%s-response;", name);
    if (strncmp(p->line, reply, strlen(reply)) != 0)
        pmi_die(p, STATUS_REFUSED, "'%s' in answer to %s", p->line, name);
    return strstr(p->line, ";rc=0;") == NULL;
}

int pmi2_field(const struct pmi *p, const char *key, char *out)
{
    char name[64];
    const char *at;

    snprintf(name, sizeof(name), ";%s=", key);
    at = strstr(p->line, name);
    if (at == NULL)
        return 0;
    at += strlen(name);
    snprintf(out, READER_LINE_MAX, "%.*s", (int)strcspn(at, ";"), at);
    return 1;
}

void pmi2_init(struct pmi *p)
{
    static const char hello[] = "cmd=init pmi_version=2 pmi_subversion=0\n";
    char text[READER_LINE_MAX];

    pmi_send(p, hello, strlen(hello));
    pmi_read_line(p);
    if (strstr(p->line, "rc=0") == NULL)
        pmi_die(p, STATUS_REFUSED, "init: '%s'", p->line);
    if (pmi2_ask(p, "fullinit", "pmirank=%d;threaded=FALSE;", p->id >= 0 ? p->id : p->rank) != 0)
        pmi_die(p, STATUS_REFUSED, "fullinit: '%s'", p->line);
    if (pmi2_field(p, "rank", text))
        p->rank = (int)strtol(text, NULL, 10);
    if (pmi2_field(p, "size", text))
        p->size = (int)strtol(text, NULL, 10);
    p->vallen_max = 1024;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_conn.c - requests out, one line each; replies in, however they are cut */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/progs/pmi_conn.h"

static int env_int(const char *name, int fallback)
{
    const char *text = getenv(name);

    return text != NULL ? (int)strtol(text, NULL, 10) : fallback;
}

void pmi_open(struct pmi *p, const struct reader *reader)
{
    memset(p, 0, sizeof(*p));
    p->reader = reader;
    p->fd = env_int("PMI_FD", -1);
    p->id = env_int("PMI_ID", -1);
    p->rank = env_int("PMI_RANK", p->id < 0 ? 0 : p->id);
    p->size = env_int("PMI_SIZE", 1);
}

void pmi_close(struct pmi *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
}

void pmi_die(const struct pmi *p, int status, const char *fmt, ...)
{
    char text[2 * READER_LINE_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fflush(stdout);
    fprintf(stderr, "pmi_client: rank %d: %s\n", p->rank, text);
    exit(status);
}

void pmi_send(struct pmi *p, const char *bytes, size_t len)
{
    if (p->fd < 0)
        pmi_die(p, STATUS_LOST, "no PMI_FD");
    while (len > 0) {
        ssize_t n = write(p->fd, bytes, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            pmi_die(p, STATUS_LOST, "write: %s", strerror(errno));
        bytes += n;
        len -= (size_t)n;
    }
}

/* Take the first line out of what was read; 0 where there is none yet. */
static int next_line(struct pmi *p)
{
    char *nl = memchr(p->in, '\n', p->used);
    size_t len;

    if (nl == NULL)
        return 0;
    len = (size_t)(nl - p->in);
    if (p->reader->line_max != 0 && len + 1 > p->reader->line_max)
        pmi_die(p, STATUS_REFUSED, "a line of %zu bytes, more than %s takes", len + 1, p->reader->name);
    memcpy(p->line, p->in, len);
    p->line[len] = '\0';
    p->used -= len + 1;
    memmove(p->in, nl + 1, p->used);
    return 1;
}

void pmi_read_line(struct pmi *p)
{
    while (!next_line(p)) {
        ssize_t n;

        if (p->used == sizeof(p->in))
            pmi_die(p, STATUS_REFUSED, "a line of more than %zu bytes", sizeof(p->in));
        n = read(p->fd, p->in + p->used, sizeof(p->in) - p->used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            pmi_die(p, STATUS_LOST, "the server closed the connection");
        p->used += (size_t)n;
    }
}

int pmi_ask(struct pmi *p, const char *reply, const char *fmt, ...)
{
    char request[READER_LINE_MAX];
    const char *why = "";
    va_list ap;
    int len, rc;

    va_start(ap, fmt);
    len = vsnprintf(request, sizeof(request) - 1, fmt, ap);
    va_end(ap);
    if (len < 0 || (size_t)len >= sizeof(request) - 1)
        pmi_die(p, 2, "a request of more than %zu bytes", sizeof(request) - 2);
    request[len++] = '\n';
    pmi_send(p, request, (size_t)len);
    pmi_read_line(p);
    rc = reader_check(p->reader, p->line, reply, &why);
    if (rc < 0)
        pmi_die(p, STATUS_REFUSED, "%s refuses '%s': %s", p->reader->name, p->line, why);
    if (p->used > 0)
        pmi_die(p, STATUS_REFUSED, "more than one line in answer to one request");
    return rc;
}

void pmi_field(struct pmi *p, const char *key, char *out)
{
    const char *why = "the field is missing";

    if (p->reader->get(p->line, key, out, &why) != 1)
        pmi_die(p, STATUS_REFUSED, "%s wants %s in '%s': %s", p->reader->name, key, p->line, why);
}

static int int_field(struct pmi *p, const char *key)
{
    char text[READER_LINE_MAX], *end;
    long n;

    pmi_field(p, key, text);
    n = strtol(text, &end, 10);
    if (end == text || *end != '\0' || n < 1 || n > READER_LINE_MAX)
        pmi_die(p, STATUS_REFUSED, "bad number for %s in '%s'", key, p->line);
    return (int)n;
}

void pmi_init(struct pmi *p)
{
    if (pmi_ask(p, "response_to_init", "cmd=init pmi_version=1 pmi_subversion=1") != 0)
        pmi_die(p, STATUS_REFUSED, "init: '%s'", p->line);
    if (pmi_ask(p, "maxes", "cmd=get_maxes") != 0)
        pmi_die(p, STATUS_REFUSED, "get_maxes: '%s'", p->line);
    p->kvsname_max = int_field(p, "kvsname_max");
    p->keylen_max = int_field(p, "keylen_max");
    p->vallen_max = int_field(p, "vallen_max");
    /* MPICH 4.0.2 fits a put into one buffer, and crashes where that leaves 256 bytes or less for the value. */
    if (p->reader->string_rc && p->kvsname_max + p->keylen_max + p->vallen_max + 30 > 1024)
        p->vallen_max = 1024 - p->kvsname_max - p->keylen_max - 30;
    if (p->vallen_max <= 256 || p->vallen_max > 1024)
        pmi_die(p, STATUS_REFUSED, "room for values of %d bytes", p->vallen_max);
    if (pmi_ask(p, "my_kvsname", "cmd=get_my_kvsname") != 0)
        pmi_die(p, STATUS_REFUSED, "get_my_kvsname: '%s'", p->line);
    pmi_field(p, "kvsname", p->kvsname);
    if (strlen(p->kvsname) >= (size_t)p->kvsname_max)
        pmi_die(p, STATUS_REFUSED, "the name '%s' is longer than the server's own limit", p->kvsname);
}

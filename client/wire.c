/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "common/limits.h"
#include "common/num.h"
#include "common/pmi2.h"

#define QUOTE_MAX 80  /* bytes of a bad reply that a message shows */
#define READ_ROOM 512 /* most replies are shorter; a process may have very many connections */

static int fail(struct wire *w, struct err *err, int code, const char *what)
{
    w->is_broken = true;
    return err_set(err, code, "%s: %s", what, strerror(-code));
}

static int lost(struct wire *w, struct err *err)
{
    w->is_broken = true;
    return err_set(err, -EPIPE, "the PMI server has closed the connection");
}

static int check_usable(const struct wire *w, struct err *err)
{
    if (w->fd < 0)
        return err_set(err, -ENOTCONN, "there is no connection to a PMI server");
    if (w->is_broken)
        return err_set(err, -ENOTCONN, "the connection to the PMI server failed before");
    return 0;
}

int wire_open_fd(struct wire *w, int fd, struct err *err)
{
    int flags = fcntl(fd, F_GETFD), type;
    socklen_t len = sizeof(type);

    if (flags < 0)
        return err_set(err, -errno, "PMI_FD is %d, but no such descriptor is open", fd);
    (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
    *w = (struct wire){.fd = fd, .fd_flags = flags, .first_ms = WIRE_FIRST_MS};
    w->is_socket = getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
    buf_init(&w->in, WIRE_LINE_MAX);
    return 0;
}

int wire_open(struct wire *w, const struct where *where, struct err *err)
{
    return where->fd >= 0 ? wire_open_fd(w, where->fd, err) : wire_connect(w, where->port, err);
}

void wire_close(struct wire *w)
{
    if (w->fd >= 0 && w->is_own)
        close(w->fd);
    else if (w->fd >= 0)
        (void)fcntl(w->fd, F_SETFD, w->fd_flags);
    buf_done(&w->in);
    *w = WIRE_CLOSED;
}

static void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    (void)poll(&p, 1, -1);
}

/* write() to a pipe or the like without a signal: SIGPIPE is blocked in this thread, and taken back if it was raised.
 * One that was pending before stays. */
static ssize_t write_quietly(int fd, const char *p, size_t n)
{
    static const struct timespec now = {0, 0};
    sigset_t pipe_only, old, pending;
    bool had_one;
    ssize_t done;
    int saved;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    had_one = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_only, &old);
    done = write(fd, p, n);
    saved = errno;
    if (done < 0 && saved == EPIPE && !had_one)
        while (sigtimedwait(&pipe_only, NULL, &now) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = saved;
    return done;
}

int wire_send(struct wire *w, struct span bytes, struct err *err)
{
    int rc = check_usable(w, err);

    while (rc == 0 && bytes.n > 0) {
        ssize_t n = w->is_socket ? send(w->fd, bytes.p, bytes.n, MSG_NOSIGNAL) : write_quietly(w->fd, bytes.p, bytes.n);

        if (n >= 0) {
            bytes.p += n;
            bytes.n -= (size_t)n;
        } else if (errno == EAGAIN) {
            wait_for(w->fd, POLLOUT);
        } else if (errno == EPIPE || errno == ECONNRESET) {
            rc = lost(w, err);
        } else if (errno != EINTR) {
            rc = fail(w, err, -errno, "cannot write to the PMI server");
        }
    }
    return rc;
}

/* read(), and a descriptor with it, which is closed on exec. There is room for just one: the kernel closes the rest. */
static ssize_t read_passed(int fd, char *p, size_t n, int *passed)
{
    struct iovec bytes = {p, n};
    union {
        struct cmsghdr head;
        char room[CMSG_LEN(sizeof(int))];
    } control;
    struct msghdr m = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
    ssize_t got = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = got < 0 ? NULL : CMSG_FIRSTHDR(&m);

    if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
        return got;
    if (*passed >= 0)
        close(*passed);
    memcpy(passed, CMSG_DATA(c), sizeof(*passed));
    return got;
}

/* Does anything come within `ms`? Time in which this process was stopped does not count. */
static bool comes_within(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (ms > 0) {
        int slice = ms < 1000 ? ms : 1000, rc = poll(&p, 1, slice);

        if (rc > 0 || (rc < 0 && errno != EINTR)) /* what is wrong read() will say */
            return true;
        ms -= rc == 0 ? slice : 1;
    }
    return false;
}

static int no_answer(struct wire *w, struct err *err)
{
    char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
    struct sockaddr_storage a;
    socklen_t n = sizeof(a);

    w->is_broken = true;
    if (w->is_own && getpeername(w->fd, (struct sockaddr *)&a, &n) == 0)
        (void)getnameinfo((struct sockaddr *)&a, n, host, sizeof(host), port, sizeof(port),
                          NI_NUMERICHOST | NI_NUMERICSERV);
    return err_set(err, -ETIMEDOUT, "the PMI server%s%s%s%s has not answered within %d s",
                   host[0] != '\0' ? " at " : "", host, host[0] != '\0' ? " port " : "", port, w->first_ms / 1000);
}

/* Receive some bytes more. */
static int receive(struct wire *w, struct err *err)
{
    ssize_t n;

    if (w->used > 0) {
        buf_drop(&w->in, w->used);
        w->used = 0;
    }
    if (w->in.len == WIRE_LINE_MAX) {
        w->is_broken = true;
        return err_set(err, -E2BIG, "the PMI server sent more than %u bytes without an end", WIRE_LINE_MAX);
    }
    if (w->in.len == w->in.cap && buf_reserve(&w->in, w->in.len < READ_ROOM ? READ_ROOM : 1) < 0)
        return fail(w, err, -ENOMEM, "no room for the PMI server's reply");
    if (w->first_ms > 0 && !comes_within(w->fd, w->first_ms))
        return no_answer(w, err);
    w->first_ms = 0;
    for (;;) {
        n = w->passed != NULL ? read_passed(w->fd, w->in.p + w->in.len, w->in.cap - w->in.len, w->passed)
                              : read(w->fd, w->in.p + w->in.len, w->in.cap - w->in.len);
        if (n > 0)
            break;
        if (n == 0 || errno == ECONNRESET)
            return lost(w, err);
        if (errno == EAGAIN)
            wait_for(w->fd, POLLIN);
        else if (errno != EINTR)
            return fail(w, err, -errno, "cannot read from the PMI server");
    }
    w->in.len += (size_t)n;
    return 0;
}

int wire_line(struct wire *w, struct span *line, struct err *err)
{
    int rc = check_usable(w, err);
    size_t seen = 0; /* bytes behind w->used without a newline */

    while (rc == 0) {
        const char *start = buf_span(&w->in).p + w->used, *nl;
        size_t have = w->in.len - w->used;

        nl = memchr(start + seen, '\n', have - seen);
        if (nl != NULL) {
            *line = (struct span){start, (size_t)(nl - start)};
            w->used += line->n + 1;
            return 0;
        }
        seen = have;
        rc = receive(w, err);
    }
    return rc;
}

static int quote(struct wire *w, struct err *err, const char *what, struct span bytes)
{
    struct buf b = {0};

    w->is_broken = true;
    buf_add_escaped(&b, (struct span){bytes.p, bytes.n < QUOTE_MAX ? bytes.n : QUOTE_MAX});
    err_set(err, -EPROTO, "the PMI server sent '%s%s'%s", buf_str(&b) != NULL ? b.p : "",
            bytes.n > QUOTE_MAX ? "..." : "", what);
    buf_done(&b);
    return -EPROTO;
}

int wire_frame(struct wire *w, struct span *body, struct err *err)
{
    int rc = check_usable(w, err);

    while (rc == 0) {
        const char *start = buf_span(&w->in).p + w->used;
        size_t have = w->in.len - w->used, len;

        if (have >= PMI2_HEADER) {
            if (pmi2_header(start, &len) < 0)
                return quote(w, err, " instead of a PMI-2 message", (struct span){start, have});
            if (have - PMI2_HEADER >= len) {
                *body = (struct span){start + PMI2_HEADER, len};
                w->used += PMI2_HEADER + len;
                return 0;
            }
        }
        rc = receive(w, err);
    }
    return rc;
}

int wire_reply(struct wire *w, const char *reply, struct pmi_line *line, int *rc, struct err *err)
{
    struct span text, code;
    int64_t v = 0;
    int bad = wire_line(w, &text, err);

    if (bad < 0)
        return bad;
    bad = pmi_line_split(line, text);
    if (bad == 0 && !span_is(pmi_line_get(line, "cmd"), reply))
        bad = -EPROTO;
    if (bad == 0) {
        code = pmi_line_get(line, "rc");
        bad = code.p != NULL ? num_i64(code, INT_MIN, INT_MAX, &v) : 0;
    }
    if (bad < 0) {
        char instead[96];

        snprintf(instead, sizeof(instead), " instead of cmd=%.60s", reply);
        return quote(w, err, instead, text);
    }
    *rc = (int)v;
    return 0;
}

int wire_ask(struct wire *w, struct span request, const char *reply, struct pmi_line *line, int *rc, struct err *err)
{
    int bad = wire_send(w, request, err);

    return bad < 0 ? bad : wire_reply(w, reply, line, rc, err);
}

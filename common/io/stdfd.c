/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/stdfd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/util.h"

#define PIECE_FILE 65536  /* bytes of a regular file at once: then the loop has its turn */
#define PIECES_AT_ONCE 16 /* of PIPE_BUF bytes, before the loop has its turn */
#define FOREGROUND_RETRY_MS 200

/* --- one descriptor in a loop --- */

/* Calls `ready` when the descriptor may be read or written without blocking: from the epoll set, or once an iteration
 * of the loop where there is nothing to wait for. */
struct watch {
    uv_poll_t poll; /* of epfd; unused where that is -1 */
    uv_idle_t idle;
    uv_timer_t timer;
    int epfd;         /* -1: a file, always ready */
    bool no_nowait;   /* this kind of descriptor does not know RWF_NOWAIT */
    unsigned handles; /* not closed yet */
    void (*ready)(struct watch *w);
    void (*closed)(struct watch *w);
};

/* -1 where epoll refuses the descriptor (regular files, /dev/null). */
static int epoll_of(int fd, uint32_t events, int *out)
{
    struct epoll_event ev = {.events = events};
    int epfd, rc;

    if (fcntl(fd, F_GETFD) < 0) /* asked first: the set could get the number of a closed descriptor */
        return -errno;
    epfd = epoll_create1(EPOLL_CLOEXEC);
    if (epfd < 0)
        return -errno;
    if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) == 0) {
        *out = epfd;
        return 0;
    }
    rc = -errno;
    close(epfd);
    if (rc != -EPERM)
        return rc;
    *out = -1;
    return 0;
}

static int watch_open(struct watch *w, uv_loop_t *loop, int fd, uint32_t events)
{
    int rc = epoll_of(fd, events, &w->epfd);

    if (rc < 0)
        return rc;
    if (w->epfd >= 0 && (rc = uv_poll_init(loop, &w->poll, w->epfd)) < 0) {
        close(w->epfd);
        return rc;
    }
    uv_idle_init(loop, &w->idle);
    uv_timer_init(loop, &w->timer);
    w->poll.data = w->idle.data = w->timer.data = w;
    w->handles = w->epfd >= 0 ? 3 : 2;
    return 0;
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct watch *w = h->data;

    (void)status; /* what is wrong with the descriptor shows when it is used */
    (void)events;
    w->ready(w);
}

static void on_idle(uv_idle_t *h)
{
    struct watch *w = h->data;

    w->ready(w);
}

static void watch_start(struct watch *w)
{
    if (w->epfd >= 0)
        uv_poll_start(&w->poll, UV_READABLE, on_poll);
    else
        uv_idle_start(&w->idle, on_idle);
}

static void watch_stop(struct watch *w)
{
    if (w->epfd >= 0)
        uv_poll_stop(&w->poll);
    uv_idle_stop(&w->idle);
    uv_timer_stop(&w->timer);
}

static void on_timer(uv_timer_t *h)
{
    watch_start(h->data);
}

static void watch_later(struct watch *w, uint64_t ms)
{
    watch_stop(w);
    uv_timer_start(&w->timer, on_timer, ms, 0);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct watch *w = h->data;

    if (--w->handles > 0)
        return;
    if (w->epfd >= 0)
        close(w->epfd);
    w->closed(w);
}

static bool watch_is_closing(const struct watch *w)
{
    return uv_is_closing((const uv_handle_t *)&w->idle);
}

static void watch_close(struct watch *w)
{
    if (watch_is_closing(w))
        return;
    if (w->epfd >= 0)
        uv_close((uv_handle_t *)&w->poll, on_handle_closed);
    uv_close((uv_handle_t *)&w->idle, on_handle_closed);
    uv_close((uv_handle_t *)&w->timer, on_handle_closed);
}

/* read() or write() once. Somebody else on the same pipe may have been faster since it was ready, and the call would
 * block: where the kernel can be asked not to (sockets, and pipes where it is new enough), it is. */
static ssize_t transfer(struct watch *w, int fd, void *p, size_t len, bool out)
{
    struct iovec iov = {p, len};
    ssize_t n = -1;

    if (w->epfd >= 0 && !w->no_nowait) {
        n = out ? pwritev2(fd, &iov, 1, -1, RWF_NOWAIT) : preadv2(fd, &iov, 1, -1, RWF_NOWAIT);
        if (n >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS))
            return n < 0 ? -errno : n;
        w->no_nowait = true;
    }
    n = out ? write(fd, p, len) : read(fd, p, len);
    return n < 0 ? -errno : n;
}

static bool is_passing(ssize_t n)
{
    return n == -EAGAIN || n == -EINTR;
}

/* --- in --- */

struct stdfd_in {
    struct watch watch;
    int fd; /* lent */
    bool terminal;
    bool paused;
    bool ended;
    stdfd_in_fn fn;
    void *arg;
    char data[PIECE_FILE];
};

/* A terminal that is not the one that controls us has no say in this (ENOTTY), and a dead one is read to see why. */
static bool in_foreground(int fd)
{
    pid_t group = tcgetpgrp(fd);

    return group < 0 || group == getpgrp();
}

/* We may lose the foreground between the check and the read: with SIGTTIN blocked that read fails with EIO, where it
 * would stop this process otherwise. */
static ssize_t read_terminal(struct stdfd_in *in)
{
    sigset_t ttin, old;
    ssize_t n;

    if (!in_foreground(in->fd))
        return -EAGAIN;
    sigemptyset(&ttin);
    sigaddset(&ttin, SIGTTIN);
    pthread_sigmask(SIG_BLOCK, &ttin, &old);
    n = transfer(&in->watch, in->fd, in->data, sizeof(in->data), false);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return n == -EIO && !in_foreground(in->fd) ? -EAGAIN : n;
}

static void on_readable(struct watch *w)
{
    struct stdfd_in *in = CONTAINER_OF(w, struct stdfd_in, watch);
    ssize_t n;

    n = in->terminal ? read_terminal(in) : transfer(w, in->fd, in->data, sizeof(in->data), false);
    if (is_passing(n)) {
        if (in->terminal)
            watch_later(w, FOREGROUND_RETRY_MS);
        return;
    }
    if (n <= 0) {
        in->ended = true;
        watch_stop(w);
    }
    in->fn(n, in->data, in->arg);
}

static void on_in_closed(struct watch *w)
{
    free(CONTAINER_OF(w, struct stdfd_in, watch));
}

int stdfd_in_open(uv_loop_t *loop, int fd, stdfd_in_fn fn, void *arg, struct stdfd_in **out, struct err *err)
{
    struct stdfd_in *in = calloc(1, sizeof(*in));
    int rc;

    if (in == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    in->watch.ready = on_readable;
    in->watch.closed = on_in_closed;
    in->fd = fd;
    in->fn = fn;
    in->arg = arg;
    in->terminal = isatty(fd);
    rc = watch_open(&in->watch, loop, fd, EPOLLIN);
    if (rc < 0) {
        free(in);
        return err_set(err, rc, "cannot read descriptor %d: %s", fd, uv_strerror(rc));
    }
    watch_start(&in->watch);
    *out = in;
    return 0;
}

void stdfd_in_pause(struct stdfd_in *in, bool paused)
{
    if (in->paused == paused || watch_is_closing(&in->watch))
        return;
    in->paused = paused;
    if (in->ended)
        return;
    if (paused)
        watch_stop(&in->watch);
    else
        watch_start(&in->watch);
}

void stdfd_in_close(struct stdfd_in *in)
{
    if (in != NULL)
        watch_close(&in->watch);
}

/* --- out --- */

struct stdfd_out {
    struct watch watch;
    int fd;  /* lent, or `own` */
    int own; /* the same terminal, opened again; or -1 */
    bool failed;
    struct buf queue; /* bytes from `written` on wait */
    size_t written;   /* bytes at the front that are out already */
    size_t dropped;   /* bytes that still have to be reported, after a failure */
    stdfd_out_fn fn;
    void *arg;
};

/* A terminal is ready when it has room for a byte, and a write of more blocks; so it needs O_NONBLOCK, on an open file
 * of our own. The other end of a pseudo-terminal cannot be opened again (that makes a new one). -1: not possible. */
static int open_again(int fd)
{
    char path[32];
    int number;

    if (!isatty(fd) || ioctl(fd, TIOCGPTN, &number) == 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static size_t pending(const struct stdfd_out *o)
{
    return o->queue.len - o->written;
}

size_t stdfd_out_queued(const struct stdfd_out *o)
{
    return pending(o) + o->dropped;
}

static bool is_ready(const struct stdfd_out *o)
{
    struct pollfd p = {.fd = o->fd, .events = POLLOUT};

    return o->watch.epfd < 0 || (poll(&p, 1, 0) == 1 && p.revents != 0);
}

/* Write while it does not block, up to a limit. Returns the bytes written; what went wrong behind them is in `*rc`. */
static size_t write_some(struct stdfd_out *o, int *rc)
{
    size_t most = o->watch.epfd >= 0 ? PIPE_BUF : PIECE_FILE, sum = 0;

    *rc = 0;
    for (unsigned i = 0; i < PIECES_AT_ONCE && pending(o) > 0 && is_ready(o); i++) {
        ssize_t n = transfer(&o->watch, o->fd, o->queue.p + o->written, MIN(pending(o), most), true);

        if (is_passing(n))
            break;
        if (n < 0) {
            *rc = (int)n;
            break;
        }
        o->written += (size_t)n;
        sum += (size_t)n;
    }
    return sum;
}

/* Keep the queue from growing at its front; each byte is moved once at most for each byte written. */
static void compact(struct stdfd_out *o)
{
    if (o->written < o->queue.len && o->written < o->queue.len / 2)
        return;
    buf_drop(&o->queue, o->written);
    o->written = 0;
}

static void on_drop(uv_idle_t *h)
{
    struct stdfd_out *o = CONTAINER_OF((struct watch *)h->data, struct stdfd_out, watch);
    size_t n = o->dropped;

    uv_idle_stop(h);
    o->dropped = 0;
    o->fn((ssize_t)n, o->arg);
}

/* After a failure: everything counts as written, but it is said from the loop, never inside stdfd_out_write(). */
static void drop(struct stdfd_out *o, size_t n)
{
    o->dropped += n;
    if (o->dropped > 0)
        uv_idle_start(&o->watch.idle, on_drop);
}

static void fail(struct stdfd_out *o, int rc)
{
    size_t rest = pending(o);

    o->failed = true;
    buf_done(&o->queue);
    o->written = 0;
    watch_stop(&o->watch);
    drop(o, rest);
    o->fn(rc, o->arg);
}

static void on_writable(struct watch *w)
{
    struct stdfd_out *o = CONTAINER_OF(w, struct stdfd_out, watch);
    int rc;
    size_t n = write_some(o, &rc);

    compact(o);
    if (pending(o) == 0)
        watch_stop(w);
    if (n > 0)
        o->fn((ssize_t)n, o->arg);
    if (rc < 0 && !watch_is_closing(w))
        fail(o, rc);
}

static void on_out_closed(struct watch *w)
{
    struct stdfd_out *o = CONTAINER_OF(w, struct stdfd_out, watch);

    if (o->own >= 0)
        close(o->own);
    buf_done(&o->queue);
    free(o);
}

int stdfd_out_open(uv_loop_t *loop, int fd, stdfd_out_fn fn, void *arg, struct stdfd_out **out, struct err *err)
{
    struct stdfd_out *o = calloc(1, sizeof(*o));
    int rc;

    if (o == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    o->watch.ready = on_writable;
    o->watch.closed = on_out_closed;
    o->own = open_again(fd);
    o->fd = o->own >= 0 ? o->own : fd;
    o->fn = fn;
    o->arg = arg;
    rc = watch_open(&o->watch, loop, o->fd, EPOLLOUT);
    if (rc < 0) {
        if (o->own >= 0)
            close(o->own);
        free(o);
        return err_set(err, rc, "cannot write to descriptor %d: %s", fd, uv_strerror(rc));
    }
    *out = o;
    return 0;
}

int stdfd_out_write(struct stdfd_out *o, struct span data)
{
    int rc;

    if (data.n == 0 || watch_is_closing(&o->watch))
        return 0;
    if (o->failed) {
        drop(o, data.n);
        return 0;
    }
    rc = buf_add(&o->queue, data.p, data.n);
    if (rc == 0)
        watch_start(&o->watch);
    return rc;
}

void stdfd_out_close(struct stdfd_out *o)
{
    if (o != NULL)
        watch_close(&o->watch);
}

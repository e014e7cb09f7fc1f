/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/spawner.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bootstrap/bootstrap.h"
#include "common/buf.h"
#include "common/limits.h"
#include "common/util.h"
#include "server/keeper.h"
#include "server/keeper_wire.h"

_Static_assert(SPAWN_ID_KEPT == BOOT_ID_BASE, "the bootstrap's processes are those that are no tasks");

#define READ_SIZE 16384
/* The kernel counts descriptors under way for all of a user's processes and refuses more; that passes. */
#define RETRY_MS 5
#define MAGIC 0x53504157u

/* One message under way to the keeper. */
struct item {
    struct item *next;
    struct buf bytes; /* what is not sent yet */
    int fds[KEEPER_FDS_MAX];
    unsigned nfds; /* not sent yet: they go with the first byte */
};

struct spawner {
    unsigned magic;
    uv_poll_t poll;
    uv_timer_t retry;
    unsigned handles; /* not closed yet */
    int fd;
    pid_t pid;
    struct spawn_ops ops;
    void *arg; /* lent, outlives us */
    struct item *first, **last;
    struct buf in;
    bool blocked; /* wait for the retry timer, not for room */
    bool lost, closing;
    bool no_memory; /* for what the keeper says: why it is lost */
};

static struct spawner *spawner_of(void *data)
{
    struct spawner *s = data;

    assert(s->magic == MAGIC);
    return s;
}

static void item_close_fds(struct item *it)
{
    for (unsigned i = 0; i < it->nfds; i++)
        close(it->fds[i]);
    it->nfds = 0;
}

static void item_free(struct item *it)
{
    item_close_fds(it);
    buf_done(&it->bytes);
    free(it);
}

static void drop_first(struct spawner *s)
{
    struct item *it = s->first;

    s->first = it->next;
    if (s->first == NULL)
        s->last = &s->first;
    item_free(it);
}

static void drop_all(struct spawner *s)
{
    while (s->first != NULL)
        drop_first(s);
}

/* 0: the first message is out, or -EAGAIN and the like. */
static int send_first(struct spawner *s)
{
    struct item *it = s->first;

    while (it->bytes.len > 0) {
        ssize_t n = keeper_wire_send(s->fd, buf_span(&it->bytes), it->fds, it->nfds);

        if (n < 0)
            return (int)n;
        item_close_fds(it);
        buf_drop(&it->bytes, (size_t)n);
    }
    drop_first(s);
    return 0;
}

static void on_poll(uv_poll_t *h, int status, int events);
static void on_retry(uv_timer_t *t);

static void watch(struct spawner *s)
{
    int events = UV_READABLE | (s->first != NULL && !s->blocked ? UV_WRITABLE : 0);

    if (!s->closing && !s->lost)
        uv_poll_start(&s->poll, events, on_poll);
}

static void flush(struct spawner *s)
{
    int rc = 0;

    while (rc == 0 && s->first != NULL)
        rc = send_first(s);
    s->blocked = rc == -ETOOMANYREFS || rc == -ENOBUFS || rc == -ENOMEM;
    if (s->blocked)
        uv_timer_start(&s->retry, on_retry, RETRY_MS, 0);
    else if (rc < 0 && rc != -EAGAIN)
        drop_all(s); /* the keeper is gone, which reading will tell once what it still said has been read */
    watch(s);
}

static void on_retry(uv_timer_t *t)
{
    flush(spawner_of(t->data));
}

static void lose(struct spawner *s)
{
    s->lost = true;
    uv_poll_stop(&s->poll);
    uv_timer_stop(&s->retry);
    drop_all(s);
    if (s->ops.on_lost != NULL)
        s->ops.on_lost(s->arg);
}

static int dispatch(struct spawner *s, const struct keeper_head *head, struct span body)
{
    struct keeper_note n;
    int rc = keeper_note_parse(body, &n);

    if (rc < 0)
        return rc;
    if (head->type == KEEPER_STARTED)
        s->ops.on_started(n.id, (pid_t)n.a, s->arg);
    else if (head->type == KEEPER_FAILED)
        s->ops.on_failed(n.id, (enum spawn_stage)n.a, n.b, s->arg);
    else if (head->type == KEEPER_EXITED)
        s->ops.on_exited(n.id, (pid_t)n.a, n.b, s->arg);
    else
        return -EPROTO;
    return 0;
}

/* Negative errno: what came is no message. */
static int take_messages(struct spawner *s)
{
    size_t done = 0;
    int rc = 0;

    while (rc == 0 && !s->closing) {
        struct span rest = {buf_span(&s->in).p + done, s->in.len - done}, body;
        struct keeper_head head;
        ssize_t n = keeper_wire_next(rest, &head, &body);

        if (n <= 0) {
            rc = (int)n;
            break;
        }
        done += (size_t)n;
        rc = dispatch(s, &head, body);
    }
    buf_drop(&s->in, done);
    return rc;
}

/* Bytes read, 0 at the end, or negative errno. */
static ssize_t fill(struct spawner *s)
{
    int fds[KEEPER_FDS_MAX]; /* the keeper sends none */
    unsigned nfds = 0;
    int rc = buf_reserve(&s->in, READ_SIZE);
    ssize_t n;

    s->no_memory = rc < 0;
    if (rc < 0)
        return rc;
    n = keeper_wire_recv(s->fd, s->in.p + s->in.len, READ_SIZE, fds, &nfds);
    if (n > 0)
        s->in.len += (size_t)n;
    return n;
}

static void on_poll(uv_poll_t *h, int status, int events)
{
    struct spawner *s = spawner_of(h->data);
    ssize_t n;

    if (status == 0 && (events & UV_WRITABLE))
        flush(s);
    if (status == 0 && !(events & UV_READABLE))
        return;
    n = fill(s);
    if (n == -EAGAIN)
        return;
    if (n > 0 && take_messages(s) == 0)
        return;
    if (!s->closing)
        lose(s);
}

static void on_closed(uv_handle_t *h)
{
    struct spawner *s = spawner_of(h->data);

    if (--s->handles > 0)
        return;
    close(s->fd);
    buf_done(&s->in);
    s->magic = 0;
    free(s);
}

const char *spawner_why_lost(const struct spawner *s)
{
    struct pollfd pfd = {.fd = -1, .events = POLLIN};
    siginfo_t info = {0};

    if (s->no_memory)
        return "out of memory";
    pfd.fd = (int)syscall(SYS_pidfd_open, s->pid, 0);

    /* What we have seen is that its descriptors were closed, which is just before it can be waited for. */
    if (pfd.fd >= 0) {
        (void)poll(&pfd, 1, KEEPER_END_MS);
        close(pfd.fd);
    }
    if (waitid(P_PID, (id_t)s->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == s->pid &&
        info.si_code == CLD_EXITED && info.si_status == KEEPER_NO_MEMORY)
        return "its keeper process found no memory";
    return "its keeper process was killed";
}

int spawner_open(uv_loop_t *loop, int fd, pid_t pid, const struct spawn_ops *ops, void *arg, struct spawner **out,
                 struct err *err)
{
    struct spawner *s = calloc(1, sizeof(*s));
    int rc = s == NULL ? -ENOMEM : uv_poll_init(loop, &s->poll, fd);

    if (rc < 0) {
        free(s);
        close(fd);
        return err_set(err, rc, "cannot watch the keeper: %s", strerror(-rc));
    }
    uv_timer_init(loop, &s->retry);
    s->magic = MAGIC;
    s->handles = 2;
    s->poll.data = s->retry.data = s;
    s->fd = fd;
    s->pid = pid;
    s->ops = *ops;
    s->arg = arg;
    s->last = &s->first;
    watch(s);
    *out = s;
    return 0;
}

static void enqueue(struct spawner *s, struct item *it)
{
    bool idle = s->first == NULL;

    *s->last = it;
    s->last = &it->next;
    if (idle)
        flush(s);
}

static int copy_fds(struct item *it, const int *fds, unsigned nfds)
{
    for (unsigned i = 0; i < nfds; i++) {
        int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);

        if (fd < 0)
            return -errno;
        it->fds[it->nfds++] = fd;
    }
    return 0;
}

int spawner_spawn(struct spawner *s, const struct spawn_req *req, struct err *err)
{
    struct item *it;
    int fds[KEEPER_FDS_MAX], rc;
    unsigned nfds = 0;

    if (s->lost || s->closing)
        return 0;
    it = calloc(1, sizeof(*it));
    if (it == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    rc = keeper_spawn_add(&it->bytes, req, fds, &nfds);
    if (rc == 0)
        rc = copy_fds(it, fds, nfds);
    if (rc < 0) {
        item_free(it);
        return err_set(err, rc, "cannot hand %s to the keeper: %s", req->program, strerror(-rc));
    }
    enqueue(s, it);
    return 0;
}

static int send_note(struct spawner *s, enum keeper_type type, struct keeper_note note)
{
    struct item *it;
    int rc;

    if (s->lost || s->closing)
        return 0;
    it = calloc(1, sizeof(*it));
    if (it == NULL)
        return -ENOMEM;
    rc = keeper_note_add(&it->bytes, type, &note);
    if (rc < 0)
        item_free(it);
    else
        enqueue(s, it);
    return rc;
}

int spawner_kill(struct spawner *s, uint32_t id, int sig)
{
    return send_note(s, KEEPER_KILL, (struct keeper_note){id, sig, 0});
}

void spawner_close(struct spawner *s)
{
    if (s == NULL || s->closing)
        return;
    s->closing = true;
    drop_all(s);
    shutdown(s->fd, SHUT_RDWR); /* the keeper sees our end now, not when the loop has come to close the descriptor */
    uv_close((uv_handle_t *)&s->poll, on_closed);
    uv_close((uv_handle_t *)&s->retry, on_closed);
}

pid_t spawner_keeper_pid(const struct spawner *s)
{
    return s->pid;
}

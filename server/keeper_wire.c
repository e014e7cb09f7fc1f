/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/keeper_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include "common/limits.h"
#include "common/strv.h"

#define HAS_PMI_FD 8u /* bits 1, 2 and 4 are descriptors 0 to 2 */
#define HAS_LIMITS 16u
#define HAS_DIR 32u
#define IGNORE_HUP 64u
#define IGNORE_INT 128u
#define HAS_PTY 256u

/* What stands before the strings of a KEEPER_SPAWN: program, directory if there is one, arguments, environment, each
 * with its terminator. */
struct spawn_fixed {
    uint64_t soft[TASK_LIMITS_MAX];
    uint32_t set; /* a bit for each of soft[] */
    uint32_t umask;
    uint32_t id;
    uint32_t flags;
    uint32_t argc, envc;
};

int keeper_note_add(struct buf *out, enum keeper_type type, const struct keeper_note *note)
{
    struct keeper_head head = {.len = sizeof(*note), .type = (uint16_t)type};
    int rc = buf_reserve(out, sizeof(head) + sizeof(*note));

    if (rc < 0)
        return rc;
    buf_add(out, &head, sizeof(head));
    return buf_add(out, note, sizeof(*note));
}

static unsigned spawn_fds(const struct spawn_req *req, int *fds, uint32_t *flags)
{
    unsigned n = 0;

    for (unsigned i = 0; i < 3; i++) {
        if (req->fd[i] < 0)
            continue;
        fds[n++] = req->fd[i];
        *flags |= 1u << i;
    }
    if (req->pmi_fd >= 0) {
        fds[n++] = req->pmi_fd;
        *flags |= HAS_PMI_FD;
    }
    return n;
}

static void put_limits(struct spawn_fixed *fixed, const struct task_limits *limits)
{
    fixed->flags |= HAS_LIMITS | (limits->ignore_hup ? IGNORE_HUP : 0) | (limits->ignore_int ? IGNORE_INT : 0);
    fixed->umask = limits->umask;
    for (unsigned i = 0; i < TASK_LIMITS_MAX; i++) {
        fixed->soft[i] = limits->soft[i];
        fixed->set |= limits->set[i] ? 1u << i : 0;
    }
}

static size_t strings_len(char *const *v)
{
    size_t len = 0;

    for (; *v != NULL; v++)
        len += strlen(*v) + 1;
    return len;
}

/* Room has been made. */
static void add_string(struct buf *out, const char *s)
{
    buf_add(out, s, strlen(s) + 1);
}

int keeper_spawn_add(struct buf *out, const struct spawn_req *req, int *fds, unsigned *nfds)
{
    struct spawn_fixed fixed = {.id = req->id};
    size_t len = sizeof(fixed) + strlen(req->program) + 1 + strings_len(req->argv) + strings_len(req->envp);
    int rc;

    if (req->dir != NULL)
        len += strlen(req->dir) + 1;
    if (len > MESSAGE_MAX)
        return -E2BIG;
    rc = buf_reserve(out, sizeof(struct keeper_head) + len);
    if (rc < 0)
        return rc;
    *nfds = spawn_fds(req, fds, &fixed.flags);
    if (req->limits != NULL)
        put_limits(&fixed, req->limits);
    fixed.flags |= (req->dir != NULL ? HAS_DIR : 0) | (req->has_pty ? HAS_PTY : 0);
    fixed.argc = (uint32_t)strv_count(req->argv);
    fixed.envc = (uint32_t)strv_count(req->envp);
    struct keeper_head head = {.len = (uint32_t)len, .type = KEEPER_SPAWN, .nfds = (uint16_t)*nfds};
    buf_add(out, &head, sizeof(head));
    buf_add(out, &fixed, sizeof(fixed));
    add_string(out, req->program);
    if (req->dir != NULL)
        add_string(out, req->dir);
    for (size_t i = 0; i < fixed.argc; i++)
        add_string(out, req->argv[i]);
    for (size_t i = 0; i < fixed.envc; i++)
        add_string(out, req->envp[i]);
    return 0;
}

ssize_t keeper_wire_next(struct span in, struct keeper_head *head, struct span *body)
{
    struct keeper_head h;

    if (in.n < sizeof(h))
        return 0;
    memcpy(&h, in.p, sizeof(h));
    if (h.len > MESSAGE_MAX)
        return -E2BIG;
    if (h.type < KEEPER_SPAWN || h.type > KEEPER_EXITED || h.nfds > KEEPER_FDS_MAX)
        return -EPROTO;
    if (in.n - sizeof(h) < h.len)
        return 0;
    *head = h;
    *body = (struct span){in.p + sizeof(h), h.len};
    return (ssize_t)(sizeof(h) + h.len);
}

int keeper_note_parse(struct span body, struct keeper_note *note)
{
    if (body.n != sizeof(*note))
        return -EPROTO;
    memcpy(note, body.p, sizeof(*note));
    return 0;
}

/* Cut one string off the front; NULL: no terminator. */
static char *take_string(struct span *rest)
{
    const char *end = rest->n == 0 ? NULL : memchr(rest->p, '\0', rest->n);
    const char *s = rest->p;

    if (end == NULL)
        return NULL;
    rest->n -= (size_t)(end + 1 - s);
    rest->p = end + 1;
    return (char *)(uintptr_t)s; /* argv and envp are arrays of char *, which exec does not write to */
}

static int take_strings(struct span *rest, uint32_t count, char *const **out)
{
    char **v;

    if (count > rest->n) /* each has at least its terminator */
        return -EPROTO;
    v = calloc((size_t)count + 1, sizeof(*v));
    if (v == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        v[i] = take_string(rest);
        if (v[i] == NULL) {
            free(v);
            return -EPROTO;
        }
    }
    *out = v;
    return 0;
}

static int take_fds(struct spawn_req *req, uint32_t flags, const int *fds, unsigned nfds)
{
    unsigned n = 0;
    int got[KEEPER_FDS_MAX];

    for (unsigned i = 0; i < KEEPER_FDS_MAX; i++) {
        bool wanted = (flags & (1u << i)) != 0;

        if (wanted && n == nfds)
            return -EPROTO;
        got[i] = wanted ? fds[n++] : -1;
    }
    memcpy(req->fd, got, sizeof(req->fd));
    req->pmi_fd = got[3];
    return n == nfds ? 0 : -EPROTO;
}

static void take_limits(struct task_limits *limits, const struct spawn_fixed *fixed)
{
    memcpy(limits->soft, fixed->soft, sizeof(limits->soft));
    for (unsigned i = 0; i < TASK_LIMITS_MAX; i++)
        limits->set[i] = (fixed->set & (1u << i)) != 0;
    limits->umask = (mode_t)fixed->umask;
    limits->ignore_hup = (fixed->flags & IGNORE_HUP) != 0;
    limits->ignore_int = (fixed->flags & IGNORE_INT) != 0;
}

int keeper_spawn_parse(struct span body, const int *fds, unsigned nfds, struct spawn_req *req,
                       struct task_limits *limits)
{
    struct spawn_req r = {0};
    struct spawn_fixed fixed;
    int rc;

    if (body.n < sizeof(fixed))
        return -EPROTO;
    memcpy(&fixed, body.p, sizeof(fixed));
    struct span rest = {body.p + sizeof(fixed), body.n - sizeof(fixed)};
    r.id = fixed.id;
    r.has_pty = (fixed.flags & HAS_PTY) != 0;
    r.program = take_string(&rest);
    r.dir = fixed.flags & HAS_DIR ? take_string(&rest) : NULL;
    if (r.program == NULL || (r.dir == NULL && (fixed.flags & HAS_DIR)))
        return -EPROTO;
    rc = take_fds(&r, fixed.flags, fds, nfds);
    if (rc == 0)
        rc = take_strings(&rest, fixed.argc, &r.argv);
    if (rc == 0)
        rc = take_strings(&rest, fixed.envc, &r.envp);
    if (rc < 0) {
        keeper_spawn_done(&r);
        return rc;
    }
    if (fixed.flags & HAS_LIMITS) {
        take_limits(limits, &fixed);
        r.limits = limits;
    }
    *req = r;
    return 0;
}

void keeper_spawn_done(struct spawn_req *req)
{
    free((void *)(uintptr_t)req->argv);
    free((void *)(uintptr_t)req->envp);
    req->argv = req->envp = NULL;
}

union fd_control {
    struct cmsghdr head; /* for its alignment */
    char space[CMSG_SPACE(KEEPER_FDS_MAX * sizeof(int))];
};

ssize_t keeper_wire_send(int sock, struct span bytes, const int *fds, unsigned nfds)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes.p, .iov_len = bytes.n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    union fd_control control;
    ssize_t n;

    if (nfds > 0) {
        memset(&control, 0, sizeof(control));
        msg.msg_control = &control;
        msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
    }
    do
        n = sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static void take_rights(struct msghdr *msg, int *fds, unsigned *nfds)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t len = c->cmsg_len - CMSG_LEN(0);
        memcpy(fds + *nfds, CMSG_DATA(c), len);
        *nfds += (unsigned)(len / sizeof(int));
    }
}

ssize_t keeper_wire_recv(int sock, void *p, size_t len, int *fds, unsigned *nfds)
{
    struct iovec iov = {.iov_base = p, .iov_len = len};
    union fd_control control;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t n;

    do
        n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    take_rights(&msg, fds, nfds);
    return msg.msg_flags & MSG_CTRUNC ? -EMFILE : n;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* node_map.c - the descriptor of the job's keys, or of its bell, goes to a task with the reply to its question */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include "server/node_priv.h"

/* The keys' may be another one each time. */
static int descriptor(struct node_job *j, enum session_map what)
{
    int rc = 0;

    if (what == SESSION_MAP_KVS)
        return kvs_map(j->kvs);
    if (j->task_count < 2)
        return -ENOSYS; /* for one task a reply is as good */
    if (j->ringer == NULL)
        rc = ringer_new(&j->ringer);
    return rc < 0 ? rc : ringer_fd(j->ringer);
}

/* A task's own socket alone can carry one. */
int node_map_offer(struct pmi_conn *c, enum session_map what)
{
    int fd;

    if (!c->own)
        return -EOPNOTSUPP;
    if (c->passes)
        return -EBUSY;
    fd = descriptor(c->job, what);
    if (fd < 0)
        return fd;
    c->passes = true;
    c->passed = what;
    c->pass_at = c->out.len;
    return 0;
}

static ssize_t send_bytes(const struct pmi_conn *c, size_t n)
{
    return send(c->h.fd, c->out.p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The kernel may refuse to have more descriptors under way; a reply without one says that there is none. */
static ssize_t send_with(const struct pmi_conn *c, int fd)
{
    struct iovec bytes = {c->out.p, c->out.len};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct msghdr m = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
    ssize_t put;

    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
    put = sendmsg(c->h.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    return put < 0 && (errno == ETOOMANYREFS || errno == EBADF) ? send_bytes(c, c->out.len) : put;
}

ssize_t node_map_send(struct pmi_conn *c)
{
    bool now = c->passes && c->pass_at == 0;
    ssize_t put =
        now ? send_with(c, descriptor(c->job, c->passed)) : send_bytes(c, c->passes ? c->pass_at : c->out.len);

    if (put > 0 && c->passes && !now)
        c->pass_at -= (size_t)put;
    else if (put > 0 || (put < 0 && errno != EAGAIN && errno != EINTR))
        c->passes = false;
    return put;
}

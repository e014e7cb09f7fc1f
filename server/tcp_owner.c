/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/tcp_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
    struct nlmsghdr head;
    struct inet_diag_req_v2 diag;
};

/* Ask for the one socket whose own end is `from`, connected to `to`. */
static int ask(int nl, const struct sockaddr_in *from, const struct sockaddr_in *to)
{
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct request r = {
        .head = {.nlmsg_len = sizeof(r), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .diag = {.sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1u << TCP_ESTABLISHED},
    };

    r.diag.id.idiag_sport = from->sin_port;
    r.diag.id.idiag_dport = to->sin_port;
    r.diag.id.idiag_src[0] = from->sin_addr.s_addr;
    r.diag.id.idiag_dst[0] = to->sin_addr.s_addr;
    r.diag.id.idiag_cookie[0] = r.diag.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return sendto(nl, &r, sizeof(r), 0, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0 ? -errno : 0;
}

static int answer(int nl, uid_t *uid)
{
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } in;
    const struct inet_diag_msg *d;
    ssize_t n = recv(nl, &in, sizeof(in), 0);

    if (n < 0)
        return -errno;
    if (n < (ssize_t)sizeof(in.head) || in.head.nlmsg_len > (size_t)n)
        return -EPROTO;
    if (in.head.nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *e = NLMSG_DATA(&in.head);

        return in.head.nlmsg_len < NLMSG_LENGTH(sizeof(*e)) || e->error >= 0 ? -EPROTO : e->error;
    }
    d = NLMSG_DATA(&in.head);
    if (in.head.nlmsg_len < NLMSG_LENGTH(sizeof(*d)))
        return -EPROTO;
    if (d->idiag_state != TCP_ESTABLISHED || d->idiag_inode == 0)
        return -ENOENT;
    *uid = d->idiag_uid;
    return 0;
}

int tcp_owner(int fd, uid_t *uid, struct err *err)
{
    struct sockaddr_in ours, theirs;
    socklen_t len = sizeof(ours), len2 = sizeof(theirs);
    int nl, rc;

    if (getsockname(fd, (struct sockaddr *)&ours, &len) < 0 || getpeername(fd, (struct sockaddr *)&theirs, &len2) < 0)
        return err_set(err, -ENOENT, "it has gone");
    nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (nl < 0)
        return err_set(err, -errno, "cannot ask the kernel whose it is: %s", strerror(errno));
    rc = ask(nl, &theirs, &ours);
    if (rc == 0)
        rc = answer(nl, uid);
    close(nl);
    if (rc == -ENOENT)
        return err_set(err, rc, "it has gone");
    return rc < 0 ? err_set(err, rc, "cannot ask the kernel whose it is: %s", strerror(-rc)) : 0;
}

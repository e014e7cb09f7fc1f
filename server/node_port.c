/* SPDX-License-Identifier: BSD-3-Clause */
/* node_port.c - PMI_PORT: connections of which nobody knows yet which rank they speak for
 *
 * What comes in says by `initack`, or PMI-2's `fullinit`, which rank it is. The wire proves nothing. The listener of a
 * job's own tasks is on loopback and asks the kernel whose the other end is; that of --serve is in node_serve.c.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/listen_socket.h"
#include "common/io/log.h"
#include "server/node_priv.h"
#include "server/tcp_owner.h"

#define BACKLOG 1024

/* --- the listener ----------------------------------------------------------------------------------------------- */

/* Whoever is on this host may knock as often as he likes, but does not fill the launcher's standard error. */
static void tell_refusal(struct node_job *j, const char *why)
{
    if (j->refusals >= PMI_REFUSALS_MAX)
        return;
    log_warn("a connection to PMI_PORT is refused: %s%s", why,
             ++j->refusals == PMI_REFUSALS_MAX ? "; that is all that is said of such" : "");
}

/* False: it is not let in. */
static bool is_ours(struct node_job *j, int fd)
{
    struct err err = {0};
    uid_t uid = 0;

    if (tcp_owner(fd, &uid, &err) < 0) {
        if (err.code != -ENOENT)
            tell_refusal(j, err.text);
        return false;
    }
    if (uid != geteuid()) {
        err_set(&err, -EACCES, "it is user %u's", (unsigned)uid);
        tell_refusal(j, err.text);
        return false;
    }
    return true;
}

static bool lets_in(struct node_job *j, int fd, uint32_t addr)
{
    if (j->serve != NULL)
        return node_serve_lets_in(j, fd, addr);
    return j->stranger_count < PMI_STRANGERS_MAX && is_ours(j, fd);
}

static void on_connection(uv_poll_t *h, int status, int events);

static void look_again(uv_timer_t *h)
{
    struct node_job *j = h->data;

    node_fd_watch(&j->port, UV_READABLE, on_connection);
}

static void on_connection(uv_poll_t *h, int status, int events)
{
    struct node_fd *f = h->data;
    struct node_job *j = f->job;
    struct sockaddr_in from = {0};
    socklen_t len = sizeof(from);
    int fd, on = 1;

    (void)events;
    if (status < 0)
        return;
    fd = accept4(f->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (!listen_socket_no_room(f->fd, &j->no_room_told))
            return; /* it has gone again */
        node_fd_watch(f, 0, NULL);
        uv_timer_start(&j->port_again, look_again, LISTEN_PAUSE_MS, 0);
        return;
    }
    if (!lets_in(j, fd, ntohl(from.sin_addr.s_addr))) {
        close(fd);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (node_port_stranger(j, fd, ntohl(from.sin_addr.s_addr)) < 0)
        log_warn("no memory for a connection to PMI_PORT");
}

int node_port_listen(uint32_t addr, uint16_t port, int backlog)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(addr)};
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

    if (fd < 0)
        return -errno;
    if (port != 0) /* what an earlier run has left in TIME_WAIT is no hindrance */
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, backlog) == 0)
        return fd;
    rc = -errno;
    close(fd);
    return rc;
}

int node_port_watch(struct node_job *j, int fd)
{
    int rc = node_fd_open(j, j, &j->port, fd);

    if (rc == 0)
        node_fd_watch(&j->port, UV_READABLE, on_connection);
    return rc;
}

int node_port_open(struct node_job *j)
{
    int fd = node_port_listen(INADDR_LOOPBACK, 0, BACKLOG);

    return fd < 0 ? fd : node_port_watch(j, fd);
}

uint16_t node_port_number(const struct node_job *j)
{
    struct sockaddr_in at;
    socklen_t len = sizeof(at);

    if (!j->port.open || getsockname(j->port.fd, (struct sockaddr *)&at, &len) < 0)
        return 0;
    return ntohs(at.sin_port);
}

void node_port_close(struct node_job *j)
{
    node_fd_close(&j->port);
    while (j->strangers != NULL)
        pmi_conn_close(j->strangers);
}

/* --- strangers -------------------------------------------------------------------------------------------------- */

void node_port_refused(const struct pmi_conn *c, const char *why)
{
    if (c->job->serve != NULL)
        node_serve_refused(c->job, c->addr, why);
    else
        tell_refusal(c->job, why);
}

static void on_stranger_late(uv_timer_t *h)
{
    struct pmi_conn *c = h->data;
    struct err why = {0};

    err_set(&why, -ETIMEDOUT, "it has not said which rank it is for %d s", PMI_STRANGER_MS / 1000);
    node_port_refused(c, why.text);
    pmi_conn_close(c);
}

int node_port_stranger(struct node_job *j, int fd, uint32_t addr)
{
    struct pmi_conn *c = pmi_conn_new(j, fd);

    if (c == NULL)
        return -ENOMEM;
    c->addr = addr;
    c->next = j->strangers;
    c->prev = &j->strangers;
    if (c->next != NULL)
        c->next->prev = &c->next;
    j->strangers = c;
    j->stranger_count++;
    pmi_conn_timer(c, on_stranger_late, PMI_STRANGER_MS);
    pmi_conn_flush(c);
    return 0;
}

void node_port_make_room(struct node_job *j)
{
    struct pmi_conn *oldest = j->strangers;

    if (j->stranger_count < PMI_STRANGERS_MAX)
        return;
    while (oldest->next != NULL)
        oldest = oldest->next;
    node_port_refused(oldest, "too many others have not said which rank they are either");
    pmi_conn_close(oldest);
}

/* Session 0 of a task with both PMI_FD and PMI_PORT belongs to whichever speaks first. */
static bool gives_way(const struct pmi_conn *c)
{
    return c->own && c->heard == 0;
}

int node_port_identify(struct pmi_conn *c, uint32_t id, struct err *err)
{
    struct node_job *j = c->job;
    struct task *t = node_task_of_rank(j, id % j->job->size);
    uint32_t set = id / j->job->size;
    struct pmi_conn *other;

    if (t == NULL)
        return err_set(err, -EPROTO, "PMI_ID %u is rank %u's, which is not on this node", id, id % j->job->size);
    if (set >= PMI_SESSIONS_MAX)
        return err_set(err, -EPROTO, "PMI_ID %u: no more than %u sessions a rank", id, PMI_SESSIONS_MAX);
    if (t->state == TASK_ENDED)
        return err_set(err, -EPROTO, "PMI_ID %u: rank %u has ended", id, t->rank);
    other = node_pmi_find(j, t->slot, set);
    if (other != NULL && !gives_way(other))
        return err_set(err, -EPROTO, "PMI_ID %u is in use", id);
    if (other != NULL)
        pmi_conn_close(other);
    if (pmi_conn_bind(c, t, set) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    if (j->serve != NULL)
        node_serve_came(c);
    return 0;
}

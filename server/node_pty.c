/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/node_pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include "server/node_priv.h"

bool task_has_pty(const struct task *t)
{
    return t->job->job->pty && t->job->job->input == (int)t->rank;
}

static int set_size(int fd, uint64_t rows, uint64_t cols)
{
    struct winsize w = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};

    return ioctl(fd, TIOCSWINSZ, &w) < 0 ? -errno : 0;
}

/* The other side by the kernel's own call: whatever is mounted on /dev/pts here, it is the right one. */
static int open_pair(int *ours, int *theirs)
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), peer = -1, rc = -errno;

    if (fd < 0)
        return rc;
    if (grantpt(fd) == 0 && unlockpt(fd) == 0)
        peer = ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (peer < 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    *ours = fd;
    *theirs = peer;
    return 0;
}

int task_pty_open(const struct task *t, int *out, int *in, int theirs[3])
{
    const struct job *job = t->job->job;
    int rc = open_pair(out, &theirs[0]);

    if (rc < 0)
        return rc;
    if ((*in = fcntl(*out, F_DUPFD_CLOEXEC, 3)) < 0 || (theirs[1] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 3)) < 0 ||
        (theirs[2] = fcntl(theirs[0], F_DUPFD_CLOEXEC, 3)) < 0 || fcntl(*out, F_SETFL, O_NONBLOCK | O_RDWR) < 0)
        return -errno;
    return set_size(*out, job->rows, job->cols);
}

int node_window(struct node_job *j, const struct msg_in *m, struct err *err)
{
    uint64_t rank, rows, cols;
    struct task *t;
    int rc;

    if ((rc = msg_get_u64(m, "rank", 0, TASKS_MAX, &rank, err)) < 0 ||
        (rc = msg_get_u64(m, "rows", 0, UINT16_MAX, &rows, err)) < 0 ||
        (rc = msg_get_u64(m, "cols", 0, UINT16_MAX, &cols, err)) < 0)
        return rc;
    t = node_task_of_rank(j, (uint32_t)rank);
    if (t == NULL || !task_has_pty(t))
        return err_set(err, -EPROTO, "rank %u has no terminal here", (unsigned)rank);
    if (t->out.h.open)
        (void)set_size(t->out.h.fd, rows, cols); /* the kernel tells the foreground of its session */
    return 0;
}

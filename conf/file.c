/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - read a whole file, with a cap; pipes and /dev/stdin are fine, but a named pipe that nobody writes to */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/buf.h"
#include "conf/option.h"

#define WRITER_MS 1000 /* for somebody to open a named pipe who is only just started */

/* Has nobody come to write to this pipe? One whose writer has come and gone is not mute: it hangs up. */
static bool is_mute(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && poll(&p, 1, WRITER_MS) == 0;
}

static int read_all(int fd, size_t max, struct buf *out, struct err *err)
{
    bool mute = is_mute(fd);
    char chunk[16384];
    ssize_t n;

    do {
        n = read(fd, chunk, sizeof(chunk));
        if (n < 0 && errno == EAGAIN && fcntl(fd, F_SETFL, 0) == 0) {
            mute = false; /* a writer that is slow */
            continue;
        }
        if (n == 0 && mute && out->len == 0)
            return err_set(err, -ENXIO, "it is a pipe, and nobody writes to it");
        if (n < 0 && errno != EINTR)
            return err_set(err, -errno, "cannot read it: %s", strerror(errno));
        if (n > 0 && (size_t)n > max - out->len)
            return err_set(err, -E2BIG, "it is larger than %zu KiB", max / 1024);
        if (n > 0 && buf_add(out, chunk, (size_t)n) < 0)
            return err_set(err, -ENOMEM, "out of memory");
    } while (n != 0);
    return 0;
}

int file_read(const char *path, size_t max, struct buf *out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;

    if (fd < 0)
        return err_set(err, -errno, "cannot open it: %s", strerror(errno));
    rc = read_all(fd, max, out, err);
    close(fd);
    return rc;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - read a whole file, with a cap; pipes and /dev/stdin are fine */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "common/buf.h"
#include "conf/option.h"

static int read_all(int fd, size_t max, struct buf *out, struct err *err)
{
    char chunk[16384];
    ssize_t n;

    do {
        n = read(fd, chunk, sizeof(chunk));
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
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), rc;

    if (fd < 0)
        return err_set(err, -errno, "cannot open it: %s", strerror(errno));
    rc = read_all(fd, max, out, err);
    close(fd);
    return rc;
}

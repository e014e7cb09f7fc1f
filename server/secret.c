/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/secret.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `key` has room for TLS_PSK_MAX + 1, so that a longer file is seen. */
static int read_key(int fd, const char *path, uint8_t *key, size_t *len, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode)) /* where a Secret is mounted */
        return err_set(err, -EISDIR, "%s is a directory: the secret is a file in it", path);
    /* A secret mounted into a pod is a link to a file that the group may read; others never. */
    if (!S_ISREG(st.st_mode) || (st.st_mode & 007) != 0)
        return err_set(err, -EACCES,
                       "%s: a secret must be a regular file that others cannot read (chmod 600; mounted into a pod: "
                       "defaultMode: 0440, and an fsGroup)",
                       path);
    *len = 0;
    while (*len < TLS_PSK_MAX + 1) {
        ssize_t n = read(fd, key + *len, TLS_PSK_MAX + 1 - *len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, -errno, "cannot read %s: %s", path, strerror(errno));
        if (n == 0)
            break;
        *len += (size_t)n;
    }
    if (*len < TLS_PSK_MIN)
        return err_set(err, -EINVAL, "%s has %zu bytes: a secret has %d to %d (make one with --new-secret=FILE)", path,
                       *len, TLS_PSK_MIN, TLS_PSK_MAX);
    if (*len > TLS_PSK_MAX)
        return err_set(err, -EINVAL, "%s: a secret has %d to %d bytes (make one with --new-secret=FILE)", path,
                       TLS_PSK_MIN, TLS_PSK_MAX);
    return 0;
}

/* What is missing in a pod. */
static const char *open_hint(int error)
{
    if (error == EACCES)
        return " (in a pod, an fsGroup lets it read a Secret)";
    return error == ENOENT ? " (make one with --new-secret=FILE; in a pod: the mountPath, and the Secret's key)" : "";
}

int secret_ctx(const char *path, struct tls_ctx **out, struct err *err)
{
    uint8_t key[TLS_PSK_MAX + 1];
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc; /* a pipe is refused, not waited for */

    if (fd < 0)
        return err_set(err, -errno, "cannot open %s: %s%s", path, strerror(errno), open_hint(errno));
    rc = read_key(fd, path, key, &len, err);
    close(fd);
    if (rc == 0)
        rc = tls_ctx_new_psk(out, key, len, err);
    tls_wipe(key, sizeof(key));
    return rc;
}

int secret_make(const char *path, struct err *err)
{
    uint8_t key[TLS_PSK_MIN];
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), rc = 0;

    if (fd < 0)
        return err_set(err, -errno, "cannot make %s: %s", path, strerror(errno));
    tls_random(key, sizeof(key));
    if (write(fd, key, sizeof(key)) != (ssize_t)sizeof(key) || fsync(fd) < 0) {
        rc = err_set(err, -EIO, "cannot write %s: %s", path, strerror(errno));
        (void)unlink(path);
    }
    close(fd);
    tls_wipe(key, sizeof(key));
    return rc;
}

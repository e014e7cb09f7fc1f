/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

/* The limit would not refuse it but kill this process. */
static bool is_allowed(size_t size)
{
    struct rlimit limit;

    return size <= SIZE_MAX / 2 && getrlimit(RLIMIT_FSIZE, &limit) == 0 && size <= limit.rlim_cur;
}

/* Mapped here before it is sealed, and by nobody for writing from then on. */
int sealed_open(const char *name, size_t size, void **base)
{
    static const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
    void *map;
    int fd, rc = 0;

    if (!is_allowed(size))
        return -EFBIG;
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    map = ftruncate(fd, (off_t)size) < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) {
        rc = -errno;
    } else if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
        munmap(map, size);
        rc = -ENOSYS;
    }
    if (rc < 0) {
        close(fd);
        return rc;
    }
    (void)madvise(map, size, MADV_DONTDUMP);
    *base = map;
    return fd;
}

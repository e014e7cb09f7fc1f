/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/pm_shared.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A forked child has not got it, and may have something else in its place. */
void pm_shared_close(struct pm_shared *s)
{
    if (s->owner == getpid())
        munmap((void *)(uintptr_t)s->base, s->size);
}

/* A file that can be cut while it is read would be the end of this process. */
static bool is_safe(int fd, size_t *size)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;

    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &st) < 0 || st.st_size <= 0)
        return false;
    *size = (size_t)st.st_size;
    return (off_t)*size == st.st_size;
}

/* Not for children, and in no core dump, where it could be large. */
static bool map_file(int fd, struct pm_shared *out)
{
    size_t size;
    void *base;

    if (!is_safe(fd, &size))
        return false;
    base = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return false;
    if (madvise(base, size, MADV_DONTFORK) < 0 || madvise(base, size, MADV_DONTDUMP) < 0) {
        munmap(base, size);
        return false;
    }
    *out = (struct pm_shared){base, size, getpid()};
    return true;
}

bool pm_shared_ask(struct pm *pm, const char *what, struct pm_shared *out, uint32_t *slot)
{
    bool is_mapped = false;
    int fd = -1, rc;

    pm->wire.passed = &fd;
    rc = pm->ops->map(pm, what, slot, NULL);
    pm->wire.passed = NULL;
    if (fd >= 0) {
        is_mapped = rc == PM_OK && map_file(fd, out);
        close(fd);
    }
    return is_mapped;
}

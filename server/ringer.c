/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/ringer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/bell.h"
#include "server/sealed.h"

struct ringer {
    int fd;
    struct bell *bell;
};

int ringer_new(struct ringer **out)
{
    struct ringer *r = calloc(1, sizeof(*r));
    void *base;

    if (r == NULL)
        return -ENOMEM;
    r->fd = sealed_open("pmi-bell", BELL_SIZE, &base);
    if (r->fd < 0) {
        int rc = r->fd;

        free(r);
        return rc;
    }
    /* Here and now: a want of memory later would be a signal. */
    if (fallocate(r->fd, 0, 0, BELL_SIZE) < 0) {
        munmap(base, BELL_SIZE);
        close(r->fd);
        free(r);
        return -ENOMEM;
    }
    r->bell = base;
    memcpy(r->bell->magic, BELL_MAGIC, sizeof(r->bell->magic));
    *out = r;
    return 0;
}

void ringer_free(struct ringer *r)
{
    if (r == NULL)
        return;
    munmap(r->bell, BELL_SIZE);
    close(r->fd);
    free(r);
}

int ringer_fd(const struct ringer *r)
{
    return r->fd;
}

void ringer_ring(struct ringer *r, bool is_round)
{
    if (r == NULL)
        return;
    if (is_round)
        atomic_fetch_add_explicit(&r->bell->rounds, 1, memory_order_release);
    atomic_fetch_add_explicit(&r->bell->rings, 1, memory_order_release);
    (void)syscall(SYS_futex, &r->bell->rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* pm_bell.c - the end of a barrier from the server's bell (common/bell.h), where it is our own and has one
 *
 * All tasks of a node wake at once, instead of by a reply each. Setting it up costs as much as it saves in a few
 * barriers, which is all that many programs have; so the first ones go without.
 */
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "client/pm.h"
#include "client/pm_shared.h"
#include "common/bell.h"

#define BELL_AFTER 4 /* barriers */
#define LOOK_S 1     /* between looks at the connection, which tells of a barrier that failed, and of a server's end */

struct pm_bell {
    struct pm_shared file;
    uint32_t rings, rounds; /* when the barrier was entered */
};

static const struct bell *bell_of(const struct pm_bell *b)
{
    return b->file.base;
}

void pm_bell_close(struct pm *pm)
{
    if (pm->bell != NULL)
        pm_shared_close(&pm->bell->file);
    free(pm->bell);
    pm->bell = NULL;
}

/* Where that fails it is not tried again. */
static void ask(struct pm *pm)
{
    struct pm_bell *b = calloc(1, sizeof(*b));
    uint32_t slot;

    pm->may_bell = false;
    if (b == NULL || !pm_shared_ask(pm, "bell", &b->file, &slot)) {
        free(b);
        return;
    }
    pm->bell = b;
    if (b->file.size != BELL_SIZE || memcmp(bell_of(b)->magic, BELL_MAGIC, sizeof(bell_of(b)->magic)) != 0)
        pm_bell_close(pm);
}

/* What is read here comes ahead of the request, so that nothing behind it is missed. */
bool pm_bell_is_heard(struct pm *pm)
{
    struct pm_bell *b;

    if (pm->may_bell && !pm->wire.is_broken && pm->fences++ == BELL_AFTER)
        ask(pm);
    b = pm->bell;
    if (b == NULL)
        return false;
    b->rings = atomic_load_explicit(&bell_of(b)->rings, memory_order_acquire);
    b->rounds = atomic_load_explicit(&bell_of(b)->rounds, memory_order_acquire);
    return true;
}

static bool has_reply(const struct pm *pm)
{
    struct pollfd p = {.fd = pm->wire.fd, .events = POLLIN};

    return pm->wire.in.len > pm->wire.used || poll(&p, 1, 0) > 0;
}

bool pm_bell_wait(struct pm *pm)
{
    static const struct timespec look = {.tv_sec = LOOK_S};
    struct pm_bell *b = pm->bell;
    const struct bell *bell = bell_of(b);

    for (;;) {
        (void)syscall(SYS_futex, &bell->rings, FUTEX_WAIT, b->rings, &look, NULL, 0);
        b->rings = atomic_load_explicit(&bell->rings, memory_order_acquire);
        if (atomic_load_explicit(&bell->rounds, memory_order_acquire) != b->rounds)
            return true;
        if (has_reply(pm)) {
            pm_bell_close(pm); /* a barrier that has failed: those to come will as well, and be answered */
            return false;
        }
    }
}

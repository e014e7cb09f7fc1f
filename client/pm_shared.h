/* SPDX-License-Identifier: BSD-3-Clause */
/* pm_shared.h - a file of the server's in memory that this process maps to read; for pm_map.c and pm_bell.c */
#ifndef CLIENT_PM_SHARED_H
#define CLIENT_PM_SHARED_H

#include <stddef.h>
#include <sys/types.h>
#include "client/pm.h"

struct pm_shared {
    const void *base;
    size_t size;
    pid_t owner; /* the process that has it */
};

/* Ask the server for it (pm.h says for what) and map it. False: there is none that is safe to read. */
bool pm_shared_ask(struct pm *pm, const char *what, struct pm_shared *out, uint32_t *slot);
void pm_shared_close(struct pm_shared *s);

#endif

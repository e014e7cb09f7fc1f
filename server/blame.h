/* SPDX-License-Identifier: BSD-3-Clause */
/* blame.h - which of several failures is the cause
 *
 * The first failure opens a window; of what arrives in it the cause is, in this order, an abort, a signal, a lost host,
 * an exit status, an end before finalize; among equals the first to arrive. With --keep-going nothing is blamed but the
 * highest status counts. Pure: the owner keeps the clock.
 */
#ifndef SERVER_BLAME_H
#define SERVER_BLAME_H

#include <stdbool.h>
#include "common/err.h"

enum blame_kind {
    BLAME_NONE,
    BLAME_UNFINALIZED, /* ended or closed PMI before finalize, or others wait in a barrier for one that ended */
    BLAME_STATUS,
    BLAME_LOST,
    BLAME_SIGNAL,
    BLAME_ABORT
};

struct blame {
    enum blame_kind kind;
    int status;  /* what the launcher exits with */
    int highest; /* highest status seen, for --keep-going */
    char text[ERR_TEXT_MAX];
};

/* A failure arrived. True when it is the first. `text` is one line without newline. */
bool blame_add(struct blame *b, enum blame_kind kind, int status, const char *text);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/blame.h"

#include <stdio.h>

bool blame_add(struct blame *b, enum blame_kind kind, int status, const char *text)
{
    bool first = b->kind == BLAME_NONE;

    if (status > b->highest)
        b->highest = status;
    if (kind <= b->kind)
        return false;
    b->kind = kind;
    b->status = status;
    snprintf(b->text, sizeof(b->text), "%s", text);
    return first;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void mark_cut(char *text, int wanted)
{
    if (wanted >= ERR_TEXT_MAX)
        text[ERR_TEXT_MAX - 2] = '+';
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
    char text[ERR_TEXT_MAX]; /* the arguments may point into err->text */
    va_list ap;

    if (err == NULL)
        return code;
    va_start(ap, fmt);
    mark_cut(text, vsnprintf(text, sizeof(text), fmt, ap));
    va_end(ap);
    memcpy(err->text, text, sizeof(text));
    err->code = code;
    return code;
}

int err_prefix(struct err *err, const char *fmt, ...)
{
    char context[ERR_TEXT_MAX], old[ERR_TEXT_MAX];
    va_list ap;

    if (err == NULL)
        return 0;
    va_start(ap, fmt);
    vsnprintf(context, sizeof(context), fmt, ap);
    va_end(ap);
    memcpy(old, err->text, sizeof(old));
    return err_set(err, err->code, "%s: %s", context, old);
}

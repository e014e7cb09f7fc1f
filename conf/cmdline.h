/* SPDX-License-Identifier: BSD-3-Clause */
/* cmdline.h - cut the command line into options and parts; what the values mean is not looked at. Inside conf/ only. */
#ifndef CONF_CMDLINE_H
#define CONF_CMDLINE_H

#include <stddef.h>
#include "common/err.h"
#include "conf/option.h"

/* One option as it stood there. */
struct given {
    const struct option *option;
    const char *text; /* lent by argv or the table */
    bool by_letter;
    size_t part; /* 0: in front of the first COMMAND */
};

/* One COMMAND with its arguments; lent by argv. */
struct given_part {
    char *const *argv;
    size_t argc; /* 0: no COMMAND */
};

struct cmdline {
    struct given *given;
    size_t given_count;
    struct given_part *part; /* at least one */
    size_t part_count;
};

/* -EINVAL for an unknown option, a missing value, or an empty part. --help and --version end the reading: nothing
 * behind them counts. cmdline_done() is due in any case. */
int cmdline_parse(struct cmdline *cl, int argc, char *const *argv, struct err *err);
void cmdline_done(struct cmdline *cl);

#endif

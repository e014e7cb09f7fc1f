/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_reader.h - read PMI-1 replies exactly as strictly as the clients in the field do
 *
 * There is no one parser of PMI-1: each library has grown its own, and what one takes another refuses. The three here
 * follow the rules of MPICH 4.0.2, of MPICH's later rewrite, and of Flux, each with its limits, so that a server can be
 * shown to satisfy all of them without having them installed.
 */
#ifndef PROGS_PMI_READER_H
#define PROGS_PMI_READER_H

#include <stddef.h>

#define READER_LINE_MAX 4096 /* the largest line any of them is given room for here, terminator included */

struct reader {
    const char *name;
    size_t line_max; /* longest line it can take, newline included; 0: no limit */
    /* Look `key` up in `line` (no newline, not empty). 1: found and copied to `out`, 0: not there, -1: this client
     * would not accept the line at all; then `*why` says what it objects to.
     */
    int (*get)(const char *line, const char *key, char out[READER_LINE_MAX], const char **why);
    int string_rc;        /* init needs a literal rc=0 */
    int exact_version;    /* init must answer 1.1 and nothing else */
    int cmd_is_prefix;    /* the command's name is compared only as far as the expected one goes */
    int value_has_blanks; /* a value may hold blanks */
};

/* By its name: mpich402, mpich or flux. NULL: there is no such. */
const struct reader *reader_find(const char *name);

/* Is `line` the reply `cmd` with a good rc? 0: yes; 1: it is the reply and reports a failure; -1: refused, see *why. */
int reader_check(const struct reader *r, const char *line, const char *cmd, const char **why);

#endif

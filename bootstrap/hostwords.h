/* SPDX-License-Identifier: BSD-3-Clause */
/* hostwords.h - cut a login's output into lines, and see which host each line is about
 *
 * "HOST: text" and "pdsh@X: HOST: text" are a host's own words; "HOST: ssh exited with exit code N", in either form, is
 * the end of its login. Everything else has no host. Whether HOST is a host of the run is the caller's to judge.
 * Incremental and pure; what is longer than a line may be is cut, so memory is bounded.
 */
#ifndef BOOTSTRAP_HOSTWORDS_H
#define BOOTSTRAP_HOSTWORDS_H

#include <stdbool.h>
#include <stddef.h>
#include "common/span.h"

#define HOSTWORDS_LINE_MAX 512

/* A zeroed struct is ready for use. */
struct hostwords {
    char line[HOSTWORDS_LINE_MAX];
    size_t len;
};

struct hostwords_line {
    struct span whole; /* without newline and carriage return; never empty */
    struct span host;  /* p NULL: the line does not begin like a host's words */
    struct span text;  /* behind the host; the whole line where there is none */
    int exit_code;     /* >= 0: the host's login has ended with it; else -1 */
};

/* The spans are lent for the call. */
typedef void (*hostwords_fn)(const struct hostwords_line *line, void *arg);

void hostwords_feed(struct hostwords *w, struct span in, hostwords_fn fn, void *arg);
/* End of file: hand out a last line that has no newline. */
void hostwords_end(struct hostwords *w, hostwords_fn fn, void *arg);

#endif

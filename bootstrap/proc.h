/* SPDX-License-Identifier: BSD-3-Clause */
/* proc.h - one process that a bootstrap has started, and what comes back from it
 *
 * Reads both pipes to their end, finds key lines on standard output, cuts the rest into lines.
 */
#ifndef BOOTSTRAP_PROC_H
#define BOOTSTRAP_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "bootstrap/hostwords.h"
#include "bootstrap/keyline.h"
#include "common/buf.h"
#include "common/err.h"

struct bootstrap;
struct proc;

struct proc_ops {
    void (*on_key)(struct proc *p, const struct keyline_found *found);
    /* A line of its output (key lines too) or, with `is_err`, of its error. */
    void (*on_line)(struct proc *p, bool is_err, const struct hostwords_line *line);
    /* A line that comes when the start is over, well or not; may be NULL. */
    void (*on_late_line)(struct proc *p, bool is_err, const struct hostwords_line *line);
    /* It has exited, and both pipes have come to their end. Last. */
    void (*on_end)(struct proc *p, int wstatus);
};

struct proc_pipe {
    uv_pipe_t handle;
    struct proc *proc;
    struct hostwords words;
    bool is_err, open;
};

struct proc {
    struct bootstrap *boot;
    const struct proc_ops *ops;
    uint32_t id;
    struct proc_pipe out, err;
    struct keyline key;
    bool exited, ended;
    int wstatus;
    int err_no; /* why it could not be started; 0: it was */
    unsigned key_lines;
};

/* `p` is zeroed memory that stays until the bootstrap is freed; it is entered in the bootstrap's table. On failure
 * nothing runs, but the id is used up. */
int proc_start(struct proc *p, struct bootstrap *b, const struct proc_ops *ops, char *const *argv, char *const *envp,
               struct err *err);
/* boot_exited() was called for it. */
void proc_exited(struct proc *p, int wstatus);
void proc_not_started(struct proc *p, int err_no);
/* "ended with exit status 3", "cannot be started: No such file or directory" */
void proc_end_text(const struct proc *p, struct buf *out);
/* Stop reading; kill it where it still runs. No callback comes after it. */
void proc_stop(struct proc *p);

#endif

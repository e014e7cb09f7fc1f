/* SPDX-License-Identifier: BSD-3-Clause */
/* outmux.h - the tasks' output, merged at the launcher: whole lines, labels, a file for each task, credit back
 *
 * A piece without a newline waits 100 ms for the rest of its line, once what the task wrote before is out; labelled
 * ones wait for the whole line (or 64 KiB of it). What a task may have under way is bounded by its credit, so a
 * launcher whose output is not read holds the tasks up.
 */
#ifndef SERVER_OUTMUX_H
#define SERVER_OUTMUX_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/err.h"
#include "common/span.h"

struct outmux;

/* What a task is called. */
struct outmux_task {
    char rank[24];
    const char *host;
    uint32_t node;
};

struct outmux_ops {
    /* `bytes` more of this stream were written. */
    void (*credit)(uint32_t task, bool is_err, size_t bytes, void *arg);
    /* Standard output (fd 1), error (fd 2) or a file (fd -1) can no longer be written; err->code says why. Once each.
     * */
    void (*on_broken)(int fd, const struct err *why, void *arg);
};

struct outmux_conf {
    uint32_t size; /* tasks at first, see outmux_grow() */
    bool label;
    int64_t terminal; /* the task whose output is a terminal's: at once and as it is, others' lines in between end by CR
                       * and LF; -1: none */
    const char *output, *error; /* file patterns or NULL, lent: %r rank, %h host, %n node, %% */
    void (*describe)(uint32_t task, struct outmux_task *out, void *arg);
};

/* Opens the files, if any; the error names the file. */
int outmux_open(uv_loop_t *loop, const struct outmux_conf *conf, const struct outmux_ops *ops, void *arg,
                struct outmux **out, struct err *err);
/* `more` tasks, which are numbered from the old size on; opens their files. */
int outmux_grow(struct outmux *m, uint32_t more, struct err *err);
int outmux_data(struct outmux *m, uint32_t task, bool is_err, struct span data);
void outmux_eof(struct outmux *m, uint32_t task, bool is_err);
/* Everything out, whole lines or not. */
void outmux_flush(struct outmux *m);
/* Bytes that wait for standard output and error to take them. */
size_t outmux_queued(const struct outmux *m);
/* All that has come of the task's standard output is written. */
bool outmux_is_written(const struct outmux *m, uint32_t task);
/* Nothing is waiting to be written. */
bool outmux_is_idle(const struct outmux *m);
void outmux_close(struct outmux *m);

#endif

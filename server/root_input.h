/* SPDX-License-Identifier: BSD-3-Clause */
/* root_input.h - the launcher's standard input on its way to one rank, or to all, within their credit */
#ifndef SERVER_ROOT_INPUT_H
#define SERVER_ROOT_INPUT_H

#include <stdint.h>
#include <uv.h>
#include "common/err.h"
#include "common/msg.h"

struct root;
struct root_input;
struct terminal;

struct root_input_conf {
    uint32_t size;
    int input;                 /* a rank, INPUT_ALL or INPUT_NONE */
    struct root *root;         /* lent */
    struct terminal *terminal; /* lent; NULL: none */
};

int root_input_open(uv_loop_t *loop, const struct root_input_conf *conf, struct root_input **out, struct err *err);
/* The tasks run: begin to read. Nothing is read before, nor after the last reader has ended. NULL is fine in all calls.
 * */
void root_input_start(struct root_input *in);
int root_input_credit(struct root_input *in, const struct msg_in *m, struct err *err);
void root_input_rank_ended(struct root_input *in, uint32_t rank);
/* The size of the terminal, to the rank that has one. */
void root_input_window(const struct root_input *in);
/* Raw, where it is read yet; or as it was. */
void root_input_terminal(struct root_input *in, bool raw);
/* Nobody reads it any more. The terminal is put back when what was written to it is out. */
void root_input_stop(struct root_input *in);
void root_input_close(struct root_input *in);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* join_send.h - messages of the wire-up: sending one, and the first one */
#ifndef SERVER_JOIN_SEND_H
#define SERVER_JOIN_SEND_H

#include "common/io/conn.h"
#include "common/msg.h"
#include "conf/provider_conf.h"

/* Frees `m`; NULL is one for which there was no memory. Where the message cannot be sent the connection is closed,
 * besides the negative errno. */
int join_send(struct conn *c, unsigned type, struct msg_out *m);
/* A provider's first word to the root, with a number of its own. NULL: out of memory. */
struct msg_out *join_hello(const struct provider_conf *conf, bool attached);

#endif

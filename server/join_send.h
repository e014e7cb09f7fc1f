/* SPDX-License-Identifier: BSD-3-Clause */
/* join_send.h - what both sides of the wire-up share: send a message */
#ifndef SERVER_JOIN_SEND_H
#define SERVER_JOIN_SEND_H

#include "common/io/conn.h"
#include "common/msg.h"

/* Frees `m`; NULL is one for which there was no memory. Where the message cannot be sent the connection is closed,
 * besides the negative errno. */
int join_send(struct conn *c, unsigned type, struct msg_out *m);

#endif

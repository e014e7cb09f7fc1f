/* SPDX-License-Identifier: BSD-3-Clause */
/* join_send.c - one message of the wire-up */
#include "server/join_send.h"

int join_send(struct conn *c, unsigned type, struct msg_out *m)
{
    struct span body;
    int rc = m == NULL ? -ENOMEM : msg_out_done(m, &body);

    if (rc == 0)
        rc = conn_send(c, type, body, false);
    msg_out_free(m);
    if (rc < 0)
        conn_close(c);
    return rc;
}

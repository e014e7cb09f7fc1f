/* SPDX-License-Identifier: BSD-3-Clause */
/* fault.h - a message that a node has to refuse, or cannot send, although others wait for it: the run ends by it
 *
 * What the node says of it, on its way to the root (MSG_FAULT), and the line that people read. Pure.
 */
#ifndef SERVER_FAULT_H
#define SERVER_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/err.h"
#include "common/msg.h"
#include "server/barrier.h"

#define FAULT_PARENT UINT32_MAX    /* as `from`: it came from the parent */
#define FAULT_OWN (UINT32_MAX - 1) /* it is of the node's own and could not be made */

struct fault {
    uint32_t from; /* place of the child that sent it, or one of the two above */
    unsigned type; /* of the message; 0: of none */
    bool has_barrier;
    uint32_t job; /* whose barrier it is */
    struct barrier_id id;
    uint64_t round;
    struct span text; /* why; lent, like the name of the group */
};

/* Does anybody wait for what a message of this type says? Not for what is only for people to read, nor for what only a
 * later version knows. */
bool fault_is_awaited(unsigned type);

void fault_put(struct msg_out *m, const struct fault *f);
/* Views into the body. 0, -EPROTO or -ENOENT. */
int fault_read(const struct msg_in *m, struct fault *f, struct err *err);
/* "hostb: refused barrier 2 of ranks 0,3 from hosta: WHY". `peer` is the host that sent it; NULL: not known. */
void fault_text(const struct fault *f, const char *host, const char *peer, char *out, size_t size);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_traffic.c - what the launcher's links carry, for -vv and QUIT */
#include <inttypes.h>
#include "common/io/log.h"
#include "common/msg.h"
#include "server/launcher_priv.h"

void launcher_traffic(struct buf *out, void *arg)
{
    const struct launcher *l = arg;
    struct links_stats s = links_stats(l->links);

    (void)buf_printf(out,
                     "%" PRIu32 " children, received %" PRIu64 " messages and %" PRIu64 " bytes, sent %" PRIu64
                     " messages and %" PRIu64 " bytes",
                     s.children, s.msgs_in, s.bytes_in, s.msgs_out, s.bytes_out);
}

static void tell_barriers(const struct launcher *l)
{
    struct node_counters c = node_counters(l->node);

    if (c.rounds > 0)
        log_debug("barriers: %" PRIu64 " rounds, the launcher received %" PRIu64 " messages and sent %" PRIu64,
                  c.rounds, c.up, c.down);
}

void launcher_tell_traffic(struct launcher *l, unsigned type)
{
    const char *when = type == MSG_GO ? "when all were ready" : type == MSG_END ? "when all had ended" : "in all";
    struct buf text;

    if (type == 0)
        tell_barriers(l);
    if ((type != MSG_GO && type != MSG_END && type != 0) || links_child_count(l->links) == 0)
        return;
    buf_init(&text, 0);
    launcher_traffic(&text, l);
    if (buf_str(&text) != NULL)
        log_debug("links %s: %s", when, text.p);
    buf_done(&text);
}
